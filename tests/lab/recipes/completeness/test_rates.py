"""Rates of complete explanations against the worked example."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tasks.lab.recipes.completeness.rates import Category, JudgedExplanation, matched, rates

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
GIVEN = ("remark", "request", "category", "definitions", "covered", "senses")


def row_of(given):
    return JudgedExplanation(
        **{name: given[name] for name in GIVEN} | {"category": Category(given["category"])}
    )


ROWS = [row_of(given) for given in VECTORS["rows"]]


@pytest.mark.parametrize("given", VECTORS["rows"])
def test_a_row_of_the_worked_example(given):
    row = row_of(given)

    for name in ("consistent", "marker", "full", "complete", "aware"):
        assert given[name] == getattr(row, name), name


def test_the_rates_of_the_worked_example():
    found = asdict(rates(ROWS))

    assert VECTORS["rates"] == pytest.approx(
        {name: found[name] for name in VECTORS["rates"]}, abs=2e-6
    )
    wrong = VECTORS["complete_if_dropped_counts_as_incomplete"]
    assert wrong == pytest.approx(found["complete_if_dropped_are_wrong"], abs=2e-6)
    assert 4 / 7 == pytest.approx(found["complete_if_dropped_are_right"])
    assert found["complete"] == pytest.approx(found["marker"] + found["full"] - found["both"])


def test_the_order_of_rows_changes_nothing_and_no_row_gives_zeros():
    assert rates(ROWS) == rates(ROWS[::-1])
    assert {0} == set(asdict(rates([])).values())
    assert 2 == rates([None, None]).dropped


@pytest.mark.parametrize("place", range(len(ROWS)))
def test_a_verdict_that_contradicts_itself_never_raises_the_lower_bound(place):
    broken = [*ROWS]
    broken[place] = row_of(VECTORS["rows"][place] | {"category": "One", "definitions": 2})

    before, after = rates(ROWS), rates(broken)
    assert after.complete_if_dropped_are_wrong <= before.complete_if_dropped_are_wrong
    assert after.complete_if_dropped_are_right >= before.complete_if_dropped_are_right


def test_a_definition_is_that_of_its_most_similar_sense():
    example = VECTORS["match"]

    assert set(example["senses_found"]) == matched(example["similarity_definition_by_sense"])
    assert set() == matched([])
