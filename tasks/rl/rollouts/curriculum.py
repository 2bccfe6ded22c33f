"""Curriculum: the band of pass rates that a phase currently trains on.

Source: Compass-Thinker (arXiv 2508.08909) trains in stages of different difficulty; it gives
neither their number nor the thresholds. Pass rates are those of the start model, as graded; a
problem without one is in every band.
"""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from data_schemas.graded import GradedProblem
from data_schemas.prompts import Problem

PLATEAU_STEPS = 20
"""Steps without a better training accuracy after which the next band begins."""


class CurriculumPosition(BaseModel):
    """Position of a phase in its curriculum."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = 0
    best: float = -1.0
    """Best share solved in a step with this band."""
    since: int = 0
    """Steps since then."""


def in_band(
    problem: Problem, bands: Sequence[tuple[float, float]], stage: CurriculumPosition
) -> bool:
    """True if the problem is in the current band; always without a curriculum."""
    if not bands or not isinstance(problem, GradedProblem) or problem.pass_rate is None:
        return True
    low, high = bands[stage.number]
    return low <= problem.pass_rate < high


def after_step(
    stage: CurriculumPosition, solved_share: float, num_bands: int
) -> CurriculumPosition:
    """Advance when the accuracy no longer rises; the last band has no end."""
    if solved_share > stage.best:
        return stage.model_copy(update={"best": solved_share, "since": 0})
    if stage.since + 1 >= PLATEAU_STEPS and stage.number + 1 < num_bands:
        return CurriculumPosition(number=stage.number + 1)
    return stage.model_copy(update={"since": stage.since + 1})
