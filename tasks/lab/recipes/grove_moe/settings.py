"""Settings of upcycling a mixture of experts to Grove MoE.

See `data_schemas.settings` for the conventions of all settings.
"""

from typing import Self

from pydantic import Field, model_validator

from data_schemas.machine_settings import Seed, Settings


class UpcyclingSettings(Settings):
    """Adjugate experts, one beside every group of experts (arXiv 2508.07785)."""

    experts_per_group: int = Field(
        default=2, ge=1, description="experts that share an adjugate; the paper's best is 2"
    )
    width: int = Field(
        default=16,
        ge=8,
        multiple_of=8,
        description="hidden size of an adjugate; 128 in the paper, whose experts have 768. A "
        "multiple of 8, because a grouped matmul reads 16 bytes at a time",
    )
    scale: float = Field(
        default=0.05, gt=0.0, description="of an adjugate's output; at most 1 / experts_per_group"
    )
    seed: Seed = 0

    @model_validator(mode="after")
    def _scale_is_bounded(self) -> Self:
        if self.scale * self.experts_per_group > 1.0:
            raise ValueError(
                f"scale {self.scale} exceeds 1 / experts_per_group; a token would weigh an "
                f"adjugate more than its experts. Set at most {1.0 / self.experts_per_group:.3g}"
            )
        return self
