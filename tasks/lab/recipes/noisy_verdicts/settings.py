"""Settings of noisy verdicts."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from data_schemas.rl_settings import RecipeSettings
from data_schemas.study import ErrorRates


class NoisyVerdictsSettings(RecipeSettings):
    """What is known of the errors of verifiers, by the name that problems give them."""

    implementation: str = "tasks.lab.recipes.noisy_verdicts.rewards:open_corrected"

    error_rates: dict[str, ErrorRates] = Field(
        default={},
        description="rewards are corrected for them (2510.00915, backward); needs an advantage "
        "without a standard deviation",
    )
    noise: dict[str, float] = Field(
        default={},
        description="standard deviation of the score that a verifier gives again to the same "
        "response: a group that differs by less than this explains is a tie",
    )
    tie_above: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        description="a group of right and wrong verdicts is a tie if `error_rates` leave more than "
        "this probability that its responses are all right or all wrong; 1 = never [our choice: "
        "0.5]",
    )

    @field_validator("noise")
    @classmethod
    def _noise_is_within_the_scores(cls, noise: dict[str, float]) -> dict[str, float]:
        for verifier, deviation in noise.items():
            if not 0.0 < deviation < 1.0:
                raise ValueError(
                    f"noise of {verifier} is {deviation:g}; a standard deviation of scores from 0 "
                    "to 1 is between them. Leave an exact verifier out"
                )
        return noise

    @model_validator(mode="after")
    def _ties_have_rates(self) -> Self:
        if self.tie_above < 1.0 and not self.error_rates:
            raise ValueError(
                f"tie_above {self.tie_above:g} compares a probability that error_rates give, and "
                "there are none; set error_rates, or tie_above to 1"
            )
        if not self.error_rates and not self.noise:
            raise ValueError("error_rates and noise are both empty; set one, or leave recipe out")
        return self
