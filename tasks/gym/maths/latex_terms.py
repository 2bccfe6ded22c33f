"""LaTeX and plain mathematical expressions as terms: parsing and evaluation.

A small grammar of our own (numbers, letters, + - * / ^ !, fractions, roots, functions, brackets).
An expression outside it is None. Rational values are exact; others have `DIGITS` digits, far more
than any two different answers share.
"""

# ruff: noqa: RUF001 - signs that people type
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath

MAX_CHARACTERS = 300
"""Deeper terms would reach Python's recursion limit."""
MAX_BITS = 40_000
"""Limit of an exact power; a larger one is `TooLarge`."""
MAX_FACTORIAL = 3000
MAX_MAGNITUDE = 10**6
"""Limit of exponents and function arguments that are evaluated inexactly."""
DIGITS = 60

# "3.14", ".5", "\frac", "x", "+".
_TOKEN = re.compile(
    r"\d+(?:\.\d+)?|\.\d+|\\[A-Za-z]+|[A-Za-zα-ωΩ]|[-+*/^!()\[\]{}|_°']|(?P<space>\s+)"
)
_NAMES = {"π": "\\pi ", "√": "\\sqrt ", "∞": "\\infty ", "×": "*", "·": "*", "÷": "/"}
# "sqrt" of "sqrt(2)", "pi" of "2pi"; no part of "\sin" or "cosine".
_WORD = re.compile(
    r"(?<![\\A-Za-z])(sqrt|pi|arcsin|arccos|arctan|sin|cos|tan|log|ln|exp)(?![A-Za-z])"
)
# "alpha" of \alpha, "varphi", "ell".
_GREEK = re.compile(
    r"(?:var)?(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma|"
    r"tau|upsilon|phi|chi|psi|omega)|ell|triangle|infty",
    re.IGNORECASE,
)
_TIMES = {"*", "\\cdot", "\\times", "/", "\\div"}
_CLOSING = {"(": ")", "[": "]", "{": "}", "\\lfloor": "\\rfloor", "\\lceil": "\\rceil", "|": "|"}
_BOUNDS = {"\\lfloor": "floor", "\\lceil": "ceiling", "|": "abs"}
_MP: Any = mpmath.MPContext()
_MP.dps = DIGITS
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": _MP.sin,
    "cos": _MP.cos,
    "tan": _MP.tan,
    "sec": _MP.sec,
    "csc": _MP.csc,
    "cot": _MP.cot,
    "arcsin": _MP.asin,
    "arccos": _MP.acos,
    "arctan": _MP.atan,
    "arcsec": _MP.asec,
    "arccsc": _MP.acsc,
    "arccot": _MP.acot,
    "arcsinh": _MP.asinh,
    "arccosh": _MP.acosh,
    "arctanh": _MP.atanh,
    "sinh": _MP.sinh,
    "cosh": _MP.cosh,
    "tanh": _MP.tanh,
    "ln": _MP.log,
    "log": _MP.log,
    "exp": _MP.exp,
    "abs": abs,
    "floor": lambda x: _MP.floor(_real(x)),
    "ceiling": lambda x: _MP.ceil(_real(x)),
    "factorial": lambda x: _MP.gamma(_real(x) + 1),
}
_ANGLES = {"sin", "cos", "tan", "sec", "csc", "cot"}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
}
_CONSTANTS: dict[str, Any] = {"\\pi": +_MP.pi, "e": +_MP.e, "i": _MP.mpc(0, 1)}
Value: TypeAlias = Any
"""A Fraction or an mpmath number."""


@dataclass(frozen=True, slots=True)
class LatexTerm:
    """A node: `num` (value), `sym` (name), `call` (name, one argument), or `+ * / ^` of two.

    A call of a name that is no known function is one of an unknown function, `f(x)`.
    """

    kind: str
    parts: tuple["LatexTerm", ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)


class TooLarge(ValueError):
    """The value is larger than any plausible answer."""


def parse_term(text: str) -> LatexTerm | None:
    """Parse one expression; None if any part of it is outside the grammar."""
    for sign, name in _NAMES.items():
        text = text.replace(sign, name)
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


def symbols(term: LatexTerm) -> frozenset[str]:
    """Return the names of the unknowns, unknown functions among them; pi, e and i are values."""
    unknown = (term.kind == "sym" and term.name not in _CONSTANTS) or (
        term.kind == "call" and term.name not in _FUNCTIONS
    )
    return frozenset({term.name} if unknown else ()).union(*map(symbols, term.parts))


def renamed(term: LatexTerm, old: str, new: str) -> LatexTerm:
    """Return a term with another name of one unknown."""
    return substituted(term, old, LatexTerm("sym", name=new))


