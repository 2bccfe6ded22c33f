"""The shape of a decoder, and its tensors on one rank of a trainer.

Source: megatron-core 0.16.1. Tensor parallelism divides attention and vocabulary, expert
parallelism divides whole experts (expert tensor parallelism is 1), and pipeline stages have equal
numbers of layers; norms and routers are on every rank of a stage. Gradients and optimizer states
are in buffers that are padded for the data-parallel group (`_ParamAndGradBuffer`).

Sizes are in elements, not bytes; see memory.py for those.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data_schemas.machine_settings import LayoutSettings
from tasks.errors import DataError, SettingsError
from tasks.models.architectures import architecture_of


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Grouped-query attention and gated feed-forwards, those of experts among them."""

    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    head_size: int
    vocabulary: int
    width: int
    """Hidden size of one expert, or of the dense feed-forward layer."""
    experts: int = 0
    """Per layer; 0 = dense."""
    experts_per_token: int = 0
    dense_layers: int = 0
    """First layers of a mixture of experts that have no experts."""
    dense_width: int = 0
    """Hidden size of their feed-forward."""
    shared_width: int = 0
    """Hidden size of what every token passes beside its experts: all shared experts together."""
    extra_experts: int = 0
    """Per layer, of another width beside the routed ones, as a family of one's own may have."""
    extra_width: int = 0
    """Hidden size of an extra expert."""
    extra_active: float = 0.0
    """Extra experts of a layer that a token is expected to use."""
    tied: bool = False
    """The output head shares the weights of the embedding."""
    head_norms: bool = True
    """Query and key are normalised (Qwen3)."""
    biases: bool = False
    """Query, key and value have biases (Qwen2)."""

    @property
    def query_size(self) -> int:
        """Outputs of the query projection."""
        return self.heads * self.head_size

    @property
    def key_value_size(self) -> int:
        """Outputs of the key projection, and of the value projection."""
        return self.key_value_heads * self.head_size

    @property
    def expert_parameters(self) -> int:
        """Parameters of one expert in one layer (of the feed-forward if dense): gate, up, down."""
        return 3 * self.hidden * self.width

    @property
    def parameters(self) -> int:
        """Parameters of the whole model."""
        return self._outside_experts + self._routed_layers * self.routed_parameters

    @property
    def routed_parameters(self) -> int:
        """Parameters of all experts of a layer (of the feed-forward if dense)."""
        experts = max(1, self.experts) * self.expert_parameters
        return experts + self.extra_experts * self.extra_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters used for one token, embedding and head included.

        Of the extra experts, as many as a token is expected to use, rounded.
        """
        active = self.experts_per_token if self.experts else 1
        extra = round(self.layers * self.extra_active * self.extra_parameters)
        routed = self._routed_layers * active * self.expert_parameters
        return self._outside_experts + routed + extra

    @property
    def largest_layer(self) -> int:
        """Parameters of a layer's experts, or of the embedding if it is larger."""
        routed = self.routed_parameters if self.experts else 0
        return max(routed, self.vocabulary * self.hidden)

    @property
    def tensors(self) -> int:
        """Tensors of the whole model in its files: an expert has three of its own.

        Exact for Qwen's; other families have a few more or less per layer.
        """
        attention = 6 + (2 if self.head_norms else 0) + (3 if self.biases else 0)
        routed = 3 * (max(1, self.experts) + self.extra_experts) + (1 if self.experts else 0)
        shared = 3 if self.shared_width else 0
        return (
            self.layers * attention
            + self._routed_layers * (routed + shared)
            + 3 * self.dense_layers
            + (2 if self.tied else 3)
        )

    @property
    def extra_parameters(self) -> int:
        """Parameters of one extra expert: gate, up, down."""
        return 3 * self.hidden * self.extra_width

    @property
    def small(self) -> int:
        """Parameters of the norms and biases of a layer's attention heads."""
        norms = 2 * self.head_size if self.head_norms else 0
        return norms + (self.query_size + 2 * self.key_value_size if self.biases else 0)

    @property
    def unrouted_parameters(self) -> int:
        """Parameters of all feed-forwards beside routed ones: shared experts, dense layers."""
        shared = (self.layers - self.dense_layers) * self.shared_width
        return 3 * self.hidden * (shared + self.dense_layers * self.dense_width)

    @property
    def _routed_layers(self) -> int:
        return self.layers - self.dense_layers

    @property
    def _outside_experts(self) -> int:
        attention = self.hidden * 2 * (self.query_size + self.key_value_size)
        layer = attention + 2 * self.hidden + self.small
        routers = self._routed_layers * self.experts * self.hidden
        tables = (1 if self.tied else 2) * self.vocabulary * self.hidden
        return self.layers * layer + routers + self.unrouted_parameters + tables + self.hidden


