"""LaTeX and plain mathematical expressions as terms: read, evaluate, turn into sympy.

A small grammar of our own (numbers, letters, + - * / ^ !, fractions, roots, functions, brackets),
with no part of math-verify, so that two verifiers can disagree. What it cannot read is None.
"""

# ruff: noqa: RUF001 - signs that people type
import cmath
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

MAX_CHARACTERS = 300
"""Deeper terms would meet Python's recursion limit."""
MAX_BITS = 20_000
"""Of an exact power; a larger one is a float, or too large."""
MAX_FACTORIAL = 1000

_TOKEN = re.compile(
    r"\d+(?:\.\d+)?|\.\d+|\\[A-Za-z]+|[A-Za-zα-ωΩ]|[-+*/^!()\[\]{}|_]|(?P<space>\s+)"
)
_NAMES = {"π": "\\pi", "√": "\\sqrt", "∞": "\\infty", "×": "*", "·": "*", "÷": "/", "²": "^2"}
_WORD = re.compile(r"(?<![\\A-Za-z])(sqrt|pi|sin|cos|tan|log|ln|exp)(?![A-Za-z])")
_GREEK = re.compile(
    r"(?:var)?(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma|"
    r"tau|upsilon|phi|chi|psi|omega)|ell|triangle",
    re.IGNORECASE,
)
_TIMES = {"*", "\\cdot", "\\times", "/", "\\div"}
_CLOSING = {"(": ")", "[": "]", "{": "}", "\\lfloor": "\\rfloor", "\\lceil": "\\rceil", "|": "|"}
_BOUNDS = {"\\lfloor": "floor", "\\lceil": "ceiling", "|": "abs"}
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "sec": lambda x: 1 / cmath.cos(x),
    "csc": lambda x: 1 / cmath.sin(x),
    "cot": lambda x: 1 / cmath.tan(x),
    "arcsin": cmath.asin,
    "arccos": cmath.acos,
    "arctan": cmath.atan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "ln": cmath.log,
    "log": cmath.log,
    "exp": cmath.exp,
    "abs": abs,
    "floor": lambda x: complex(math.floor(_real(x))),
    "ceiling": lambda x: complex(math.ceil(_real(x))),
    "factorial": lambda x: complex(math.gamma(_real(x) + 1)),
}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}
_CONSTANTS: dict[str, complex] = {"\\pi": complex(math.pi), "e": complex(math.e), "i": 1j}
_SYMPY = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "ln": "log", "abs": "Abs"}


@dataclass(frozen=True, slots=True)
class Term:
    """A node: `num` (value), `sym` (name), `call` (name, one argument), or `+ * / ^` of two."""

    kind: str
    parts: tuple["Term", ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)


class TooLarge(ValueError):
    """A value that no answer has."""


def parse_term(text: str) -> Term | None:
    """Read one expression; None if anything in it is not of the grammar."""
    for sign, written in _NAMES.items():
        text = text.replace(sign, written)
    text = _WORD.sub(r"\\\1 ", text.replace("**", "^"))
    if not text or len(text) > MAX_CHARACTERS or _TOKEN.sub("", text):
        return None
    tokens = [match[0] for match in _TOKEN.finditer(text) if match["space"] is None]
    try:
        reader = _Reader(tokens)
        term = reader.sum()
        return term if reader.at_end else None
    except (ValueError, RecursionError):
        return None


def symbols(term: Term) -> frozenset[str]:
    """Return the names of the unknowns; pi, e and i are values."""
    own = {term.name} if term.kind == "sym" and term.name not in _CONSTANTS else set()
    return frozenset(own.union(*(symbols(part) for part in term.parts)))


def value_of(term: Term, point: Mapping[str, complex]) -> Fraction | complex:
    """Evaluate at a point: exactly while everything is rational.

    Raises:
        TooLarge: the value is beyond floats.
        ArithmeticError, ValueError: it has none there.
    """
    if term.kind == "num":
        return term.value
    if term.kind == "sym":
        return (_CONSTANTS | dict(point))[term.name]
    values = [value_of(part, point) for part in term.parts]
    if term.kind == "call":
        return _apply(term.name, values[0])
    try:
        return _power(*values) if term.kind == "^" else _OPERATORS[term.kind](*values)
    except OverflowError as error:
        raise TooLarge(term.kind) from error


def minus(left: Term, right: Term) -> Term:
    """Return the difference."""
    return Term("+", (left, _negative(right)))


def to_sympy(term: Term) -> Any:
    """Turn a term into a sympy expression over the reals; to be called in a worker."""
    import sympy  # takes a second

    if term.kind == "num":
        return sympy.Rational(term.value.numerator, term.value.denominator)
    if term.kind == "sym":
        constants = {"\\pi": sympy.pi, "e": sympy.E, "i": sympy.I}
        return constants.get(term.name) or sympy.Symbol(term.name, real=True)
    parts = [to_sympy(part) for part in term.parts]
    if term.kind == "call":
        return vars(sympy)[_SYMPY.get(term.name, term.name)](*parts)
    return _OPERATORS[term.kind](*parts)


def _real(value: complex) -> float:
    if abs(value.imag) > 1e-9:
        raise ValueError("not real")
    return value.real


