r"""Decide whether two parsed answers are equal: exactly if possible, else numerically.

Integers and rational numbers are compared exactly, other constants to `latex_terms.DIGITS` digits.
Expressions with unknowns are evaluated at several points, exactly where their values are rational:
expressions that agree at all points count as equal (Schwartz-Zippel), and no proof is attempted.
A tolerance applies only if the problem states one.

The result is True, False, or None where this comparison cannot decide.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from tasks.gym.maths import units
from tasks.gym.maths.latex_terms import (
    LatexTerm,
    TooLarge,
    Value,
    inexact,
    integer,
    minus,
    parse_term,
    renamed,
    substituted,
    symbols,
    value_of,
)
from tasks.gym.maths.parse import INTERVALS, Answer
from tasks.gym.maths.regions import same_region

UNORDERED = {"list", "set", "union", "value"}
SAME_DIGITS = 40
ROUNDED_PLACES = 6
"""A decimal fraction with at least as many places may stand for a value that rounds to it."""
ROUNDED_DIGITS = 4
"""Least digits behind leading zeros of such a fraction below 1: what is left is its precision."""
GOLD_PLACES, GOLD_DIGITS = 2, 3
"""Least places and digits of a gold that is the rounding of a value without a decimal expansion."""
POINTS = tuple(
    tuple(Fraction(value, 1000) for value in point)
    for point in (
        (731, 1417, 2293, 577),
        (-1213, 2719, -391, 1833),
        (3137, -847, 1291, 2100),
        (40900, 33700, 27200, 45600),
        (-5210, -3170, 611, -1930),
    )
)

STEPS = tuple(
    (Fraction(place), Fraction(40 - place), Fraction(7), Fraction(3)) for place in range(1, 40)
)
"""Additional points for expressions with floors and ceilings, which are constant in steps."""

# "0.333333", "-.666667".
_ROUNDED = re.compile(rf"-?\d*\.\d{{{ROUNDED_PLACES},}}")
# "30.52", "0.458", "USD 12.55", "41.4%", of which 0.414 is the share.
_ROUNDED_GOLD = re.compile(
    rf"(?:[A-Z]{{3}} )?(?:(?P<number>-?\d*\.\d{{{GOLD_PLACES},}})|"
    r"(?P<percent>-?\d+\.\d+)\s?\\?%(?: per 100)?)"
)
# "3.1622...", "3.1622\ldots" behind the last equals sign
_CUT_OFF = re.compile(r"(?P<digits>-?\d+\.\d+)\s?(?:\\[lc]?dots|\.{3,}|…)[\s$]*")
_ASSIGNS = re.compile(r"=|≈|\\approx(?![A-Za-z])")
# "\in \mathbb{Z}"
_DOMAIN = re.compile(r"\\in\s*(?:\\math(?:bb|bf|rm)\s*)?\{?\s*([ZRQC])(?![A-Za-z])")
# "1,22"
_DECIMAL_COMMA = re.compile(r"-?\d+,\d\d")
# What `repeating` makes of "0.\\overline{123}", which is no other way to write the gold 0.123.
PERIOD = re.compile(r"-?\(\\frac\{\d+\}\{\d+\}\)")
# "f(x)"
_CALL = re.compile(r"([A-Za-z]\w*)\(([A-Za-z])\)")
# "xy", "abc"
_PRODUCT = re.compile(r"[a-z]{2,3}")
# "x", "(a)", "(iv)"
_COORDINATE = re.compile(r"[A-Za-z]|\([a-jvx\d]{1,4}\)")
_MARKED = re.compile(r"[-+*/^!'|<>=]")
"""Signs that make another value of a letter."""
# Digits that name no number: those of "(x+1)", "^2", "_{12}".
_COEFFICIENTS = re.compile(r"\([^()]*\)|\^\{?\d\}?|_(?:\w|\{[^{}]*\})")


def same(gold: Answer, other: Answer, tolerance: Fraction | None = None) -> bool | None:
    """Compare two answers; None if one of them cannot be read."""
    if (
        _tight(gold.text) == _tight(other.text)
        and gold.kind != "hedged"
        and gold.condition == other.condition
    ):
        return gold.name == other.name or not names_differ(gold.name, other.name)
    other = _with_argument_of(gold, other)
    if (
        other.kind == "hedged"
        or names_differ(gold.name, other.name)
        or _conditions_differ(gold.condition, other.condition)
        or not units.agree(gold.unit, other.unit)
    ):
        return False
    kinds = {gold.kind, other.kind}
    for kind, compare in (
        ("unread", _unread),
        ("approximation", _approximate),
        ("equation", _equations),
        ("date", _dates),
        ("words", _words),
        ("congruence", _congruent),
        ("based", _based),
        ("ratio", _ratios),
        ("remainder", _remainders),
        ("clock", _clocks),
    ):
        if kind in kinds:
            return compare(gold, other)
    gold, other = _along(gold, other), _along(other, gold)
    kinds = {gold.kind, other.kind}
    if kinds == {"value"}:
        as_curve = is_curve(gold) and not other.name and _solves(gold, other)
        return as_curve or _values_agree(gold, other, tolerance)
    if not kinds <= INTERVALS or len(kinds) > 1:
        verdict = same_region(gold, other, lambda part: _evaluated(part.term))
        if verdict is not None:
            return verdict
    return _parts(gold, other, tolerance)


def _tight(text: str) -> str:
    """Remove spaces that separate nothing."""
    return re.sub(r"(?<!\w) +| +(?!\w)", "", text)


def names_differ(gold: str, other: str) -> bool:
    """Say whether two names denote different things; `y` and `f(x)` may denote the same."""
    plain = (name.replace("\\bar", "\\overline") for name in (gold, other))
    a, b = (re.sub(r"\\text|[\\{}\s]", "", name) for name in plain)
    labels = len(a) > 2 and len(b) > 2 and a.isalpha() and b.isalpha()  # Minimum, Maximum
    if labels:
        a, b = a.casefold(), b.casefold()
    return bool(a and b) and a != b and (len(a) == len(b) or labels)


def _conditions_differ(gold: str, other: str) -> bool:
    """Say whether 2n for n > 1 was asked for and 2n for n > 2 is stated; one may say nothing.

    So may kx for whole k be asked for and kx for real k be stated.
    """
    numbers = [re.findall(r"\d+", text) for text in (gold, other)]
    domains = [{*_DOMAIN.findall(text.replace("N", "Z"))} for text in (gold, other)]
    others = all(domains) and domains[0] != domains[1]
    return bool(gold and other) and (numbers[0] != numbers[1] or others)


def _with_argument_of(gold: Answer, other: Answer) -> Answer:
    """Return f(z) = z as f(x) = x where the gold has x."""
    ours, theirs = _CALL.fullmatch(gold.name), _CALL.fullmatch(other.name)
    if not ours or not theirs or ours[1] != theirs[1] or ours[2] == theirs[2] or not other.term:
        return other
    if ours[2] in symbols(other.term):
        return other
    return replace(other, name=gold.name, term=renamed(other.term, theirs[2], ours[2]))


def _unread(gold: Answer, other: Answer) -> bool | None:
    r"""Compare (\pm 1, \pm 2) with a gold that has all its points; nothing else is decided."""
    if gold.kind == "list" and other.parts and _unordered(gold.parts, other.parts, None):
        return True
    return None


def _approximate(gold: Answer, other: Answer) -> bool | None:
    r"""Compare `a \approx b`: it is a as well as b if b is a, rounded; else it states no value."""
    if gold.kind == "approximation":
        return _any([same(part, other) for part in gold.parts])
    parts = [part for part in other.parts if part.term is None or not symbols(part.term)]
    if not parts or any(not _rounds(a, b) for a, b in pairwise(parts)):
        return False
    return _any([same(gold, part) for part in parts])


def _rounds(exact: Answer, rounded: Answer) -> bool:
    """Say whether a value is the rounding of another one to its own places: 7/3 to 2.33.

    An integer has no rounding but itself; a rounding to tens is not read.
    """
    a, b = _evaluated(exact.term), _evaluated(rounded.term)
    if a is None or b is None:
        return False
    if _same_value(a, b):
        return True
    if isinstance(a, Fraction) and a.denominator == 1:
        return False
    places = len(rounded.text.rpartition(".")[2]) if "." in rounded.text else 0
    return abs(inexact(a) - inexact(b)) <= 0.5 * 10.0**-places * (1 + 1e-9)


def _any(verdicts: Sequence[bool | None]) -> bool | None:
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _equations(gold: Answer, other: Answer) -> bool | None:
    """Compare equations up to a factor; compared with a value, an equation states its last side."""
    if gold.kind == "equation" and _constant(gold):
        return _chain(gold) and same(gold.parts[-1], other)
    if gold.kind != "equation" and not (gold.name and other.kind == "equation"):
        return _chain(other) and same(gold, other.parts[-1])
    if other.kind != "equation" and not other.name:
        return _solves(gold, other)  # a + 3z = 0 asks for more than 0
    ours, theirs = _difference(gold), _difference(other)
    if ours is None or theirs is None:
        return None
    ratios = [value for value in _at_points(LatexTerm("/", (ours, theirs))) if value is not None]
    if len(ratios) < 2 or any(not value for value in ratios):
        return None if len(ratios) < 2 else False
    return all(_same_value(ratios[0], value) for value in ratios)


def is_curve(gold: Answer) -> bool:
    """Say whether a gold with a product as its name, xy = 6, may be the equation of a curve."""
    return bool(_PRODUCT.fullmatch(gold.name)) and gold.term is not None and not symbols(gold.term)


def _solves(gold: Answer, other: Answer) -> bool:
    """Say whether an answer is the gold, solved for the one unknown that it leaves out.

    The curve `xy = 6` may be stated as `6/x`. Only where it is linear in that unknown, so that no
    branch is missing.
    """
    equation = _difference(gold)
    if equation is None or other.kind != "value" or other.term is None or not symbols(other.term):
        return False
    missing = symbols(equation) - symbols(other.term)
    if len(missing) != 1 or not symbols(other.term) < symbols(equation):
        return False
    (name,) = missing
    zero, one, two = (
        substituted(equation, name, LatexTerm("num", value=Fraction(place))) for place in range(3)
    )
    bend = minus(LatexTerm("+", (zero, two)), LatexTerm("+", (one, one)))
    nothing, solved = LatexTerm("num"), substituted(equation, name, other.term)
    return (
        _same_term(bend, nothing) is True
        and _same_term(solved, nothing) is True
        and _same_term(zero, one) is False
    )


def _chain(equation: Answer) -> bool:
    """Say whether no two sides are different numbers and the other sides are what was asked for."""
    numbers = [side for side in equation.parts if side.term is not None and not symbols(side.term)]
    if any(_values_agree(numbers[-1], side, None) is not True for side in numbers[:-1]):
        return False  # 27 = 26 states two values
    # m + n = 15 says what m + n is; 2a + z = 1 is an equation.
    unknowns = [side.text for side in equation.parts if side not in numbers]
    return not any(re.search(r"\d", _COEFFICIENTS.sub("", text)) for text in unknowns)


def _constant(equation: Answer) -> bool:
    return all(part.term is not None and not symbols(part.term) for part in equation.parts)


def _difference(equation: Answer) -> LatexTerm | None:
    if equation.kind != "equation":
        left = parse_term(equation.name)
        return minus(left, equation.term) if left and equation.term else None
    left, right = equation.parts[0].term, equation.parts[-1].term
    return minus(left, right) if left and right and len(equation.parts) == 2 else None


def _words(gold: Answer, other: Answer) -> bool | None:
    texts = (gold.text, other.text)
    if all(len(text) == 1 for text in texts) or "\\emptyset" in texts:
        return gold.text == other.text  # {\emptyset} is not \emptyset
    if gold.kind == other.kind == "words" and gold.text == other.text:
        return True
    if gold.term is not None and other.term is not None:
        return _same_term(gold.term, other.term)
    if any(one.kind != "words" and _MARKED.search(one.text) for one in (gold, other)):
        return False  # N is not -N
    a, b = _plain_words(gold.text), _plain_words(other.text)
    return bool(a) and a == b


def _dates(gold: Answer, other: Answer) -> bool:
    """Compare dates, of which one may leave out its year."""
    first, second = sorted((gold.text, other.text), key=len)
    return gold.kind == other.kind and (first == second or (len(first) < 6 and second[5:] == first))


def _plain_words(text: str) -> list[str]:
    words = re.split(r"[^\w\u0300-\u036f\u0900-\u109f]+", text.casefold().replace("\\text", ""))
    return [word for word in words if word not in ("", "and")]


def _based(gold: Answer, other: Answer) -> bool:
    """Compare digits; a missing base is taken from the other answer."""
    texts = [answer.text.partition("_")[0] for answer in (gold, other)]
    return {gold.kind, other.kind} == {"based", "value"} and texts[0] == texts[1]


def _parts(gold: Answer, other: Answer, tolerance: Fraction | None) -> bool | None:
    """Compare the parts of two answers: in any order for lists and sets, else in order."""
    # A gold may come from a table with another comma; a response in English states two numbers.
    if _decimal_comma(gold, other):
        return True
    kinds = {gold.kind, other.kind}
    relations = any(kind.startswith("relation") for kind in kinds)
    if relations and len(kinds) > 1 and "value" not in kinds:
        return None  # 1 <= |z| <= 2 may be written as a union
    first, second = _coordinates(gold), _coordinates(other)
    if (first is None) is not (second is None) and kinds <= {"list", "()"}:
        return _in_order(first or gold.parts, second or other.parts, tolerance)
    if kinds <= UNORDERED:
        members = (gold.parts, other.parts)
        if "set" in kinds:  # which counts no member twice
            members = (_distinct(gold.parts), _distinct(other.parts))
        return _unordered(*members, tolerance)
    # (1, 2) may be written 1, 2, and p = 1, q = 2 as (1, 2): the gold says whether order counts.
    # In reverse only where (1, 2, 3) can be no interval.
    ordered = (gold.kind == "()" and other.kind == "list") or (
        (
            "()" in kinds
            and (_is_vector(gold) or _is_vector(other) or _has_names(gold) or _has_names(other))
        )
        or (gold.kind == "list" and other.kind == "()" and len(other.parts) > 2)
    )
    if len(kinds) > 1 and not ordered:
        return False
    return _in_order(gold.parts, other.parts, tolerance)


def _in_order(
    gold: Sequence[Answer], other: Sequence[Answer], tolerance: Fraction | None
) -> bool | None:
    if len(gold) != len(other):
        return False
    return _all([same(a, b, tolerance) for a, b in zip(gold, other, strict=True)])


def _has_names(answer: Answer) -> bool:
    return answer.kind == "list" and all(part.name for part in answer.parts)


def _coordinates(answer: Answer) -> list[Answer] | None:
    """Return the parts of `y = 2, x = 1` or `(a) 1, (b) 2` by their names; None without such."""
    names = [part.name for part in answer.parts]
    if answer.kind != "list" or len({*names}) < len(names):
        return None
    if not all(_COORDINATE.fullmatch(name) for name in names):
        return None
    if not {*names} <= {*"xyz"}:
        return list(answer.parts)
    return sorted(answer.parts, key=lambda part: part.name)


def _distinct(parts: Sequence[Answer]) -> list[Answer]:
    """Drop the members that are equal to one before them."""
    members: dict[object, Answer] = {}
    for part in parts:  # rational numbers by their value, without comparing each with each
        value = rational(part.term) if part.kind == "value" and not part.unit else None
        members.setdefault(_tight(part.text) if value is None else value, part)
    results: list[Answer] = []
    for key, part in members.items():
        if isinstance(key, Fraction) or not any(same(one, part) for one in results):
            results.append(part)
    return results


def _along(answer: Answer, other: Answer) -> Answer:
    """Return a sum of unit vectors as a point, in space if the other one is; so `x = 1, y = 2`."""
    if _is_vector(answer) and _has_names(other):
        return replace(answer, kind="()")
    if answer.kind != "vector":
        return answer
    parts = answer.parts
    if len(parts) < len(other.parts) == 3:
        parts = (*parts, Answer("value", "0", term=LatexTerm("num")))
    return replace(answer, kind="()", parts=parts)


def _is_vector(answer: Answer) -> bool:
    """Say whether a matrix has one row or one column."""
    return answer.kind in ("matrix 1", f"matrix {len(answer.parts)}")


def _congruent(gold: Answer, other: Answer) -> bool:
    """Compare residue classes; a number is the class that is written with it, 7k + 3 is one."""
    first, second = (_class(one) for one in (gold, other))
    if first is None or second is None:
        return False
    (residue, modulus), (number, by) = first, second
    if modulus is not None and by is not None:
        return modulus == by and (residue - number) % modulus == 0
    return residue == number


def _class(answer: Answer) -> tuple[int, int | None] | None:
    """Return a residue and its modulus, None for a number without one."""
    if answer.kind == "congruence":
        residue, modulus = integer(answer.term), integer(answer.parts[0].term)
        return None if residue is None or modulus is None else (residue, modulus)
    names = symbols(answer.term) if answer.kind == "value" and answer.term else frozenset[str]()
    if answer.term is None or len(names) > 1 or answer.kind != "value":
        return None
    if not names:
        residue = integer(answer.term)
        return None if residue is None else (residue, None)
    (name,) = names
    values = [
        integer(substituted(answer.term, name, LatexTerm("num", value=Fraction(place))))
        for place in range(4)
    ]
    first, second, third, fourth = values
    if first is None or second is None or third is None or fourth is None:
        return None
    step = second - first
    linear = step and third - second == fourth - third == step
    return (first, abs(step)) if linear else None


def _ratios(gold: Answer, other: Answer) -> bool | None:
    """Compare ratios by value: 1:4 is 2:8, and of two parts also a fraction, 1/4."""
    if not {gold.kind, other.kind} <= {"ratio", "value"}:
        return False
    first, second = (_quotients(one) for one in (gold, other))
    if first is None or second is None:
        return None
    if len(first) != len(second):
        return False
    return _all([_same_term(a, b) for a, b in zip(first, second, strict=True)])


def _remainders(gold: Answer, other: Answer) -> bool | None:
    """Compare a quotient and its remainder, 3 R 2, also with the pair 3, 2."""
    if not {gold.kind, other.kind} <= {"remainder", "list", "()"}:
        return False
    return _in_order(gold.parts, other.parts, None)


def _clocks(gold: Answer, other: Answer) -> bool:
    """Compare times of the day; 7:00 may be meant by 7:00 PM, and 19:00 by nothing else."""
    if gold.kind != other.kind or bool(gold.unit) is bool(other.unit):
        return gold.kind == other.kind and gold.text == other.text
    (marked, marked_minute), (bare, minute) = (
        one.text.split(":") for one in sorted((gold, other), key=lambda one: not one.unit)
    )
    return minute == marked_minute and 0 < int(bare) <= 12 and (int(bare) - int(marked)) % 12 == 0


def _quotients(answer: Answer) -> list[LatexTerm] | None:
    """Return the first part over each other one; None if one is not read."""
    if answer.kind == "value":
        return [answer.term] if answer.term else None
    terms = [part.term for part in answer.parts]
    if None in terms:
        return None
    first, *rest = (term for term in terms if term)
    return [LatexTerm("/", (first, term)) for term in rest]


def _decimal_comma(candidate: Answer, other: Answer) -> bool:
    """Read 1,22 as 1.22 if the other side is that number."""
    return _DECIMAL_COMMA.fullmatch(candidate.text) is not None and (
        candidate.text.replace(",", ".") == other.text
    )


def _unordered(
    gold: Sequence[Answer], other: Sequence[Answer], tolerance: Fraction | None
) -> bool | None:
    """Match every part with a distinct one; equality is transitive, so the first match suffices."""
    rest, undecided = list(other), False
    if len(rest) > len(gold):  # a member that the response writes twice counts once
        rest = list({_tight(part.text): part for part in rest}.values())
    if not gold or len(rest) != len(gold):
        return False
    for part in gold:
        verdicts = [same(part, candidate, tolerance) for candidate in rest]
        if True in verdicts:
            del rest[verdicts.index(True)]
        elif None in verdicts:
            undecided = True
        else:
            return False
    return None if undecided else True


def _values_agree(gold: Answer, other: Answer, tolerance: Fraction | None) -> bool | None:
    if gold.term is None or other.term is None:
        return None
    ours, theirs = (_in_radians(a, b) for a, b in ((gold, other), (other, gold)))
    if ours is None or theirs is None:
        return None
    verdict = _same_term(ours, theirs, tolerance)
    if verdict or _rounded(gold, other) or _rounded(other, gold) or _rounds_gold(gold, other):
        return True
    return verdict


def _in_radians(answer: Answer, other: Answer) -> LatexTerm | None:
    """Return 30° as pi/6 beside an angle that is written with pi and without a unit."""
    if (
        not answer.unit >= units.DEGREE
        or other.unit
        or other.term is None
        or not (has_pi(other.term) or other.term.name.startswith("arc"))
    ):
        return answer.term
    half_turn = LatexTerm(
        "/", (LatexTerm("sym", name="\\pi"), LatexTerm("num", value=Fraction(180)))
    )
    return LatexTerm("*", (answer.term, half_turn)) if answer.term else None


def has_pi(term: LatexTerm) -> bool:
    """Say whether pi occurs in a term."""
    return term.name == "\\pi" or any(map(has_pi, term.parts))


def _rounded(decimal: Answer, exact: Answer) -> bool:
    """Say whether a decimal fraction is a non-terminating value, rounded or truncated."""
    if not _ROUNDED.fullmatch(decimal.text):
        return False
    value = _endless(exact)
    if value is None:
        return False
    if len(decimal.text.partition(".")[2].lstrip("0")) < ROUNDED_DIGITS and abs(inexact(value)) < 1:
        return False  # 0.000000 is no 1/3000000
    if PERIOD.fullmatch(exact.text) and _is_one_period(decimal.text, value):
        return False  # 0.142857 has lost the bar
    return -0.5 <= _places_beyond(value, decimal.text) < 1


def _is_one_period(decimal: str, value: Fraction) -> bool:
    """Say whether a decimal ends where the digits of a value repeat for the first time."""
    places = len(decimal.partition(".")[2])
    ends = [_ends(value * (10**place - 1)) for place in range(1, places + 1)]
    period = ends.index(True) + 1 if True in ends else 0
    once = next(
        place
        for place in range(places + 1)
        if (value * (10**period - 1) * 10**place).denominator == 1
    )
    return bool(period) and places == once + period


def _rounds_gold(gold: Answer, other: Answer) -> bool:
    r"""Say whether a gold such as 30.52 is the rounding of the exact value `\frac{1587}{52}`.

    Not symmetric: no decimal is the exact value, so that the gold can be no more than a rounding,
    while a decimal answer with as few places may be the rounding of a wrong value.
    """
    decimal = _ROUNDED_GOLD.fullmatch(gold.text)
    digits = (decimal["number"] or decimal["percent"]) if decimal else ""
    if not decimal or len(digits.replace(".", "").lstrip("-0")) < GOLD_DIGITS:
        return False
    value = None if PERIOD.fullmatch(other.text) else _endless(other)
    if value is not None and decimal["percent"] and gold.text.endswith("per 100"):
        value = value * 100
    return value is not None and abs(_places_beyond(value, digits)) <= 0.5


def is_cut_off(gold: Answer, other: Answer, text: str) -> bool:
    """Say whether a text has the first digits of an endless gold, and dots: 3.1622... of √10.

    Four significant digits are the least; a digit that is rounded up is not one of the gold's, and
    a side before the digits must be the gold itself.
    """
    before = other.parts[:-1] if other.kind == "equation" else ()
    if other.kind not in ("value", "unread", "equation") or not all(
        same(gold, side) for side in before
    ):
        return False
    written = _CUT_OFF.fullmatch(_ASSIGNS.split(text)[-1].strip(" $"))
    value = _endless(gold) if written else None
    if written is None or value is None:
        return False
    digits = written["digits"]
    is_long = len(digits.replace(".", "").lstrip("-0")) >= ROUNDED_DIGITS
    return is_long and 0 <= _places_beyond(value, digits) < 1


def is_share(gold: Answer, share: Answer) -> bool:
    """Say whether a share in hundredths is the gold, which is in per cent."""
    exact = rational(share.term)
    return (exact is not None and exact == rational(gold.term)) or _rounds_gold(gold, share)


def _endless(answer: Answer) -> Value | None:
    """Return the value of a real constant without a finite decimal expansion."""
    value = _evaluated(answer.term)
    if answer.term is None or value is None or symbols(answer.term) or inexact(value).imag != 0:
        return None
    return None if isinstance(value, Fraction) and _ends(value) else value


def _places_beyond(value: Value, decimal: str) -> float:
    """Return how far a value is from a decimal, away from zero, in units of its last place."""
    number, places = Fraction(decimal), len(decimal.partition(".")[2])
    if (number < 0) != (inexact(value).real < 0):
        return math.inf
    return float((abs(inexact(value)) - abs(inexact(number))) * 10**places)


def _ends(value: Fraction) -> bool:
    """Say whether the decimal expansion of a value terminates."""
    below = value.denominator
    for prime in (2, 5):
        while below % prime == 0:
            below //= prime
    return below == 1


def _same_term(gold: LatexTerm, other: LatexTerm, tolerance: Fraction | None = None) -> bool | None:
    if not symbols(gold) and not symbols(other):
        a, b = _evaluated(gold), _evaluated(other)
        if a is None or b is None:
            return None if a is None else False
        return _same_value(a, b, tolerance)
    pairs = [
        (a, b)
        for a, b in zip(_at_points(gold, other), _at_points(other, gold), strict=True)
        if a is not None
    ]
    if any(b is None or not _same_value(a, b) for a, b in pairs):
        return False
    return True if len(pairs) > 1 else None


def rational(term: LatexTerm | None) -> Fraction | None:
    """Return the value of a constant, if it is a fraction."""
    value = _evaluated(term)
    return value if isinstance(value, Fraction) else None


def _evaluated(term: LatexTerm | None) -> Value | None:
    try:
        return None if term is None else value_of(term, {})
    except (TooLarge, ArithmeticError, ValueError, KeyError):
        return None


def _at_points(term: LatexTerm, other: LatexTerm | None = None) -> list[Value | None]:
    """Evaluate at the points; None where there is no value."""
    names = sorted(symbols(term) | (symbols(other) if other else frozenset()))
    values: list[Value | None] = []
    steps = _has_steps(term) or (other is not None and _has_steps(other))
    for point in (*POINTS, *STEPS) if steps else POINTS:
        spread = {
            name: point[place % len(point)] + place // len(point)
            for place, name in enumerate(names)
        }
        try:
            values.append(value_of(term, spread))
        except (TooLarge, ArithmeticError, ValueError):
            values.append(None)
    return values


def _has_steps(term: LatexTerm) -> bool:
    return term.name in ("floor", "ceiling") or any(map(_has_steps, term.parts))


def _same_value(a: Value, b: Value, tolerance: Fraction | None = None) -> bool:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b or (tolerance is not None and abs(a - b) <= tolerance)
    x, y = inexact(a), inexact(b)
    distance, size = abs(x - y), max(abs(x), abs(y))
    if tolerance is not None and distance <= inexact(tolerance):
        return True
    exact_zero = 0 in (a, b)
    return distance <= 10.0**-SAME_DIGITS * (1 if exact_zero else size)
