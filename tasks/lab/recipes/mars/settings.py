"""Settings of a phase with solver, verifier and corrector (MarsRL, arXiv 2511.11373)."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from data_schemas.rl_settings import RecipeSettings
from data_schemas.rollouts import SOLVER


class Agent(StrEnum):
    """The role in which the policy answers."""

    SOLVER = SOLVER
    VERIFIER = "verifier"
    CORRECTOR = "corrector"


class ResponseChoice(StrEnum):
    """Which responses the next agent takes."""

    ADAPTIVE = "adaptive"
    """The verifier prefers wrong solutions, the corrector correct reports; the paper's best."""
    BALANCED = "balanced"
    """As many right as wrong ones; no solutions where all are alike."""
    RANDOM = "random"


class Spread(StrEnum):
    """How many turns follow; the paper does not say which."""

    PER_PROBLEM = "per_problem"
    """Two chains per problem: 1, 2, 2, 2, 2 groups."""
    PER_GROUP = "per_group"
    """Two turns behind every group: 1, 2, 4, 8, 16 groups."""


class MarsRecipe(RecipeSettings):
    """What follows a group of the solver: verifier, corrector, verifier, corrector."""

    implementation: str = "tasks.lab.recipes.mars.turns:open_mars"

    choice: ResponseChoice = ResponseChoice.BALANCED
    spread: Spread = Spread.PER_PROBLEM
    pipelined: bool = Field(
        default=True, description="a turn waits for the next step; false: same step"
    )
    quotas: dict[Agent, int] = Field(
        default_factory=dict, description="most turns per step and agent; no entry: all that wait"
    )
    max_input_tokens: int = Field(
        default=320, ge=1, description="a turn with a longer input is left out and counted"
    )

    @model_validator(mode="after")
    def _quotas_are_of_turns(self) -> Self:
        if Agent.SOLVER in self.quotas or min(self.quotas.values(), default=1) < 1:
            raise ValueError(
                "quotas takes verifier and corrector, each at least 1; the solver's is "
                "rl_one.prompts_per_step"
            )
        return self