def substituted(term: LatexTerm, name: str, by: LatexTerm) -> LatexTerm:
    """Return a term with another one in place of an unknown."""
    if term.kind == "sym" and term.name == name:
        return by
    return replace(term, parts=tuple(substituted(part, name, by) for part in term.parts))


def value_of(term: LatexTerm, point: Mapping[str, Fraction]) -> Value:
    """Evaluate at a point: exactly while everything is rational.

    Raises:
        TooLarge: the value is beyond what answers have.
        ArithmeticError, ValueError: it has none there.
    """
    if term.kind == "num":
        return term.value
    if term.kind == "sym":
        return _CONSTANTS[term.name] if term.name in _CONSTANTS else point[term.name]
    values = [value_of(part, point) for part in term.parts]
    if term.kind == "call":
        return _apply(term.name, values[0], point)
    if term.kind == "^":
        return _power(*values)
    if not all(isinstance(value, Fraction) for value in values):
        values = [inexact(value) for value in values]
    return _OPERATORS[term.kind](*values)


def integer(term: LatexTerm | None) -> int | None:
    """Return the value of a constant, if it is an integer."""
    try:
        value = None if term is None or symbols(term) else value_of(term, {})
    except (ArithmeticError, ValueError):
        return None
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else None


def inexact(value: Value) -> Value:
    """Convert to an mpmath number."""
    if isinstance(value, Fraction):
        return _MP.mpf(value.numerator) / value.denominator
    return value


def minus(left: LatexTerm, right: LatexTerm) -> LatexTerm:
    """Return the difference."""
    return LatexTerm("+", (left, _negative(right)))


def _real(value: Value) -> Value:
    if abs(_MP.im(value)) > 1e-30:
        raise ValueError("not real")
    return _MP.re(value)


def _bounded(value: Value) -> Value:
    if not _MP.isfinite(value) or abs(value) > MAX_MAGNITUDE:
        raise TooLarge(str(value))
    return value


def _apply(name: str, value: Value, point: Mapping[str, Fraction]) -> Value:
    if isinstance(value, Fraction):
        match name:
            case "abs":
                return abs(value)
            case "floor":
                return Fraction(math.floor(value))
            case "ceiling":
                return Fraction(math.ceil(value))
            case "factorial" if value.denominator == 1 and value >= 0:
                if value > MAX_FACTORIAL:
                    raise TooLarge("factorial")
                return Fraction(math.factorial(int(value)))
    if name not in _FUNCTIONS:  # an unknown function: any fixed one will do
        return _MP.sin(_bounded(inexact(value)) + inexact(point[name])) + inexact(value) ** 2
    argument = inexact(value)
    return _FUNCTIONS[name](argument if name in ("ln", "log", "abs") else _bounded(argument))


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) not in (0, 1) and abs(exponent) * bits > MAX_BITS:
            raise TooLarge("^")
        return base ** int(exponent)
    base, exponent = inexact(base), inexact(exponent)
    if base != 0:
        _bounded(abs(exponent) * (1 + abs(_MP.log(base))))
    return base**exponent


def _number(value: Fraction | int) -> LatexTerm:
    return LatexTerm("num", value=Fraction(value))


def _negative(term: LatexTerm) -> LatexTerm:
    return LatexTerm("*", (_number(-1), term))


_MINUS_ONE = _negative(_number(1))


