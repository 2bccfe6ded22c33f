"""LoRA: which weights a stage trains. Engines of a stage that trains a model.

See `data_schemas.settings` for the conventions of all settings.
"""

from typing import Self

from pydantic import Field, model_validator

from data_schemas.group import Settings
from data_schemas.machine_settings import MachineSettings, TrainerKind


class LoRASettings(Settings):
    """Low-rank adapters of every projection, those of the experts included (arXiv 2106.09685)."""

    rank: int = Field(
        default=0,
        ge=0,
        le=1024,
        multiple_of=8,
        description="of the adapters; 0 = all weights are trained. A multiple of 8, because a "
        "grouped matmul reads 16 bytes at a time",
    )


class TrainingEngines(MachineSettings):
    """The engines of a stage that trains a model."""

    lora: LoRASettings = LoRASettings()

    @model_validator(mode="after")
    def _adapters_are_of_the_embedded_trainer(self) -> Self:
        if self.lora.rank and self.trainer is TrainerKind.MEGATRON:
            raise ValueError(
                f"lora.rank is {self.lora.rank}, which trainer 'megatron' does not have: "
                "Megatron-core contains no LoRA, and that of Megatron Bridge needs Transformer "
                "Engine; use trainer 'torch', or leave it out"
            )
        return self
