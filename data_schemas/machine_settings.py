"""Which engines a stage runs on, and how they are laid out over processes and GPUs.

The code of a stage is the same for all of them: a machine decides where and in which numbers.
"""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from data_schemas.group import Settings


class RolloutKind(StrEnum):
    """Which rollout engine answers prompts."""

    HF = "hf"
    VLLM = "vllm"


class TrainerKind(StrEnum):
    """Which trainer updates the policy."""

    TORCH = "torch"
    MEGATRON = "megatron"


class Precision(StrEnum):
    """Numbers an engine computes with."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP8 = "fp8"
    """vLLM only: quantised experts and projections, all else in bf16."""


class LayoutSettings(Settings):
    """How the processes of a stage share one model; sizes of 1 are the laptop's.

    Ranks that are left after tensor, pipeline and context parallelism are data-parallel.
    """

    tensor: int = Field(
        default=1, ge=1, description="tensor parallel; above 1 with sequence parallel"
    )
    pipeline: int = Field(default=1, ge=1, description="pipeline stages (1F1B)")
    expert: int = Field(default=1, ge=1, description="expert parallel; experts are divided by it")
    context: int = Field(default=1, ge=1, description="context parallel: parts of a sequence")
    recompute: bool = Field(default=False, description="recompute activations in the backward pass")
    micro_batch_tokens: int = Field(default=8192, ge=64, description="packed tokens per forward")
    precision: Precision = Field(default=Precision.FP32, description="of the trainer: fp32 or bf16")
    rollout_tensor: int = Field(
        default=1, ge=1, description="tensor parallel of a rollout engine, inside a node"
    )
    dedicated_rollout_gpus: int = Field(
        default=0,
        ge=0,
        description="GPUs per node that only roll out; 0 = every GPU does both in turn",
    )
    rollout_memory: float = Field(
        default=0.6, gt=0.0, lt=1.0, description="share of a GPU for weights and cache of a rollout"
    )
    hang_s: float = Field(
        default=600.0, gt=0.0, description="silence after which a rollout engine counts as hung"
    )

    @model_validator(mode="after")
    def _trainer_computes_in_floats(self) -> Self:
        if self.precision is Precision.FP8:
            raise ValueError("layout.precision is fp8; the trainer computes in fp32 or bf16")
        if self.dedicated_rollout_gpus % self.rollout_tensor:
            raise ValueError(
                f"layout.dedicated_rollout_gpus {self.dedicated_rollout_gpus} is not a multiple of "
                f"layout.rollout_tensor {self.rollout_tensor}"
            )
        return self


class MachineSettings(Settings):
    """The engines of a stage."""

    rollout: RolloutKind = RolloutKind.HF
    trainer: TrainerKind = TrainerKind.TORCH
    precision: Precision = Field(default=Precision.FP32, description="of the rollout engine")
    fp8_ignored_layers: tuple[str, ...] = Field(
        default=(),
        description="layers that fp8 leaves alone beside routers, embeddings and head: those of "
        "Super Experts, as 'model.layers.3.mlp.experts'",
    )
    layout: LayoutSettings = LayoutSettings()

    @model_validator(mode="after")
    def _layout_needs_megatron(self) -> Self:
        spread = self.layout.tensor * self.layout.pipeline * self.layout.expert
        if self.trainer is TrainerKind.TORCH and spread * self.layout.context > 1:
            raise ValueError(
                "layout divides the model, which engines.trainer 'torch' cannot; use 'megatron'"
            )
        return self
