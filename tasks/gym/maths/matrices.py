r"""Expressions in symbols of matrices, whose products do not commute: `AB` is not `BA`.

They are evaluated at fixed matrices of whole numbers, with `I` as the identity, `A^{-1}` as an
inverse and `A^T` as a transpose; small letters are numbers. Expressions that agree at all points
count as equal: matrices of order 3 satisfy no identity of fewer than six factors (Amitsur and
Levitzki, 1950). A quotient by a matrix has no value here, since it has two meanings.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from tasks.gym.maths.compare import names_differ
from tasks.gym.maths.latex_terms import LatexTerm, TooLarge, minus, parse_term, symbols, value_of
from tasks.gym.maths.parse import Answer

ORDER = 3
NUM_POINTS = 3
MAX_POWER = 12
MAX_SYMBOLS = 6

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

_WORDS = re.compile(
    r"(?<![A-Za-z])(?:matri(?:x|ces|ks|z|zes|ce)|ma trận|matrizen|linear (?:operator|map)s?|"
    r"quaternions?)(?![A-Za-z])|เมทริกซ์|矩[阵陣]|行列|\\begin\{[pbv]?matrix\}",
    re.IGNORECASE,
)
# "A", "B_1", "P'"
_SYMBOL = re.compile(r"[A-Z](?:_\w+|_\{\w+\})?'*")
# "I", "ABC", which are read as words
_CAPITALS = re.compile(rf"{_SYMBOL.pattern}|[A-Z]{{2,{MAX_SYMBOLS}}}")
_TRANSPOSE = ("T", "t", "\\top")


def has_matrices(text: str) -> bool:
    """Say whether a problem, or a gold, is about matrices."""
    return _WORDS.search(text) is not None


def has_products(answer: Answer) -> bool:
    """Say whether an answer has a symbol that may be a matrix, in two factors or in a power."""
    own = answer.term is not None and _has_product(answer.term)
    return own or _names_product(answer) or any(map(has_products, answer.parts))


def agree(gold: Answer, other: Answer) -> bool | None:
    """Compare two expressions or equations at the points.

    None if one of them has no value there, and for equations that may follow from each other.
    """
    ours, theirs = _sides(gold), _sides(other)
    if ours and theirs and (_is_equation(gold) or _is_equation(other)):
        return _equations_agree(ours, theirs)
    if names_differ(gold.name, other.name):
        return False
    mine, yours = _term(gold), _term(other)
    return None if mine is None or yours is None else _terms_agree(mine, yours)


def _term(answer: Answer) -> LatexTerm | None:
    """Return the term of an answer; capitals alone, I and ABC, may be a word elsewhere."""
    alone = _CAPITALS.fullmatch(answer.text) if answer.kind == "words" else None
    return parse_term(answer.text) if alone else answer.term


def _names_product(answer: Answer) -> bool:
    """Say whether the name of an answer is a side of an equation: AB of `AB = BA`."""
    name = parse_term(answer.name) if answer.name else None
    return name is not None and _has_product(name)


def _is_equation(answer: Answer) -> bool:
    return answer.kind == "equation" or _names_product(answer)


def _sides(answer: Answer) -> tuple[LatexTerm, LatexTerm] | None:
    """Return what an equation, or `X = AB`, has on its left and right; None for another answer."""
    if answer.kind == "equation":
        terms = [_term(part) for part in answer.parts]
    else:
        terms = [parse_term(answer.name), _term(answer)] if answer.name else []
    match terms:
        case [LatexTerm() as left, LatexTerm() as right]:
            return left, right
        case _:
            return None


def _equations_agree(
    gold: tuple[LatexTerm, LatexTerm], other: tuple[LatexTerm, LatexTerm]
) -> bool | None:
    """Say whether equations are the same but for the order of sides and what is moved over.

    Sides that are multiplied by something are not decided (None), nor is a gold that is an
    identity: at the points it is every other identity. No identity is a gold that is none.
    """
    if _terms_agree(*gold) is not False:
        return None
    if _terms_agree(*other):
        return False
    ours, theirs = minus(*gold), (minus(*other), minus(*reversed(other)))
    return True if any(_terms_agree(ours, one) for one in theirs) else None


def _terms_agree(gold: LatexTerm, other: LatexTerm) -> bool | None:
    if gold == other:
        return True
    names = sorted(symbols(gold) | symbols(other))
    matrices = [name for name in names if _SYMBOL.fullmatch(name) and name not in _TRANSPOSE]
    if len(matrices) > MAX_SYMBOLS:
        return None
    for point in range(NUM_POINTS):
        values = {name: _sample(place, point) for place, name in enumerate(matrices)}
        numbers = {
            name: Fraction(7 + 5 * place + 3 * point, 3)
            for place, name in enumerate(names)
            if name not in values
        }
        values["I"] = _identity()
        try:
            ours = _evaluated(gold, values, numbers)
            theirs = _evaluated(other, values, numbers)
        except (TooLarge, ArithmeticError, ValueError, KeyError):
            return None
        if ours != theirs:
            return False
    return True


def _has_product(term: LatexTerm) -> bool:
    names = [name for name in symbols(term) if _SYMBOL.fullmatch(name)]
    return bool(names) and any(part.kind in "*/^" for part in _walk(term))


def _walk(term: LatexTerm) -> Iterator[LatexTerm]:
    yield term
    for part in term.parts:
        yield from _walk(part)


def _sample(place: int, point: int) -> Matrix:
    """Return a matrix with an inverse, another one for each symbol and point."""
    seed = 11 * place + 5 * point + 1
    rows = tuple(
        tuple(
            Fraction((seed * (3 * row + 1) + 7 * column * (seed + row) + row * column) % 13 - 6)
            for column in range(ORDER)
        )
        for row in range(ORDER)
    )
    shift = next(
        n for n in range(20) if _determinant(_add(rows, _scaled(_identity(), Fraction(n))))
    )
    return _add(rows, _scaled(_identity(), Fraction(shift)))


def _evaluated(
    term: LatexTerm, matrices: Mapping[str, Matrix], numbers: Mapping[str, Fraction]
) -> Matrix | Fraction:
    if not symbols(term) & matrices.keys():
        value = value_of(term, dict(numbers))
        if not isinstance(value, Fraction):
            raise ValueError("only rational numbers are compared exactly")
        return value
    if term.kind == "sym":
        return matrices[term.name]
    if term.kind == "^":
        return _power(term, matrices, numbers)
    if term.kind not in ("+", "*", "/"):
        raise ValueError(f"{term.kind} of a matrix is not read")
    left, right = (_evaluated(part, matrices, numbers) for part in term.parts)
    return _joined(term.kind, left, right)


def _joined(sign: str, left: Matrix | Fraction, right: Matrix | Fraction) -> Matrix:
    match sign, left, right:
        case "+", tuple(), tuple():
            return _add(left, right)
        case ("+", tuple() as matrix, Fraction(numerator=0)) | (
            "+",
            Fraction(numerator=0),
            tuple() as matrix,
        ):
            return matrix  # the 0 of AB - BA = 0
        case "*", tuple(), tuple():
            return _product(left, right)
        case ("*", Fraction(), tuple()):
            return _scaled(right, left)
        case "*" | "/", tuple(), Fraction():
            return _scaled(left, right if sign == "*" else 1 / right)
        case _:
            raise ValueError("a number and a matrix have no sum, and no quotient by a matrix")


def _power(
    term: LatexTerm, matrices: Mapping[str, Matrix], numbers: Mapping[str, Fraction]
) -> Matrix:
    below, above = term.parts
    base = _evaluated(below, matrices, numbers)
    if not isinstance(base, tuple):
        raise ValueError("a number to the power of a matrix is not read")
    if above.kind == "sym" and above.name in _TRANSPOSE:
        return tuple(zip(*base, strict=True))
    exponent = value_of(above, dict(numbers)) if not symbols(above) else None
    if not isinstance(exponent, Fraction) or exponent.denominator != 1:
        raise ValueError("only whole powers are read")
    if abs(exponent) > MAX_POWER:
        raise TooLarge(f"a power of {exponent}")
    base = _inverse(base) if exponent < 0 else base
    result = _identity()
    for _ in range(abs(int(exponent))):
        result = _product(result, base)
    return result


def _identity() -> Matrix:
    return tuple(tuple(Fraction(row == column) for column in range(ORDER)) for row in range(ORDER))


def _add(a: Matrix, b: Matrix) -> Matrix:
    return tuple(
        tuple(x + y for x, y in zip(left, right, strict=True))
        for left, right in zip(a, b, strict=True)
    )


def _scaled(a: Matrix, factor: Fraction) -> Matrix:
    return tuple(tuple(factor * entry for entry in row) for row in a)


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = tuple(zip(*b, strict=True))
    return tuple(
        tuple(
            sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0))
            for column in columns
        )
        for row in a
    )


def _minor(a: Matrix, row: int, column: int) -> Fraction:
    (p, q), (r, s) = (
        tuple(entry for place, entry in enumerate(entries) if place != column)
        for number, entries in enumerate(a)
        if number != row
    )
    return p * s - q * r


def _determinant(a: Matrix) -> Fraction:
    return sum(
        (a[0][column] * (-1) ** column * _minor(a, 0, column) for column in range(ORDER)),
        Fraction(0),
    )


def _inverse(a: Matrix) -> Matrix:
    """Return the inverse; a matrix without one raises ZeroDivisionError."""
    whole = _determinant(a)
    return tuple(
        tuple((-1) ** (row + column) * _minor(a, column, row) / whole for column in range(ORDER))
        for row in range(ORDER)
    )
