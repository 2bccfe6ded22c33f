r"""Exact values of answers: sums of rational multiples of roots, \pi, i and letters.

A value is a polynomial over the rationals in letters and square roots of square-free integers, kept
in a normal form, so that equality is decided and not estimated. The reader takes LaTeX that has one
meaning only and refuses everything else; it shares nothing with the verifiers.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

Monomial = tuple[int, tuple[tuple[str, int], ...]]
"""A square-free radicand, and letters with their exponents."""
ONE: Monomial = (1, ())
MAX_EXPONENT = 30
MAX_RADICAND = 10**6
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<frac>\\[dtc]?frac(?![a-zA-Z]))"
    r"|(?P<sqrt>\\sqrt(?![a-zA-Z]))|(?P<pi>\\pi(?![a-zA-Z]))|(?P<times>\\cdot(?![a-zA-Z])"
    r"|\\times(?![a-zA-Z])|\*)|(?P<letter>[a-zA-Z])|(?P<sign>[-+/^(){}]))"
)
_WORD = re.compile(r"(?<![\\a-zA-Z])(?:[a-zA-Z]{4,}|[fgPQ]\s*\(|[A-Z]\Z)")
_SPACING = re.compile(r"\\[!,;: ]|\\(?:left|right)(?![a-zA-Z])|~")


class Unreadable(ValueError):
    """The text is not of the forms that have one meaning."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A value in normal form: no zero coefficient, square-free radicands, i squared is -1."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @property
    def rational(self) -> Fraction | None:
        """The value as a fraction; None if it has roots or letters."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == ONE else None

    @property
    def integer(self) -> int | None:
        """The value as an integer; None if it is none."""
        value = self.rational
        return value.numerator if value is not None and value.denominator == 1 else None

    @property
    def letters(self) -> frozenset[str]:
        """Letters other than i and \\pi."""
        names = {name for (_, powers), _ in self.terms for name, _ in powers}
        return frozenset(names - {"i", "pi"})

    def __neg__(self) -> "Exact":
        return Exact(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __add__(self, other: "Exact") -> "Exact":
        return normal((*self.terms, *other.terms))

    def __mul__(self, other: "Exact") -> "Exact":
        pairs = product(self.terms, other.terms)
        return normal(tuple(_times(a, b) for a, b in pairs))

    def inverse(self) -> "Exact":
        """One over the value, where it is a rational times a root."""
        if len(self.terms) != 1 or self.terms[0][0][1]:
            raise Unreadable("a denominator of several terms or with letters")
        ((radicand, _), factor) = self.terms[0]
        return Exact((((radicand, ()), 1 / (factor * radicand)),))


def number(value: Fraction | int) -> Exact:
    """Return a rational as a value."""
    return normal(((ONE, Fraction(value)),))


def normal(terms: tuple[tuple[Monomial, Fraction], ...]) -> Exact:
    """Collect equal monomials and drop zeros."""
    sums: dict[Monomial, Fraction] = {}
    for monomial, factor in terms:
        sums[monomial] = sums.get(monomial, Fraction(0)) + factor
    return Exact(tuple(sorted((m, f) for m, f in sums.items() if f)))


def root(value: Fraction) -> Exact:
    """Return the square root of a rational that is not negative."""
    if value < 0 or value.numerator * value.denominator > MAX_RADICAND:
        raise Unreadable("a root of a negative or very large number")
    inside, outside = value.numerator * value.denominator, Fraction(1, value.denominator)
    divisor = 2
    while divisor * divisor <= inside:
        if inside % (divisor * divisor) == 0:
            inside, outside = inside // divisor**2, outside * divisor
        else:
            divisor += 1
    return normal((((inside, ()), outside),)) if value else number(0)


def read(text: str) -> Exact:
    """Read LaTeX that has one meaning.

    Raises:
        Unreadable: it has more than one, or none.
    """
    if _WORD.search(text):
        raise Unreadable(f"{text!r} may hold a word or the name of a function")
    reader = _Reader(_tokens(_SPACING.sub(" ", text).strip()))
    value = reader.sum()
    if reader.kind:
        raise Unreadable(f"{text!r}: {reader.text!r} is left over")
    return value


def _times(a: tuple[Monomial, Fraction], b: tuple[Monomial, Fraction]) -> tuple[Monomial, Fraction]:
    (radicand_a, powers_a), (radicand_b, powers_b) = a[0], b[0]
    under = root(Fraction(radicand_a * radicand_b)).terms[0]
    powers: dict[str, int] = dict(powers_a)
    for name, exponent in powers_b:
        powers[name] = powers.get(name, 0) + exponent
    factor = a[1] * b[1] * under[1]
    if powers.get("i", 0) > 1:
        factor *= (-1) ** (powers["i"] // 2)
        powers["i"] %= 2
    kept = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
    return (under[0][0], kept), factor


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise Unreadable(f"{text[position : position + 10]!r} in {text!r}")
        position = found.end()
        yield found.lastgroup, found[found.lastgroup]


class _Reader:
    """Recursive descent over tokens; `kind` and `text` are the next one, '' at the end."""

    def __init__(self, tokens: Iterator[tuple[str, str]]) -> None:
        self._tokens = tokens
        self.kind, self.text = "", ""
        self._next()

    def sum(self) -> Exact:
        """Read terms with signs between them."""
        total = number(0)
        sign = 1
        if self.text in ("-", "+"):
            sign = -1 if self._take() == "-" else 1
        while True:
            total += number(sign) * self._product()
            if self.text not in ("-", "+"):
                return total
            sign = -1 if self._take() == "-" else 1

    def _product(self) -> Exact:
        """Read factors; numbers stand first and once, so that 1\\frac12 and x2 are refused."""
        value, may_be_number = self._factor(first=True), False
        while True:
            if self.kind == "times":
                self._take()
                value *= self._factor(first=True)
            elif self.text == "/":
                self._take()
                if self.kind != "number":
                    raise Unreadable("a denominator that is no number")
                value *= number(Fraction(self._take())).inverse() if self._positive() else number(0)
                if self.kind and self.text not in ("-", "+", ")", "}"):
                    raise Unreadable("something behind a denominator")
                return value
            elif self.kind in ("letter", "pi", "sqrt", "frac") or self.text == "(":
                value *= self._factor(first=may_be_number)
            elif self.kind == "number":
                raise Unreadable("a number behind a factor")
            else:
                return value

    def _positive(self) -> bool:
        if Fraction(self.text) == 0:
            raise Unreadable("division by zero")
        return True

    def _factor(self, *, first: bool) -> Exact:
        kind = self.kind
        if kind == "number":
            base = number(Fraction(self._take()))
            if self.kind == "frac":
                raise Unreadable("a mixed number")
        elif kind == "frac" and first:
            self._take()
            base = self._argument() * self._argument().inverse()
        elif kind == "sqrt":
            self._take()
            inside = self._argument().rational
            if inside is None:
                raise Unreadable("a root of more than a number")
            base = root(inside)
        elif kind in ("letter", "pi"):
            name = "pi" if kind == "pi" else self.text
            self._take()
            base = Exact((((1, ((name, 1),)), Fraction(1)),))
        elif self.text == "(":
            base = self._group(")")
        else:
            raise Unreadable(f"{self.text!r} is no factor")
        return self._power(base)

    def _power(self, base: Exact) -> Exact:
        if self.text != "^":
            return base
        self._take()
        exponent = self._argument().integer
        if self.text == "^" or exponent is None or not 0 <= exponent <= MAX_EXPONENT:
            raise Unreadable("an exponent that is no small integer")
        return reduce(lambda a, b: a * b, [base] * exponent, number(1))

    def _argument(self) -> Exact:
        """Read {...} or, as TeX does, one digit or letter."""
        if self.text == "{":
            return self._group("}")
        if self.kind == "number" and self.text.isdigit():
            digit, rest = self.text[0], self.text[1:]
            if rest:
                self.text = rest
            else:
                self._next()
            return number(int(digit))
        if self.kind in ("letter", "pi"):
            return self._factor(first=True) if self.kind == "pi" else self._letter()
        raise Unreadable(f"{self.text!r} is no argument")

    def _letter(self) -> Exact:
        return Exact((((1, ((self._take(), 1),)), Fraction(1)),))

    def _group(self, closing: str) -> Exact:
        self._take()
        value = self.sum()
        if self.text != closing:
            raise Unreadable(f"{closing!r} is missing")
        self._take()
        return value

    def _take(self) -> str:
        taken = self.text
        self._next()
        return taken

    def _next(self) -> None:
        self.kind, self.text = next(self._tokens, ("", ""))


def latex(value: Exact, order: Mapping[Monomial, int] | None = None) -> str:
    """Write a value; `order` says where each of its terms stands."""
    if not value.terms:
        return "0"
    terms = sorted(value.terms, key=lambda term: (order or {}).get(term[0], 0))
    written = [_term(monomial, factor) for monomial, factor in terms]
    return written[0] + "".join(t if t.startswith("-") else f"+{t}" for t in written[1:])


def _term(monomial: Monomial, factor: Fraction) -> str:
    radicand, powers = monomial
    symbols = f"\\sqrt{{{radicand}}}" if radicand > 1 else ""
    for name, exponent in powers:
        letter = "\\pi " if name == "pi" else name
        symbols += letter if exponent == 1 else f"{letter.strip()}^{{{exponent}}}"
    sign, size = ("-" if factor < 0 else ""), abs(factor)
    if size.denominator > 1:
        return f"{sign}\\frac{{{size.numerator}}}{{{size.denominator}}}{symbols.strip()}"
    shown = "" if size == 1 and symbols else str(size.numerator)
    return f"{sign}{shown}{symbols.strip()}"
