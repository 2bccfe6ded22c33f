r"""Sets of real numbers by value: `x > 2`, `(2, \infty)` and `\{x : 2 < x\}` are one set.

A set that intervals, points, unions, intersections and complements describe changes its membership
at the numbers that it names only. Two such sets are equal if they agree at each of these numbers,
between them and beyond them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tasks.gym.maths.latex_terms import Value, inexact
from tasks.gym.maths.parse import INTERVALS, Answer

MAX_INTEGERS = 200
"""Most members of a set of integers that are listed."""
MAX_BORDERS = 400
"""Most numbers at which two sets are compared."""
SAME_DIGITS = 40
_INFINITE = {"\\infty": math.inf, "+\\infty": math.inf, "-\\infty": -math.inf}
"""Floats, which no other number here is."""
_JOINED = frozenset({"list", "union", "intersection", "difference", "integers"})
Evaluate = Callable[[Answer], Value | None]


@dataclass(frozen=True, slots=True)
class Region:
    """A set of real numbers: where it may begin or end, and its membership."""

    borders: tuple[Value, ...]
    contains: Callable[[Value], bool]


def same_region(gold: Answer, other: Answer, evaluate: Evaluate) -> bool | None:
    """Compare two sets; None if one of them is no set of numbers that is read.

    Args:
        gold: any answer, as `other`.
        other: compared symmetrically.
        evaluate: gives the value of a constant, None for what has unknowns or no value.
    """
    ours, theirs = (_region(one, evaluate) for one in (gold, other))
    if ours is None or theirs is None:
        return None
    if len(ours.borders) + len(theirs.borders) > MAX_BORDERS:
        return None
    points = _points((*ours.borders, *theirs.borders))
    return all(ours.contains(point) == theirs.contains(point) for point in points)


def _points(borders: Sequence[Value]) -> Iterator[Value]:
    """Give the borders, a number between each two, and one beyond them on both sides."""
    distinct = list[Value]()
    for border in sorted(borders, key=inexact):
        if not distinct or _order(distinct[-1], border):
            distinct.append(border)
    if not distinct:
        yield Fraction(0)
        return
    yield from distinct
    yield distinct[0] - 1
    yield distinct[-1] + 1
    yield from ((inexact(low) + inexact(high)) / 2 for low, high in pairwise(distinct))


def _order(a: Value, b: Value) -> int:
    """Return -1, 0 or 1 as the first number is less, equal or more."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return (a > b) - (a < b)
    x, y = inexact(a), inexact(b)
    if abs(x - y) <= 10.0**-SAME_DIGITS * max(1, abs(x), abs(y)):
        return 0
    return 1 if x > y else -1


def _region(answer: Answer, evaluate: Evaluate) -> Region | None:
    """Return the set that an answer describes; None if it describes none."""
    if answer.kind in INTERVALS:
        return _interval(answer, evaluate)
    if answer.kind in ("set", "complement"):
        return _members(answer, evaluate)
    if answer.kind == "value" and answer.name:  # x = 1, of `x = 1 or x > 2`
        return _members(Answer("set", answer.text, (answer,)), evaluate)
    is_list = (
        answer.kind == "list"
        and all(part.name and part.kind in INTERVALS for part in answer.parts)
        and len({part.name for part in answer.parts}) == 1  # y > 3 says nothing of x
    )
    if answer.kind not in _JOINED or (answer.kind == "list" and not is_list):
        return None
    parts = [_region(part, evaluate) for part in answer.parts]
    regions = [part for part in parts if part is not None]
    return _joined(answer.kind, regions) if regions and len(regions) == len(parts) else None


def _joined(kind: str, regions: Sequence[Region]) -> Region | None:
    if kind == "integers":
        return _integers(regions[0])
    first, *rest = regions

    def contains(point: Value) -> bool:
        match kind:
            case "intersection":
                return all(one.contains(point) for one in regions)
            case "difference":
                return first.contains(point) and not any(one.contains(point) for one in rest)
            case _:
                return any(one.contains(point) for one in regions)

    return Region(tuple(border for one in regions for border in one.borders), contains)


def _interval(answer: Answer, evaluate: Evaluate) -> Region | None:
    if len(answer.parts) != 2:  # a point of three coordinates
        return None
    low, high = (_bound(part, evaluate) for part in answer.parts)
    if low is None or high is None or low == math.inf or high == -math.inf:
        return None
    least, most = (None if isinstance(bound, float) else bound for bound in (low, high))
    if least is not None and most is not None and _order(least, most) >= 0:
        return None  # (2, 1) is a point
    opens, closes = answer.kind

    def contains(point: Value) -> bool:
        above = least is None or _order(point, least) >= (0 if opens == "[" else 1)
        return above and (most is None or _order(most, point) >= (0 if closes == "]" else 1))

    return Region(tuple(bound for bound in (least, most) if bound is not None), contains)


def _bound(part: Answer, evaluate: Evaluate) -> Value | None:
    infinite = _INFINITE.get(part.text.replace(" ", ""))
    return _real(part, evaluate) if infinite is None else infinite


def _real(part: Answer, evaluate: Evaluate) -> Value | None:
    value = evaluate(part) if part.kind == "value" else None
    return None if value is None or inexact(value).imag != 0 else value


def _members(answer: Answer, evaluate: Evaluate) -> Region | None:
    """Return a finite set, or all numbers but its members."""
    values = [_real(part, evaluate) for part in answer.parts]
    if None in values:
        return None
    inside = answer.kind == "set"
    return Region(
        tuple(values),
        lambda point: any(_order(point, value) == 0 for value in values) is inside,
    )


def _integers(region: Region) -> Region | None:
    """Return the integers of a bounded set."""
    if not region.borders or any(
        region.contains(beyond)
        for beyond in (
            min(region.borders, key=inexact) - 1,
            max(region.borders, key=inexact) + 1,
        )
    ):
        return None
    low, high = (int(edge(map(inexact, region.borders))) for edge in (min, max))
    if high - low > MAX_INTEGERS:
        return None
    members = {
        Fraction(number) for number in range(low - 1, high + 2) if region.contains(Fraction(number))
    }
    return Region(tuple(sorted(members)), members.__contains__)
