"""Settings of a scaffold: criteria of a rubric that training shows to some samples of a group.

RuscaRL (arXiv 2508.16949).
"""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from data_schemas.rl_settings import RecipeSettings

LARGEST_EXPONENT = 10.0
"""The paper tries powers up to 5."""


class Curve(StrEnum):
    """How the share of shown criteria falls over the steps of a phase."""

    SIGMOID = "sigmoid"
    """1 / (1 + exp(steepness (x - switch_at))); the paper's best, nearly a switch."""
    POWER = "power"
    """(1 - x) ** steepness; 1 = linear."""
    CONSTANT = "constant"
    """Never falls."""


class WithinGroup(StrEnum):
    """How the share of shown criteria differs between the samples of a group."""

    LINEAR = "linear"
    """From all criteria to none, which the last sample sees; the paper's best."""
    FIRST_HALF = "first_half"
    """All criteria for the first half of the samples, none for the others."""
    EVERY = "every"
    """All criteria for every sample: no sample of the group is bare."""


class Ratio(StrEnum):
    """Probabilities of the policy ratio, new over old, for a sample that saw criteria."""

    BARE = "bare"
    """Both under the prompt without criteria: off-policy on purpose, not corrected for it. The
    paper's best by far (56.4 on HealthBench-500)."""
    IMPORTANCE = "importance"
    """New without criteria over old with them, as importance sampling asks (44.8)."""
    SCAFFOLDED = "scaffolded"
    """Both under the prompt with criteria (45.7)."""


class Form(StrEnum):
    """Where shown criteria stand in the prompt."""

    SYSTEM = "system"
    """A system message with points to include and to avoid, and a ban on mentioning them."""
    USER = "user"
    """Behind the task, in the criteria's own words and nothing else: for a model that was taught
    tasks of that form and reads no system message [I]."""


class ScaffoldSettings(RecipeSettings):
    """What is shown to which sample, and what the update makes of it."""

    implementation: str = "tasks.lab.recipes.rusca.prompts:open_scaffold"

    curve: Curve = Curve.SIGMOID
    switch_at: float = Field(
        default=0.2,
        ge=0.0,
        le=1.0,
        description="share of the steps after which half is shown; RuscaRL 0.2 (0.1 to 0.3)",
    )
    steepness: float = Field(
        default=125.0, gt=0.0, description="of the curve; RuscaRL's sigmoid 125"
    )
    within_group: WithinGroup = WithinGroup.LINEAR
    ratio: Ratio = Ratio.BARE
    form: Form = Form.SYSTEM

    @model_validator(mode="after")
    def _a_power_is_small(self) -> Self:
        if self.curve is Curve.POWER and self.steepness > LARGEST_EXPONENT:
            raise ValueError(
                f"steepness is {self.steepness:g}, the exponent of curve 'power'; use at most "
                f"{LARGEST_EXPONENT:g}, for instance 1 (linear)"
            )
        return self