COMPASSMAX = ModelShape(
    layers=72,
    hidden=8192,
    heads=64,
    key_value_heads=8,
    head_size=128,
    vocabulary=151_936,
    width=8192,
    experts=16,
    experts_per_token=4,
)
"""CompassMax-V3: 245B parameters, 71B active, 16 experts and top-4 are published.

The rest is inferred: the 174B between the two numbers are the 12 unused experts of every layer, so
all experts are 232B and the rest 13B; 72 layers of width 8192 with Qwen3's attention and vocabulary
match both. Multi-token prediction is not included.
"""
QWEN3_15B_A2B = ModelShape(
    layers=24,
    hidden=2048,
    heads=32,
    key_value_heads=4,
    head_size=128,
    vocabulary=151_936,
    width=768,
    experts=128,
    experts_per_token=8,
)
"""The default of transformers' Qwen3MoeConfig."""
LING_LITE = ModelShape(
    layers=28,
    hidden=2048,
    heads=16,
    key_value_heads=4,
    head_size=128,
    vocabulary=126_464,
    width=1408,
    experts=64,
    experts_per_token=6,
    shared_width=2 * 1408,
    head_norms=False,
)
"""The base of Ring-lite (Ling-lite-1.5): 16.8B, 2.75B active; two shared experts beside the six."""
QWEN2_5_7B = ModelShape(
    layers=28,
    hidden=3584,
    heads=28,
    key_value_heads=4,
    head_size=128,
    vocabulary=152_064,
    width=18_944,
    head_norms=False,
    biases=True,
)
"""Dense; Compass-Thinker-7B starts from a model of this size."""


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """Read the shape from a config.json of one of these families.

    Raises:
        DataError: a size is missing, a dense layer is behind one with experts, or attention is
            latent.
    """

    try:
        architecture = architecture_of(config)
    except SettingsError as error:
        raise DataError(str(error)) from error
    routing, dense = architecture.routing, architecture.layers - len(architecture.moe_layers)
    if routing and architecture.moe_layers != tuple(range(dense, architecture.layers)):
        raise DataError("config.json has dense layers behind others with experts")
    if architecture.latent:
        raise DataError("config.json has multi-head latent attention, which no budget counts")
    return ModelShape(
        layers=architecture.layers,
        hidden=architecture.hidden,
        heads=architecture.heads,
        key_value_heads=architecture.groups,
        head_size=architecture.head_size,
        vocabulary=architecture.vocab,
        width=architecture.expert_size if routing else architecture.dense_size,
        experts=architecture.num_experts,
        experts_per_token=routing.top_k if routing else 0,
        dense_layers=dense if routing else 0,
        dense_width=architecture.dense_size if routing and dense else 0,
        shared_width=architecture.shared_size,
        extra_experts=architecture.extra_experts,
        extra_width=architecture.extra_size,
        extra_active=architecture.extra_active,
        tied=architecture.tied,
        head_norms=architecture.qk_norm == "head",
        biases=architecture.qkv_bias,
    )


@dataclass(frozen=True, slots=True)
class RankTensors:
    """Sizes of a rank's tensors in the order of the model."""

    shared: tuple[int, ...]
    """Their gradients are summed over all data- and context-parallel ranks."""
    expert: tuple[int, ...]
    """Their gradients are summed over all ranks that hold the same experts."""

    @property
    def total(self) -> int:
        """Elements of all tensors."""
        return sum(self.shared) + sum(self.expert)


@dataclass(frozen=True, slots=True)
class DataGroupSizes:
    """Sizes of the data-parallel groups."""

    data: int
    """Ranks that share the gradients of non-expert weights, context-parallel ranks included."""
    expert_data: int
    """Ranks that share the gradients of an expert."""


