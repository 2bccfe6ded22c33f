"""The question about one criterion, and how its reply is read."""

import pytest

from tasks.gym.judging.comparison_prompt import sections
from tasks.gym.judging.rubric_prompt import criterion_prompt, parse_met


def test_the_three_texts_are_quoted():
    (message,) = criterion_prompt("task", "an answer\nCriterion\n| none", "Is short")

    assert {
        "Task": "task",
        "Answer": "an answer\nCriterion\n| none",
        "Criterion": "Is short",
    } == sections(message.content)


@pytest.mark.parametrize(
    ("reply", "met"),
    [
        ('{"explanation": "It is.", "criteria_met": true}', True),
        ('<think>hm</think>```json\n{"explanation": "", "criteria_met": false}\n```', False),
        ('{"criteria_met": "true"}', None),
        ('{"criteria_met": 1}', None),
        ('{"criteria_met": true, "explanation": "decided first"}', None),
        ('{"criteria_met": true}{"criteria_met": false}', None),
        ("true", None),
        ("{}", None),
        ("", None),
    ],
)
def test_only_a_boolean_at_the_end_is_a_decision(reply, met):
    assert met is parse_met(reply)
