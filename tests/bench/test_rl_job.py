"""What the RL benchmarks ask."""

import pytest

from tests.bench.rl_job import problems, reward


def test_questions_differ_and_half_of_all_answers_are_right():
    asked = problems(10)

    assert 10 == len({problem.messages[0].content for problem in asked})
    assert 0.5 == pytest.approx(sum(reward("a" * length) for length in range(10)) / 10)
