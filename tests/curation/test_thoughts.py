"""Responses of several layouts, in the one form that curation takes."""

import pytest

from tasks.curation.thoughts import as_response


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("<think>a</think>b", "<think>a</think>b"),
        (" <think>a</think>\r\nb ", "<think>a</think>\nb"),
        ("<Thought>\na\n</Thought>\n\n<Output>\nb\n</Output>", "<think>a</think>b"),
        ("<reasoning>a</reasoning><answer>b</answer>", "<think>a</think>b"),
        ("<thinking>a</thinking>\nb", "<think>a</think>b"),
        ("b", "<think></think>b"),
        ("a</think>b", "a</think>b"),
        ("<Thought>a", "<think></think><Thought>a"),
    ],
)
def test_a_thought_is_written_in_one_way(text, response):
    assert response == as_response(text)
