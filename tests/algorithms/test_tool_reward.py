"""R_correct of ToolRL with optimal assignment, against the specification's vectors."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.tool_reward import (
    ToolCall,
    raw_match,
    same_json,
    tool_correctness,
    tool_reward,
)

CASES = json.loads((Path(__file__).parent / "tool_reward_vectors.json").read_text())["cases"]

SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2)
CALLS = st.lists(
    st.builds(
        ToolCall, st.sampled_from("fg"), st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2)
    ),
    max_size=4,
)


def calls(rows: list[dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(**row) for row in rows]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_vectors_hold(case: dict) -> None:
    truth, predicted = calls(case["gt"]), calls(case["pred"])

    assert case["raw"] == pytest.approx(raw_match(truth, predicted), abs=1e-9)
    assert case["r_correct_optimal"] == pytest.approx(tool_correctness(truth, predicted), abs=1e-9)


def test_unparsable_calls_are_worst_and_without_truth_the_reward_is_zero() -> None:
    assert -3.0 == tool_correctness([ToolCall("f", {})], None)
    assert 0.0 == tool_correctness([], None)
    assert 0.0 == tool_correctness([], [ToolCall("f", {})])


def test_the_format_adds_one() -> None:
    truth = [ToolCall("f", {"a": 1})]

    assert 4.0 == tool_reward(truth, truth, well_formed=True)
    assert 3.0 == tool_reward(truth, truth, well_formed=False)
    assert -3.0 == tool_reward(truth, None, well_formed=False)


@given(truth=CALLS.filter(bool), data=st.data())
def test_the_order_of_calls_does_not_matter(truth: list[ToolCall], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(truth))

    assert 3.0 == pytest.approx(tool_correctness(truth, shuffled))


@given(truth=CALLS.filter(bool), predicted=CALLS)
def test_the_reward_stays_in_range_and_an_extra_call_never_gains(truth, predicted) -> None:
    reward = tool_correctness(truth, predicted)

    assert -3.0 <= reward <= 3.0
    assert tool_correctness(truth, [*predicted, ToolCall("other", {})]) <= reward


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ([1, 2], [2, 1], False),
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (None, 0, False),
    ],
)
def test_values_are_compared_with_their_json_types(a: object, b: object, same: bool) -> None:
    assert same == same_json(a, b) == same_json(b, a)
