"""Texts that do no task: problems to train on choose them, held-out ones score them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.rows import Domain, Message, Problem, Role
from tasks.evaluation.echoes import held_out_echoes

COLOURS = ("dark plum", "pale teal", "warm onyx", "cold jade")


def choices(name: str, places: Sequence[int]) -> list[Problem]:
    """Questions for a colour of four, whose answer stands in these places."""
    return [
        Problem(
            id=f"{name}/{number}",
            domain=Domain.CHOICE,
            language="en",
            messages=(Message(role=Role.USER, content=f"Colour {number}? {', '.join(COLOURS)}"),),
            verifier="choice",
            answer=json.dumps(
                {
                    "correct": [COLOURS[place]],
                    "others": [[one] for one in COLOURS if one != COLOURS[place]],
                }
            ),
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
    (echo,) = held_out_echoes(training, choices("held_out", [0, 3, 3, 3]))

    assert ("domain:choice", 0.25, 4) == (echo.suite, echo.score, echo.problems)


def test_a_domain_that_is_only_held_out_has_the_best_text_on_its_own_problems(tmp_path):
    path = tmp_path / "problems.parquet"
    write_table(path, Problem, [])

    (echo,) = held_out_echoes(path, choices("held_out", [0, 3, 3, 3]))

    assert 0.75 == echo.score
