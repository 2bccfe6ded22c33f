"""Answers by mode of thinking."""

import pytest

from data_schemas.samples import SampleResult
from tests.bench.thinking_modes import measure, thought
from tests.records import filled


def answer(source, text, score, tokens):
    return filled(
        SampleResult, source=source, text=text, score=score, tokens=tokens, answer=None, level=0
    )


def test_modes_are_counted_apart_by_hand():
    found = measure(
        [
            answer("sample_fast", "<think></think>7", 1.0, 4),
            answer("sample_fast", "<think>3 + 4</think>7", 0.0, 8),
            answer("sample_slow", "<think>3 + 4</think>7", 1.0, 9),
            answer("sample_harmful", "no", 1.0, 1),
        ]
    )

    assert {"responses": 2, "solved": 0.5, "tokens": 6.0, "empty": 0.5} == found["sample_fast"]
    assert {"responses": 1, "solved": 1.0, "tokens": 9.0, "empty": 0.0} == found["sample_slow"]
    assert {"sample_fast", "sample_slow"} == {*found}


@pytest.mark.parametrize(
    ("text", "expected"), [("7", ""), ("<think> </think>7", ""), ("<think>a", "a")]
)
def test_the_thought_of_a_response(text, expected):
    assert expected == thought(text)
