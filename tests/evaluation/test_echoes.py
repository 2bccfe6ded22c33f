"""Texts that do no task: problems to train on choose them, held-out ones score them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.reports import EchoScore
from data_schemas.rows import Domain, Problem
from data_schemas.samples import SampleResult
from tasks.evaluation.echoes import Floor, compare_with_floors, held_out_echoes
from tests.records import filled, problem_of

COLOURS = ("dark plum", "pale teal", "warm onyx", "cold jade")


def choices(name: str, places: Sequence[int]) -> list[Problem]:
    """Questions for a colour of four, whose answer stands in these places."""
    return [
        problem_of(
            f"Colour {number}? {', '.join(COLOURS)}",
            json.dumps(
                {
                    "correct": [COLOURS[place]],
                    "others": [[one] for one in COLOURS if one != COLOURS[place]],
                }
            ),
            id=f"{name}/{number}",
            domain=Domain.CHOICE,
            verifier="choice",
            source=name,
            source_row=str(number),
        )
        for number, place in enumerate(places)
    ]


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """The first option is right four times of five."""
    path = tmp_path / "problems.parquet"
    write_table(path, Problem, choices("training", [0, 0, 0, 0, 2] * 20))
    return path


def test_what_is_best_on_held_out_problems_by_luck_is_not_what_a_candidate_has_to_exceed(training):
    (floor,) = held_out_echoes(training, choices("held_out", [0, 3, 3, 3]))
    echo = floor.echo

    assert ("domain:choice", 0.25, 4) == (echo.suite, echo.score, echo.problems)


def test_a_domain_that_is_only_held_out_has_the_best_text_on_its_own_problems(tmp_path):
    path = tmp_path / "problems.parquet"
    write_table(path, Problem, [])

    (floor,) = held_out_echoes(path, choices("held_out", [0, 3, 3, 3]))

    assert 0.75 == floor.echo.score


def result(name: str, score: float) -> SampleResult:
    return filled(
        SampleResult,
        problem_id=name,
        domain=Domain.CHOICE,
        score=score,
        reason="correct" if score else "wrong",
        answer=None,
    )


def test_a_model_is_compared_with_the_text_on_the_same_problems() -> None:
    echo = EchoScore(suite="domain:choice", text="A", score=0.5, accuracy=0.5, problems=4)
    floor = Floor(echo, {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0, "not answered": 1.0})
    samples = [result(name, float(name != "b")) for name in "abcd"]

    (one,) = compare_with_floors([floor], samples, seed=0)

    # 0, -1, 1 and 1 points
    assert 0.25 == one.difference
    assert one.low is not None
    assert one.high is not None
    assert one.low < 0.0 < one.high


def test_a_family_without_a_common_problem_is_not_compared() -> None:
    echo = EchoScore(suite="domain:choice", text="A", score=0.5, accuracy=0.5, problems=1)

    (one,) = compare_with_floors([Floor(echo, {"x": 1.0})], [result("a", 1.0)], seed=0)

    assert one.difference is None