def ranks_of(layout: LayoutSettings, world: int) -> DataGroupSizes:
    """Divide the training ranks into groups.

    Raises:
        SettingsError: the layout does not divide them.
    """
    model = layout.tensor * layout.pipeline
    if world % (model * layout.context) or world % (layout.expert * layout.pipeline):
        raise SettingsError(
            f"{world} training GPUs are not a multiple of layout.tensor {layout.tensor} x pipeline "
            f"{layout.pipeline} x context {layout.context}, or of expert {layout.expert} x pipeline"
        )
    return DataGroupSizes(
        data=world // model, expert_data=world // (layout.expert * layout.pipeline)
    )


def rank_tensors(model: ModelShape, layout: LayoutSettings, stage: int) -> RankTensors:
    """List the tensors of one rank of a pipeline stage.

    Args:
        stage: 0 has the embedding, the last one the final norm and the head; a tied head is a
            separate copy unless there is only one stage.

    Raises:
        SettingsError: the layout does not divide the model.
    """
    _check_divides(model, layout)
    tensor, last = layout.tensor, layout.pipeline - 1
    projected = (model.query_size + 2 * model.key_value_size) // tensor
    attention = [model.hidden, model.query_size * model.hidden // tensor, projected * model.hidden]
    attention += [projected] if model.biases else []
    attention += [model.head_size] * 2 if model.head_norms else []
    attention += [model.hidden]
    up_and_down = [2 * model.hidden * model.width, model.hidden * model.width]
    extra = [2 * model.hidden * model.extra_width, model.hidden * model.extra_width]
    shared: list[int] = []
    expert: list[int] = []
    table = -(-model.vocabulary // tensor) * model.hidden  # the last rank's is padded
    if stage == 0:
        shared.append(table)
    per_stage = model.layers // layout.pipeline
    for layer in range(stage * per_stage, (stage + 1) * per_stage):
        shared.extend(attention)
        is_dense = not model.experts or layer < model.dense_layers
        plain = model.shared_width if model.experts else model.width
        if layer < model.dense_layers:
            plain = model.dense_width
        if plain:
            shared.extend([2 * model.hidden * plain // tensor, model.hidden * plain // tensor])
        if is_dense:
            continue
        shared.append(model.experts * model.hidden)
        expert.extend(up_and_down * (model.experts // layout.expert))
        expert.extend(extra * (model.extra_experts // layout.expert))
    if stage == last:
        shared.append(model.hidden)
        if not model.tied or last > 0:
            shared.append(table)
    return RankTensors(tuple(shared), tuple(expert))


def buffer_elements(sizes: Sequence[int], ranks: int) -> int:
    """Return the elements of the buffer of these tensors, padding included; 0 for none.

    Every tensor starts at a multiple of 64; the buffer ends at a multiple of 128 and of the ranks.
    """
    return _offsets(sizes, ranks)[1]


def owned_elements(sizes: Sequence[int], ranks: int) -> list[int]:
    """Return the elements of every rank's optimizer: its part of the buffer without padding."""
    offsets, end = _offsets(sizes, ranks)
    owned = [0] * ranks
    for start, stop in offsets:
        for rank in range(start * ranks // end, min(ranks, stop * ranks // end + 1)):
            low, high = rank * end // ranks, (rank + 1) * end // ranks
            owned[rank] += max(0, min(stop, high) - max(start, low))
    return owned


def _offsets(sizes: Sequence[int], ranks: int) -> tuple[list[tuple[int, int]], int]:
    """Return start and stop of every tensor, last one first, and the end of the buffer."""
    offsets, stop = [], 0
    for size in reversed(sizes):
        start = -(-stop // 64) * 64
        stop = start + size
        offsets.append((start, stop))
    divisor = math.lcm(ranks, 128)
    return offsets, -(-stop // divisor) * divisor


def _check_divides(model: ModelShape, layout: LayoutSettings) -> None:
    divisions = {
        "tensor (heads)": (model.heads, layout.tensor),
        "tensor (key-value heads)": (model.key_value_heads, layout.tensor),
        "pipeline (layers)": (model.layers, layout.pipeline),
        "expert (experts)": (model.experts or 1, layout.expert),
        "expert (extra experts)": (model.extra_experts, layout.expert),
    }
    for name, (size, parts) in divisions.items():
        if size % parts:
            raise SettingsError(f"layout.{name}: {size} is not a multiple of {parts}")
