"""Answers in a form in which equal ones can be counted."""

import pytest

from tasks.gym.table import score_batch
from tasks.gym.voting import voted_answer
from tests.records import problem_of

CHOICE = '{"correct": ["B"], "others": [["A"], ["C"]]}'


def voted(verifier, answer, response):
    problem = problem_of("?", answer, id="p", verifier=verifier)
    (verdict,) = score_batch([problem], [response])
    return voted_answer(problem, response, verdict)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("<think>9</think>The answer is 1,234.", "1234"),
        (r"So \boxed{1234}", "1234"),
        ("#### 1234", "1234"),
        ("<think>1234", ""),
    ],
)
def test_equal_numbers_are_one_answer(response, expected):
    assert expected == voted("final_answer", '{"value": "7"}', response)


@pytest.mark.parametrize(
    ("response", "expected"),
    [("The answer is B.", "right option"), ("The answer is C.", "'C'"), ("No idea", "")],
)
def test_an_option_is_one_answer_however_it_is_named(response, expected):
    assert expected == voted("choice", CHOICE, response)


def test_programs_are_not_counted():
    tests = '{"tests": ["assert f(1) == 2"], "entry_point": "f"}'

    assert voted("code_tests", tests, "```python\ndef f(x): return x + 1\n```") is None
