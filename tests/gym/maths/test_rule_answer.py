"""The verifier by rules: what equals what, what is refused, what +1 and -1 mean."""

import json

import pytest

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.gym.maths import symbolic
from tasks.gym.maths.rule_answer import verify


@pytest.fixture(scope="module", autouse=True)
def _no_worker_stays():
    yield
    symbolic.close()


def problem_of(value: str) -> Problem:
    return Problem(
        id="test/one",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="question"),),
        verifier="rule_answer",
        answer=json.dumps({"value": value}),
        source="test",
        source_row="0",
    )


def judged(value: str, response: str) -> tuple[float | None, str]:
    verdict = verify(problem_of(value), response)
    return verdict.score, verdict.reason


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("so \\boxed{26}", (1.0, "correct")),
        ("\\boxed{26} and again \\boxed{26.0}", (1.0, "correct")),
        ("#### 26", (1.0, "correct")),
        ("26", (1.0, "correct")),
        ("\\boxed{27}", (0.0, "wrong")),
        ("\\boxed{26} or \\boxed{27}", (0.0, "several_answers")),
        ("\\boxed{26", (0.0, "no_answer")),
        ("A: 27\nA: 26", (0.0, "several_answers")),
        ("It is 26,\nI think.", (0.0, "no_answer")),
        ("<think>\\boxed{26}</think>\\boxed{27}", (0.0, "wrong")),
    ],
)
def test_every_box_must_be_right(response: str, verdict: tuple[float, str]) -> None:
    assert verdict == judged("26", response)


def test_a_list_may_stand_in_a_box_per_part() -> None:
    assert (1.0, "correct") == judged("1, 2", "$\\boxed{2}$ and $\\boxed{1}$")
    assert (0.0, "several_answers") == judged("1, 2", "\\boxed{2}, \\boxed{1}, \\boxed{3}")
