r"""Sets of real numbers in every notation: intervals, inequalities, set builders, complements."""

import random
from fractions import Fraction

from tasks.gym.maths.compare import same
from tasks.gym.maths.parse import parse
from tests.tables import for_each

EQUAL = [
    (r"\{x : x > 2\}", r"(2, \infty)"),
    (r"\left\{ x \,\middle|\, x \ge 2 \right\}", r"[2, +\infty)"),
    (r"\{x \in \mathbb{R} \mid 2 < x\}", r"\{y : y > 2\}"),
    (r"\{x \mid x < 1 \text{ or } x > 2\}", r"(-\infty, 1) \cup (2, \infty)"),
    (r"x < 1 \text{ or } x > 2", r"\{t \colon t > 2 \lor t < 1\}"),
    (r"\{x \mid x > 1 \text{ and } x < 2\}", "(1, 2)"),
    (r"\{x \mid -1 \le x \le 1, x \ne 0\}", r"[-1, 0) \cup (0, 1]"),
    (r"x \ne 2", r"(-\infty, 2) \cup (2, \infty)"),
    (r"\mathbb{R} \setminus \{2\}", r"x \neq 2"),
    (r"\{x \mid x < 3\} - \{-6\}", r"(-\infty, -6) \cup (-6, 3)"),
    (r"(0, 5] \setminus \{1, 2\}", r"(0, 1) \cup (1, 2) \cup (2, 5]"),
    (r"\text{all real numbers}", r"(-\infty, \infty)"),
    (r"\{x \mid x \in \mathbb{R}\}", r"\mathbb{R}"),
    (r"\{x \mid x = 1 \text{ or } x = 2\}", r"\{1, 2\}"),
    (r"\{x \in \mathbb{Z} : 0 < x < 4\}", r"\{1, 2, 3\}"),
    (r"[0, 1] \cup [1, 3]", "[0, 3]"),
    (r"[1, 2) \cup \{3\}", r"\{3\} \cup [1, 2)"),
    (r"\{x : x > \sqrt{8}\}", r"(2\sqrt2, \infty)"),
]
DIFFERENT = [
    (r"\{x : x > 2\}", r"[2, \infty)"),
    (r"\{x \in \mathbb{Z} : x > 2\}", r"(2, \infty)"),
    (r"\{x \in \mathbb{Z} : 0 < x < 4\}", r"\{1, 2\}"),
    (r"\{x \mid x < 1, x > 2\}", r"(-\infty, 1) \cup (2, \infty)"),
    ("(0, 1) \\cup (1, 3)", "(0, 3)"),
    (r"x \ne 2", r"x \ne 3"),
    (r"\mathbb{R}", r"(0, \infty)"),
    (r"\{1, 2\}", "[1, 2]"),
]


@for_each(("left", "right"), EQUAL)
def test_a_set_has_one_value_in_every_notation(left: str, right: str) -> None:
    assert (True, True) == (same(parse(left), parse(right)), same(parse(right), parse(left)))


@for_each(("left", "right"), DIFFERENT)
def test_sets_that_differ_in_one_number_differ(left: str, right: str) -> None:
    assert True not in (same(parse(left), parse(right)), same(parse(right), parse(left)))


def test_integers_without_an_end_are_not_decided() -> None:
    builder = parse(r"\{x \in \mathbb{Z} : x > 2\}")
    assert same(builder, parse(r"\{3, 4, 5\}")) is not True


def _ends(draw: random.Random) -> list[tuple[int, int]]:
    """Return disjoint intervals that do not touch."""
    places = sorted(draw.sample(range(-30, 30), 2 * draw.randint(1, 3)))
    return list(zip(places[::2], places[1::2], strict=True))


def _union(ends: list[tuple[int, int]]) -> str:
    return r" \cup ".join(rf"(\frac{{{low}}}{{2}}, {Fraction(high, 2)}]" for low, high in ends)


def _conditions(ends: list[tuple[int, int]]) -> str:
    parts = [rf"\frac{{{high}}}{{2}} \ge z > {Fraction(low, 2)}" for low, high in reversed(ends)]
    return r"\{z \mid " + r" \text{ or } ".join(parts) + r"\}"


@for_each("seed", range(6))
def test_intervals_inequalities_and_builders_agree_on_equal_sets_only(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        one, two = _ends(draw), _ends(draw)
        for left in (_union, _conditions):
            for right in (_union, _conditions):
                first, second = parse(left(one)), parse(right(two))
                assert same(first, parse(right(one))) is True
                assert same(first, second) is (one == two)
                assert same(second, first) is (one == two)