class _Reader:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self._in_angle = False

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

    def sum(self) -> LatexTerm:
        term = self._product()
        while self._next in ("+", "-"):
            less = self._take() == "-"
            right = self._product()
            term = minus(term, right) if less else LatexTerm("+", (term, right))
        return term

    def _product(self) -> LatexTerm:
        term = self._signed()
        while self._next and self._next not in "+-)]}|" and self._next not in _CLOSING.values():
            before, implicit = self._tokens[self._place - 1], self._next not in _TIMES
            if implicit and (self._next[0] in "0123456789." or before + self._next == "}{"):
                raise ValueError("nobody writes this product without a sign")
            divide = not implicit and self._take() in ("/", "\\div")
            term = LatexTerm("/" if divide else "*", (term, self._signed()))
        return term

    def _signed(self) -> LatexTerm:
        if self._next in ("+", "-"):
            return _negative(self._signed()) if self._take() == "-" else self._signed()
        return self._power()

    def _power(self) -> LatexTerm:
        term = self._atom()
        if self._next == "!":
            self._take()
            term = LatexTerm("call", (term,), name="factorial")
            if self._next == "!":  # not the factorial of a factorial
                raise ValueError("!!")
        if self._next == "°":
            self._take()
            if self._in_angle:
                half_turn = LatexTerm("/", (LatexTerm("sym", name="\\pi"), _number(180)))
                term = LatexTerm("*", (term, half_turn))
        return self._raised(term)

    def _raised(self, base: LatexTerm) -> LatexTerm:
        """Read powers of powers from the right."""
        if self._next != "^":
            return base
        self._take()
        return LatexTerm("^", (base, self._raised(self._group())))

    def _group(self) -> LatexTerm:
        """Read an argument: {...}, a sign with what follows, or one number, letter or command."""
        return self._signed() if self._next in ("+", "-") else self._atom()

    def _digit_or_group(self) -> LatexTerm:
        r"""Read an argument of \frac, of which TeX takes one digit: \frac12 is a half."""
        if len(self._next) > 1 and self._next.isdigit():
            digits = self._take()
            self._tokens[self._place : self._place] = [digits[1:]]
            return _number(int(digits[0]))
        return self._group()

    def _atom(self) -> LatexTerm:
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            return self._mixed(Fraction(token))
        if token in _CLOSING:
            inner = self.sum()
            self._take(_CLOSING[token])
            return LatexTerm("call", (inner,), name=_BOUNDS[token]) if token in _BOUNDS else inner
        if token[0] == "\\" and token != "\\pi":
            return self._command(token[1:])
        if not token[-1].isalpha():
            raise ValueError(token)
        name = token + self._subscript()
        while self._next == "'":
            name += self._take()
        return self._unknown_call(name) or LatexTerm("sym", name=name)

    def _unknown_call(self, name: str) -> LatexTerm | None:
        """Read f(2x), and I(0) of any letter; n(n+1) is a product."""
        ahead = self._tokens[self._place : self._place + 3]
        lone = len(ahead) == 3 and ahead[2] == ")" and ahead[1][-1].isalnum()
        if ahead[:1] != ["("] or not (name[0] in "fghFGHP" or lone):
            return None
        return LatexTerm("call", (self._atom(),), name=f"{name}()")

    def _command(self, name: str) -> LatexTerm:
        if name in _FUNCTIONS or name == "lg":
            return self._function(name)
        match name:
            case "frac":
                return LatexTerm("/", (self._digit_or_group(), self._digit_or_group()))
            case "sqrt":
                return self._root()
            case "binom":
                return self._binomial(self._digit_or_group(), self._digit_or_group())
            case "overline" | "bar":  # a conjugate or complement: any fixed function will do
                return LatexTerm("call", (self._group(),), name="overline")
        if not _GREEK.fullmatch(name):
            raise ValueError(name)
        return LatexTerm("sym", name=f"\\{name}{self._subscript()}")

    def _mixed(self, whole: Fraction) -> LatexTerm:
        """Read 2\\frac{1}{4} as a mixed number: a sum."""
        ahead = "".join(self._tokens[self._place : self._place + 7])
        match = re.match(r"\\frac(?:\{(\d+)\}\{(\d+)\}|(\d)(\d)(?!\d))", ahead)
        if not match or whole.denominator != 1:
            return _number(whole)
        right = self._atom()
        return LatexTerm("+", (_number(whole), right))

    def _root(self) -> LatexTerm:
        degree = _number(2)
        if self._next == "[":
            self._take()
            degree = self.sum()
            self._take("]")
        return LatexTerm("^", (self._group(), LatexTerm("/", (_number(1), degree))))

    def _binomial(self, n: LatexTerm, k: LatexTerm) -> LatexTerm:
        rest = minus(n, k)
        top, below, last = (LatexTerm("call", (part,), name="factorial") for part in (n, k, rest))
        return LatexTerm("/", (top, LatexTerm("*", (below, last))))

    def _function(self, name: str) -> LatexTerm:
        base, power = (_number(10), None) if name == "lg" else (None, None)
        name = "ln" if name == "lg" else name
        while self._next in ("_", "^"):
            if self._take() == "_":
                base = self._group()
            else:
                power = self._group()
        if power == _MINUS_ONE:  # arctan 2, not 1 / tan 2
            name, power = f"arc{name}", None
            if name not in _FUNCTIONS:
                raise ValueError(name)
        outer, self._in_angle = self._in_angle, name in _ANGLES
        argument = self._atom() if self._next in ("(", "{", "[") else self._bare_argument()
        self._in_angle = outer
        term = LatexTerm("call", (argument,), name=name)
        if base is not None:
            term = LatexTerm("/", (term, LatexTerm("call", (base,), name="ln")))
        return term if power is None else LatexTerm("^", (term, power))

    def _bare_argument(self) -> LatexTerm:
        r"""Read \sin 2x: factors up to the next sign, bracket or function."""
        term = self._signed()
        while self._next and (self._next[0].isalnum() or self._next in ("\\pi", "\\frac")):
            term = LatexTerm("*", (term, self._power()))
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
