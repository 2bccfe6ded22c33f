"""What the tests of recipes share: small phases, and problems to score or to evaluate."""

from tests.evaluation.conftest import make_problem, make_samples
from tests.gym.conftest import problem
from tests.rl.conftest import (
    make_rollout,
    number,
    phase_in,
    problems,
    rubrics,
    scorer,
    settings,
    small_phase,
)
from tests.rl.update.conftest import entry

__all__ = [
    "entry",
    "make_problem",
    "make_rollout",
    "make_samples",
    "number",
    "phase_in",
    "problem",
    "problems",
    "rubrics",
    "scorer",
    "settings",
    "small_phase",
]
