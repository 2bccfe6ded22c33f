"""Laws of the comparison over all kinds of answers, from values that the test makes itself.

A value is drawn with several spellings of it. Two spellings of one value are the same, two values
of one kind are not, in either direction; what is compared with another kind has one verdict from
both sides, but for the few directions that `compare` names.
"""

import itertools
from collections.abc import Callable, Hashable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.gym.maths.compare import same
from tasks.gym.maths.parse import parse

Drawn = tuple[str, Hashable, list[str]]
"""The kind of a value, the value, and spellings of it."""
SMALL = st.integers(-12, 12)
MONTHS = "January February March April May June July August September October November December"


def fraction(top: int, bottom: int) -> list[str]:
    value = Fraction(top, bottom)
    sign, size = "-" if value < 0 else "", abs(value)
    spellings = [
        f"{top}/{bottom}",
        rf"{sign}\frac{{{size.numerator}}}{{{size.denominator}}}",
        rf"\dfrac{{{3 * top}}}{{{3 * bottom}}}",
    ]
    whole, rest = divmod(size.numerator, size.denominator)
    if whole and rest:
        spellings.append(rf"{sign}{whole}\frac{{{rest}}}{{{size.denominator}}}")
    digits, remainders = "", [rest]
    while remainders[-1] and remainders.count(remainders[-1]) == 1:
        digit, left = divmod(remainders[-1] * 10, size.denominator)
        digits, remainders = f"{digits}{digit}", [*remainders, left]
    if not remainders[-1]:
        return [*spellings, f"{sign}{whole}.{digits or 0}"]
    start = remainders.index(remainders[-1])
    once, period = digits[:start], digits[start:]
    return [
        *spellings,
        rf"{sign}{whole}.{once}\overline{{{period}}}",
        f"{sign}{whole}.{once}({period})",
    ]


def polynomial(two: int, one: int, zero: int) -> list[str]:
    terms = [f"{two}x^2", f"{one}x", f"{zero}"]
    return ["+".join(order).replace("+-", "-") for order in itertools.permutations(terms)]


def interval(low: int, high: int, ends: str) -> list[str]:
    first, last = ("\\le" if end in "[]" else "<" for end in ends)
    french = ("[" if ends[0] == "[" else "]") + f"{low}, {high}" + ("]" if ends[1] == "]" else "[")
    plain = f"{ends[0]}{low}, {high}{ends[1]}"
    return [plain, rf"x \in {plain}", f"{low} {first} x {last} {high}", french]


def members(values: list[int]) -> list[str]:
    written = [", ".join(map(str, order)) for order in (values, values[::-1], [*values, values[0]])]
    return [rf"\{{{text}\}}" for text in written]


def drawn(kind: str, value: Hashable, spellings: list[str]) -> Drawn:
    return kind, value, spellings


