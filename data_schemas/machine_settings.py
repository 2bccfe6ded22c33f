"""Settings of machines and engines: processes and GPUs, and which weights are trained.

The code of a stage is the same for every engine; these settings choose device and precision. See
`data_schemas.settings` for the conventions of all settings.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from data_schemas.addresses import has_credentials, redacted

LARGEST = 2**53
"""JSON readers may round larger integers."""
LARGEST_SEED = 2**32 - 1
"""Largest seed accepted by numpy, torch and vLLM."""
Seed = Annotated[
    int, Field(ge=0, le=LARGEST_SEED, description="for everything random in the stage")
]
LOWEST_TEMPERATURE = 0.01
"""Logits divided by less overflow; vLLM raises smaller ones to it as well."""

Whole = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def no_schema(schema: dict[str, Any]) -> None:
    """Empty the schema: Flyte would print it in `--help`, where it fills ten screens."""
    schema.clear()


def are_shares(weights: Iterable[float]) -> bool:
    """True if all weights are positive and their sum is finite, so that each is a share of it."""
    weights = list(weights)
    return min(weights, default=1.0) > 0.0 and math.isfinite(sum(weights))


def merged_over(default: BaseModel, changes: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a group: those given, and elsewhere those of `default`.

    Groups within are merged likewise; a choice of another kind begins with no settings of its own.
    Any other value, such as shares by domain, is replaced as a whole. Unknown keys are kept, for
    the group's validation to refuse.
    """
    values: dict[str, object] = dict(default)
    if isinstance(default, Choice) and changes.get(default.CHOSEN_BY, default.chosen) != (
        default.chosen
    ):
        values = {name: values[name] for name in type(default).model_fields}
    for name, value in changes.items():
        own = values.get(name)
        if isinstance(own, BaseModel) and isinstance(value, Mapping):
            value = merged_over(own, cast("Mapping[str, object]", value))
        values[name] = value
    return values


def models_in(value: object) -> Iterator[tuple[str, BaseModel]]:
    """Yield a group, or those of a list behind their places in it: ('[0]', group)."""
    if isinstance(value, BaseModel):
        yield "", value
    elif isinstance(value, tuple):
        for place, part in enumerate(cast("tuple[object, ...]", value)):
            if isinstance(part, BaseModel):
                yield f"[{place}]", part


class Settings(BaseModel):
    """Frozen; refuses unknown keys and numbers that JSON or msgpack cannot represent exactly.

    Also refuses addresses with credentials.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=no_schema
    )

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        kind: Any = cls.model_fields[info.field_name].annotation if info.field_name else None
        if isinstance(value, bool) and (kind is int or kind is float):
            raise ValueError("must be a number; true and false are none")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _integers_survive_json(cls, value: object) -> object:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError("is too large; at most 2**53 survives JSON")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _no_credentials(cls, value: object) -> object:
        texts = cast("Iterable[object]", value) if isinstance(value, list | tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and has_credentials(text):
                raise ValueError(
                    f"{redacted(text)} has credentials in it, which would be recorded. Leave them "
                    "out and set EACHPROMPT_JUDGE_API_KEY, or AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY"
                )
        return cast("object", value)


class Choice(Settings):
    """A choice by name, with the settings of its own as a file has them: it checks them itself.

    The choices stand in tables of `tasks`: which keys there are depends on the kind.
    """

    model_config = ConfigDict(
        frozen=True, extra="allow", allow_inf_nan=False, json_schema_extra=no_schema
    )

    CHOSEN_BY: ClassVar[str] = "kind"
    """The field that names the choice."""

    @property
    def chosen(self) -> str:
        """The name of the choice."""
        return str(dict(self)[self.CHOSEN_BY])

    @property
    def own(self) -> dict[str, object]:
        """The settings of its own that were given, or all of them once they are complete."""
        return dict(self.__pydantic_extra__ or {})


class RolloutKind(StrEnum):
    """Which rollout engine generates responses."""

    HF = "hf"
    VLLM = "vllm"


class TrainerKind(StrEnum):
    """Which trainer updates the policy."""

    TORCH = "torch"
    MEGATRON = "megatron"


class Precision(StrEnum):
    """Precision of an engine's weights and activations."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    """Eight times finer than bf16, but numbers above 65,504 overflow."""
    FP8 = "fp8"
    """vLLM only: experts and projections are quantised, all other layers are bf16."""
    INT8 = "int8"
    """Rollout 'hf' only, and no training: weights of experts and projections are rounded to int8,
    all else is fp32."""

    @property
    def is_quantised(self) -> bool:
        """Weights are rounded to a grid of 8 bits; no trainer computes so."""
        return self in (Precision.FP8, Precision.INT8)


MEGATRON_ONLY = ("tensor", "pipeline", "expert", "context", "recompute", "precision")
"""Fields of the layout that the embedded trainer does not have."""
VLLM_ONLY = ("rollout_tensor", "rollout_memory", "hang_s")
"""Fields of the layout that the embedded rollout engine does not have."""


