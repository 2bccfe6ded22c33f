"""Solved by level."""

from data_schemas.rows import Domain
from data_schemas.samples import SampleResult
from tests.bench.levels import by_level
from tests.records import filled


def answer(level, score):
    return filled(
        SampleResult, domain=Domain.TOOL_USE, source="sample_wishes", score=score, level=level
    )


def test_levels_are_in_order_with_all_behind_them_and_no_answer_without_a_verdict():
    found = by_level([answer(2, 1.0), answer(1, 0.0), answer(1, 1.0), answer(1, None)])

    assert ["1", "2", "all"] == [*found]
    assert {"responses": 2, "solved": 0.5} == found["1"]
    assert {"responses": 3, "solved": 2 / 3} == found["all"]
    assert {} == by_level([answer(1, None)])
