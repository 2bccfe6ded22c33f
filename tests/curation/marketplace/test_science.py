"""Quantities: a unit may be missing, a wrong one is refused."""

import random

import pytest

from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import LEVELS
from tasks.curation.marketplace.science import draw_science
from tasks.gym.maths.final_answer import verify
from tasks.store.files import canonical_json
from tests.records import problem_of

WRONG = {"km": "h", "kg": "g", "W": "V", "°C": "kg", "g": "kg", "m": "km", "mL": "L"}


@pytest.mark.parametrize("level", LEVELS)
def test_the_number_alone_is_right_and_with_another_unit_wrong(level):
    for seed in range(20):
        item = draw_science(random.Random(seed), level)
        problem = problem_of(
            item.prompt,
            canonical_json(item.answer).decode(),
            id="p",
            domain=Domain.SCIENCE,
            verifier=item.verifier,
        )
        value, unit = item.solution.split()
        scores = [verify(problem, text).score for text in (value, f"{value} {WRONG[unit]}")]
        assert [1.0, 0.0] == scores, item