class LayoutSettings(Settings):
    """Parallel layout of a stage; all sizes are 1 on a single machine.

    Ranks that remain after tensor, pipeline and context parallelism are data-parallel.
    """

    tensor: int = Field(
        default=1,
        ge=1,
        le=2**12,
        description="tensor parallel size; sequence parallelism is on above 1",
    )
    pipeline: int = Field(default=1, ge=1, le=2**12, description="pipeline stages (1F1B)")
    expert: int = Field(
        default=1,
        ge=1,
        le=2**12,
        description="expert parallel size; must divide the number of experts",
    )
    context: int = Field(default=1, ge=1, le=2**12, description="context parallel size")
    recompute: bool = Field(default=False, description="recompute activations in the backward pass")
    micro_batch_tokens: int = Field(
        default=8192, ge=64, le=2**28, description="packed tokens per forward pass"
    )
    precision: Precision = Field(
        default=Precision.FP32, description="precision of the trainer: fp32, bf16 or fp16"
    )
    rollout_tensor: int = Field(
        default=1,
        ge=1,
        le=2**12,
        description="tensor parallel size of a rollout engine, within a node",
    )
    dedicated_rollout_gpus: int = Field(
        default=0,
        ge=0,
        le=2**16,
        description="GPUs per node used for rollouts only; 0 = every GPU alternates between both",
    )
    rollout_memory: float = Field(
        default=0.6,
        gt=0.0,
        lt=1.0,
        description="share of a GPU for a rollout engine's weights and KV cache",
    )
    hang_s: float = Field(
        default=600.0,
        gt=0.0,
        le=86400.0,
        description="a rollout engine without progress for this long is considered hung",
    )

    @model_validator(mode="after")
    def _trainer_computes_in_floats(self) -> Self:
        if self.precision.is_quantised:
            raise ValueError(
                f"layout.precision is {self.precision.value}; the trainer computes in fp32, bf16 "
                "or fp16"
            )
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
    precision: Precision = Field(
        default=Precision.FP32, description="precision of the rollout engine"
    )
    fp32_router: bool = Field(
        default=False,
        description="routers of a rollout engine or trainer below fp32 keep weights and logits in "
        "fp32; Megatron-core always computes the logits in fp32",
    )
    fp8_ignored_layers: tuple[str, ...] = Field(
        default=(),
        description="layers kept in bf16 under fp8, in addition to routers, embeddings and head: "
        "those with Super Experts, as 'model.layers.3.mlp.experts'",
    )
    layout: LayoutSettings = LayoutSettings()

    @model_validator(mode="after")
    def _every_value_has_an_effect(self) -> Self:
        differences = self.layout.model_dump(mode="json", exclude_defaults=True)
        for name in MEGATRON_ONLY:
            if name in differences and self.trainer is TrainerKind.TORCH:
                raise ValueError(
                    f"layout.{name} is {differences[name]}, which trainer 'torch' does not have; "
                    "use trainer 'megatron', or leave it out"
                )
        for name in VLLM_ONLY:
            if name in differences and self.rollout is RolloutKind.HF:
                raise ValueError(
                    f"layout.{name} is {differences[name]}, which rollout 'hf' does not have; "
                    "use rollout 'vllm', or leave it out"
                )
        if "hang_s" in differences and not self.layout.dedicated_rollout_gpus:
            raise ValueError(
                f"layout.hang_s is {differences['hang_s']}, but only a rollout engine on GPUs of "
                "its own is watched; set layout.dedicated_rollout_gpus, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _fp32_routers_are_an_exception(self) -> Self:
        trained = self.layout.precision if self.trainer is TrainerKind.MEGATRON else Precision.FP32
        below = (self.precision, trained)
        if self.fp32_router and not {*below} - {Precision.FP32, Precision.INT8}:
            raise ValueError(
                "fp32_router is set, but rollout engine and trainer are in fp32, in which routers "
                "are as well; use precision 'bf16', 'fp16' or 'fp8' or, with trainer 'megatron', "
                "layout.precision 'bf16' or 'fp16', or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _engines_quantise_in_their_own_way(self) -> Self:
        if self.precision is Precision.FP8 and self.rollout is RolloutKind.HF:
            raise ValueError(
                "precision is fp8, which rollout 'hf' does not have; use rollout 'vllm', or "
                "precision 'fp32', 'bf16' or 'fp16'"
            )
        if self.precision is Precision.INT8 and self.rollout is RolloutKind.VLLM:
            raise ValueError(
                "precision is int8, which rollout 'vllm' does not have; use precision 'fp8', or "
                "rollout 'hf'"
            )
        if self.fp8_ignored_layers and self.precision is not Precision.FP8:
            raise ValueError(
                f"fp8_ignored_layers is set, but precision is {self.precision.value}; "
                "use precision 'fp8', or leave it out"
            )
        return self


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
    def _rollouts_take_new_weights(self) -> Self:
        if self.precision is Precision.INT8:
            raise ValueError(
                "precision is int8, in which rollout 'hf' takes no new weights from a trainer; it "
                "is there to measure what quantisation changes (eachprompt evaluate --precision "
                "int8): use 'fp32', 'bf16' or 'fp16' here"
            )
        return self

    @model_validator(mode="after")
    def _adapters_are_of_the_embedded_trainer(self) -> Self:
        if self.lora.rank and self.trainer is TrainerKind.MEGATRON:
            raise ValueError(
                f"lora.rank is {self.lora.rank}, which trainer 'megatron' does not have: "
                "Megatron-core contains no LoRA, and that of Megatron Bridge needs Transformer "
                "Engine; use trainer 'torch', or leave it out"
            )
        return self
