"""Staged difficulty: which pass rates a phase trains on now.

Source: Compass-Thinker (arXiv 2508.08909) trains in stages of different difficulty; number and
thresholds are not printed. Pass rates are those of the start model, as graded; a problem without
one fits every stage.
"""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from data_schemas.graded import GradedProblem
from data_schemas.prompts import Problem

PLATEAU_STEPS = 20
"""Steps without a better training accuracy after which the next stage begins."""


class Stage(BaseModel):
    """Where a phase stands in its curriculum."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = 0
    best: float = -1.0
    """Best share solved in a step of this stage."""
    since: int = 0
    """Steps since then."""


def in_band(problem: Problem, bands: Sequence[tuple[float, float]], stage: Stage) -> bool:
    """True if the problem belongs to the current stage; always without a curriculum."""
    if not bands or not isinstance(problem, GradedProblem) or problem.pass_rate is None:
        return True
    low, high = bands[stage.number]
    return low <= problem.pass_rate < high


def after_step(stage: Stage, solved_share: float, num_bands: int) -> Stage:
    """Move on when the accuracy no longer rises; the last stage never ends."""
    if solved_share > stage.best:
        return stage.model_copy(update={"best": solved_share, "since": 0})
    if stage.since + 1 >= PLATEAU_STEPS and stage.number + 1 < num_bands:
        return Stage(number=stage.number + 1)
    return stage.model_copy(update={"since": stage.since + 1})