KINDS: dict[str, st.SearchStrategy[Drawn]] = {
    "integer": st.integers(-(10**7), 10**7).map(
        lambda n: drawn(
            "integer", n, [f"{n}", f"{n:,}", f"${n}$", f"{n}.0", rf"\frac{{{2 * n}}}{{2}}"]
        )
    ),
    "fraction": st.tuples(SMALL, st.integers(2, 30)).map(
        lambda t: drawn("fraction", Fraction(*t), fraction(*t))
    ),
    "surd": st.tuples(SMALL, st.integers(1, 9), st.sampled_from([2, 3, 5, 7])).map(
        lambda t: drawn(
            "surd",
            t,
            [
                rf"{t[0]}+{t[1]}\sqrt{{{t[2]}}}",
                rf"{t[1]}\sqrt{t[2]}+({t[0]})",
                rf"\frac{{{2 * t[0]}+{t[1]}\sqrt{{{4 * t[2]}}}}}{{2}}",
            ],
        )
    ),
    "complex": st.tuples(SMALL, st.integers(1, 9)).map(
        lambda t: drawn("complex", t, [f"{t[0]}+{t[1]}i", f"{t[1]}i+({t[0]})"])
    ),
    "ratio": st.tuples(st.integers(1, 9), st.integers(1, 9)).map(
        lambda t: drawn(
            "ratio", Fraction(*t), [f"{t[0]}:{t[1]}", f"{3 * t[0]} : {3 * t[1]}", f"{t[0]}/{t[1]}"]
        )
    ),
    "point": st.tuples(SMALL, SMALL).map(
        lambda t: drawn(
            "point",
            t,
            [
                f"({t[0]}, {t[1]})",
                rf"\begin{{pmatrix}} {t[0]} \\ {t[1]} \end{{pmatrix}}",
                rf"\langle {t[0]}, {t[1]} \rangle",
                f"y = {t[1]}, x = {t[0]}",
            ],
        )
    ),
    "matrix": st.tuples(SMALL, SMALL, SMALL, SMALL).map(
        lambda t: drawn(
            "matrix",
            t,
            [
                rf"\begin{{pmatrix}} {t[0]} & {t[1]} \\ {t[2]} & {t[3]} \end{{pmatrix}}",
                f"[[{t[0]}, {t[1]}], [{t[2]}, {t[3]}]]",
            ],
        )
    ),
    "set": st.lists(SMALL, min_size=2, max_size=4, unique=True).map(
        lambda values: drawn("set", frozenset(values), members(values))
    ),
    "interval": st.tuples(SMALL, st.integers(1, 9), st.sampled_from(["()", "[)", "(]", "[]"])).map(
        lambda t: drawn("interval", t, interval(t[0], t[0] + t[1], t[2]))
    ),
    "class": st.tuples(st.integers(0, 99), st.integers(2, 12)).map(
        lambda t: drawn(
            "class",
            (t[0] % t[1], t[1]),
            [
                rf"x \equiv {t[0]} \pmod{{{t[1]}}}",
                f"{t[0] % t[1]} (mod {t[1]})",
                f"{t[1]}k + {t[0] % t[1]}",
            ],
        )
    ),
    "polynomial": st.tuples(st.integers(1, 9), SMALL, SMALL).map(
        lambda t: drawn("polynomial", t, polynomial(*t))
    ),
    "line": st.tuples(st.integers(1, 9), SMALL).map(
        lambda t: drawn("line", t, [f"y = {t[0]}x + ({t[1]})", f"{t[0]}x - y + ({t[1]}) = 0"])
    ),
    "date": st.dates()
    .filter(lambda day: day.year > 1500)
    .map(
        lambda day: drawn(
            "date",
            day,
            [
                f"{MONTHS.split()[day.month - 1]} {day.day}, {day.year}",
                f"{day.day} {MONTHS.split()[day.month - 1]} {day.year}",
            ],
        )
    ),
    "letter": st.sampled_from("NnKkARr").map(lambda one: drawn("letter", one, [one, f"${one}$"])),
}
DIRECTED = (
    frozenset({"integer", "class"}),  # 3 (mod 7) is a 3, 7k + 3 is none
    frozenset({"polynomial", "line"}),  # a gold with y may be stated as what y is
    frozenset({"class", "line"}),
)
"""Kinds between which the gold says what is asked for."""


def one_value_has_one_verdict(value: Drawn) -> None:
    for left, right in itertools.product(map(parse, value[2]), repeat=2):
        assert same(left, right) is True, (left.text, right.text)


def two_values_differ(first: Drawn, second: Drawn) -> None:
    for left, right in itertools.product(map(parse, first[2]), map(parse, second[2])):
        if first[0] == second[0]:
            assert (first[1] == second[1]) is bool(same(left, right)), (left.text, right.text)
        elif frozenset({first[0], second[0]}) not in DIRECTED:
            assert bool(same(left, right)) is bool(same(right, left)), (left.text, right.text)


ANY = st.one_of(*KINDS.values())
PAIRS = st.one_of(*(st.tuples(kind, kind) for kind in KINDS.values()))


@settings(max_examples=40)
@given(ANY)
def test_the_spellings_of_a_value_are_the_same(value: Drawn) -> None:
    one_value_has_one_verdict(value)


@settings(max_examples=60)
@given(PAIRS)
def test_two_values_of_a_kind_differ_in_every_spelling(pair: tuple[Drawn, Drawn]) -> None:
    two_values_differ(*pair)


@settings(max_examples=40)
@given(ANY, ANY)
def test_a_comparison_of_two_kinds_has_no_direction(first: Drawn, second: Drawn) -> None:
    two_values_differ(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_hold_for_every_kind(kind: str) -> None:
    laws: list[tuple[Callable[..., None], tuple[st.SearchStrategy[Drawn], ...]]] = [
        (one_value_has_one_verdict, (KINDS[kind],)),
        (two_values_differ, (KINDS[kind], KINDS[kind])),
        (two_values_differ, (KINDS[kind], ANY)),
    ]
    for law, drawings in laws:
        settings(max_examples=400)(given(*drawings)(law))()