def _apply(name: str, value: Fraction | complex) -> Fraction | complex:
    if isinstance(value, Fraction):
        match name:
            case "abs":
                return abs(value)
            case "floor":
                return Fraction(math.floor(value))
            case "ceiling":
                return Fraction(math.ceil(value))
            case "factorial" if value.denominator == 1 and 0 <= value <= MAX_FACTORIAL:
                return Fraction(math.factorial(int(value)))
    try:
        return _FUNCTIONS[name](complex(value))
    except OverflowError as error:
        raise TooLarge(name) from error


def _power(base: Fraction | complex, exponent: Fraction | complex) -> Fraction | complex:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * bits <= MAX_BITS:
            return base ** int(exponent)
        if abs(base) > 1 and exponent > 0:
            raise TooLarge("^")
    return complex(base) ** complex(exponent)


def _number(value: Fraction | int) -> Term:
    return Term("num", value=Fraction(value))


def _negative(term: Term) -> Term:
    return Term("*", (_number(-1), term))


class _Reader:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0

    @property
    def at_end(self) -> bool:
        return self._place == len(self._tokens)

    @property
    def _next(self) -> str:
        return "" if self.at_end else self._tokens[self._place]

    def _take(self, expected: str = "") -> str:
        token = self._next
        if not token or (expected and token != expected):
            raise ValueError(f"{token!r} at {self._place}")
        self._place += 1
        return token

    def sum(self) -> Term:
        term = self._product()
        while self._next in ("+", "-"):
            less = self._take() == "-"
            right = self._product()
            term = minus(term, right) if less else Term("+", (term, right))
        return term

    def _product(self) -> Term:
        term = self._signed()
        while self._next and self._next not in "+-)]}|" and self._next not in _CLOSING.values():
            divide = self._next in _TIMES and self._take() in ("/", "\\div")
            term = Term("/" if divide else "*", (term, self._signed()))
        return term

    def _signed(self) -> Term:
        if self._next in ("+", "-"):
            return _negative(self._signed()) if self._take() == "-" else self._signed()
        return self._power()

    def _power(self) -> Term:
        term = self._atom()
        while self._next == "!":
            self._take()
            term = Term("call", (term,), name="factorial")
        if self._next == "^":
            self._take()
            return Term("^", (term, self._group()))
        return term

    def _group(self) -> Term:
        """Read an argument: {...}, a sign with what follows, or one number, letter or command."""
        return self._signed() if self._next in ("+", "-") else self._atom()

    def _digit_or_group(self) -> Term:
        r"""Read an argument of \frac, of which TeX takes one digit: \frac12 is a half."""
        if len(self._next) > 1 and self._next.isdigit():
            digits = self._take()
            self._tokens[self._place : self._place] = [digits[1:]]
            return _number(int(digits[0]))
        return self._group()

    def _atom(self) -> Term:
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            return self._mixed(Fraction(token))
        if token in _CLOSING:
            inner = self.sum()
            self._take(_CLOSING[token])
            return Term("call", (inner,), name=_BOUNDS[token]) if token in _BOUNDS else inner
        if token[0] == "\\" and token != "\\pi":
            return self._command(token[1:])
        if not token[-1].isalpha():
            raise ValueError(token)
        return Term("sym", name=token + self._subscript())

    def _command(self, name: str) -> Term:
        if name in _FUNCTIONS:
            return self._function(name)
        match name:
            case "frac":
                return Term("/", (self._digit_or_group(), self._digit_or_group()))
            case "sqrt":
                return self._root()
            case "binom":
                return self._binomial(self._group(), self._group())
        if not _GREEK.fullmatch(name):
            raise ValueError(name)
        return Term("sym", name=f"\\{name}{self._subscript()}")

    def _mixed(self, whole: Fraction) -> Term:
        """Read 2\\frac{1}{4} as a sum, as schools do."""
        ahead = "".join(self._tokens[self._place : self._place + 7])
        match = re.match(r"\\frac(?:\{(\d+)\}\{(\d+)\}|(\d)(\d)(?!\d))", ahead)
        if not match or whole.denominator != 1:
            return _number(whole)
        right = self._atom()
        return Term("+", (_number(whole), right))

    def _root(self) -> Term:
        degree = _number(2)
        if self._next == "[":
            self._take()
            degree = self.sum()
            self._take("]")
        return Term("^", (self._group(), Term("/", (_number(1), degree))))

    def _binomial(self, n: Term, k: Term) -> Term:
        rest = minus(n, k)
        top, below, last = (Term("call", (part,), name="factorial") for part in (n, k, rest))
        return Term("/", (top, Term("*", (below, last))))

    def _function(self, name: str) -> Term:
        base, power = None, None
        while self._next in ("_", "^"):
            if self._take() == "_":
                base = self._group()
            else:
                power = self._group()
        argument = self._atom() if self._next in ("(", "{", "[") else self._bare_argument()
        term = Term("call", (argument,), name=name)
        if base is not None:
            term = Term("/", (term, Term("call", (base,), name="ln")))
        return term if power is None else Term("^", (term, power))

    def _bare_argument(self) -> Term:
        r"""Read \sin 2x: factors up to the next sign, bracket or function."""
        term = self._signed()
        while self._next and (self._next[0].isalnum() or self._next in ("\\pi", "\\frac")):
            term = Term("*", (term, self._power()))
        return term

    def _subscript(self) -> str:
        if self._next != "_":
            return ""
        self._take()
        if self._next != "{":
            return f"_{self._take()}"
        start = self._place
        while self._take() != "}":
            pass
        return "_" + "".join(self._tokens[start + 1 : self._place - 1])
