"""GPU memory of one step of RL, part by part: trainer, rollout engine, and both on one GPU.

Weights, gradients, optimizer states and cache are exact and tested against the real engines.
Activations are counted from the tensors that layers save for backward, within 5% of what torch
saves with the two kinds of CPU kernels. `TRANSFORMER_ENGINE`, the working set of a rollout and the
fixed share of a GPU are derived, not measured.

Sizes are in bytes. Sources: megatron-core 0.16.1 (`DistributedOptimizer`, 1F1B), vLLM 0.30.0
(`AttentionSpec.page_size_bytes`, `RoutedExpertsCapturer`).
"""

from dataclasses import dataclass

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.algorithms.logprobs import CHUNK_LOGITS
from tasks.capacity.model_shape import (
    ModelShape,
    buffer_elements,
    owned_elements,
    rank_tensors,
    ranks_of,
)

GIB = 2**30
H100_BYTES = 79 * GIB
"""Memory that CUDA reports for an H100 of 80 GB, rounded down."""
FIXED_BYTES = 3 * GIB
"""Assumed: CUDA contexts, communication buffers and workspaces of both engines."""
IMBALANCE = 2.0
"""Assumed: rows of the busiest expert rank divided by an equal share."""
HEAD_COPIES = 3
"""Copies of a chunk of fp32 logits in memory: log-softmax, values derived from it, gradient."""
SYNC_PIECE_BYTES = 256 * 2**20
"""Experts are gathered in pieces of this size (trainer_megatron/convert.py)."""
BATCHED_TOKENS = 8192
"""Tokens of one forward pass of a rollout engine (vLLM's default for chunked prefill)."""


@dataclass(frozen=True, slots=True)
class SavedTensors:
    """Number of tensors of each size that a layer saves for backward, by kind of kernels."""

    hidden: int
    """[tokens, hidden]."""
    expert_hidden: int
    """[tokens x chosen, hidden]."""
    expert_width: int
    """[tokens x chosen, width]."""
    query: int
    """[tokens, heads x head size]."""
    key_value: int
    """[tokens, key-value heads x head size]."""
    rotary: int = 0
    """[tokens, head size]: cosines and sines."""


EMBEDDED = SavedTensors(hidden=6, expert_hidden=2, expert_width=4, query=5, key_value=4)
"""transformers with grouped experts and packed attention."""
TRANSFORMER_ENGINE = SavedTensors(hidden=4, expert_hidden=1, expert_width=3, query=3, key_value=3)
"""Fused norms, rotary embedding, flash attention and weighted SwiGLU."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of a GPU."""

    prompt_tokens: int
    """Length of the longest prompt."""
    response_tokens: int
    """Length of the longest response."""
    sequences: int
    """Responses of a step."""
    reference: bool = False
    """A reference model scores in addition to the policy (the KL of Ring-lite)."""

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return self.prompt_tokens + self.response_tokens


@dataclass(frozen=True, slots=True)
class TrainerMemory:
    """Memory of one trainer rank."""

    weights: int
    gradients: int
    """Allocated during an update only."""
    optimizer: int
    activations: int
    """Saved for backward by all micro-batches in flight."""
    logits: int
    """One chunk of logits, and its hidden states with gradient."""
    weight_sync: int
    """The largest tensor or piece of a sync, gathered, and the copy that is sent."""
    reference: int = 0
    """Weights of a reference model."""

    @property
    def state(self) -> int:
        """Memory that stays allocated between updates."""
        return self.weights + self.optimizer + self.reference


@dataclass(frozen=True, slots=True)
class RolloutMemory:
    """Memory of one GPU of a rollout engine."""

    claim: int
    """Memory that the engine claims; the cache is what remains after the other parts."""
    weights: int
    routes: int
    """Recorded experts of one forward pass."""
    working: int
    """Activations and logits of one forward pass."""
    token_bytes: int
    """Cache size of one token."""
    host_routes: int
    """Host memory: recorded experts of every token in the cache."""
    receiving: int
    """Tensors of a layer on arrival: vLLM installs a layer when all of it is there."""

    @property
    def cache(self) -> int:
        """Keys and values; negative if the claim is too small for the weights."""
        return self.claim - self.weights - self.routes - self.working

    @property
    def cached_tokens(self) -> int:
        """Tokens that fit in the cache of one engine."""
        return max(0, self.cache) // self.token_bytes


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Memory budget of the fullest GPU, by phase of a step."""

    gpu: int
    stage: int
    """Pipeline stage of the fullest GPU."""
    trainer: TrainerMemory
    rollout: RolloutMemory
    dedicated: bool
    """The engine has GPUs of its own (`dedicated_rollout_gpus`)."""
    longest: int
    """Tokens of the longest sequence: the cache must hold at least one."""

    @property
    def phases(self) -> dict[str, int]:
        """Bytes in use during rollout, weight sync and update."""
        trainer, rollout = self.trainer, self.rollout
        sync = trainer.state + trainer.weight_sync
        collect = rollout.claim + (rollout.receiving if self.dedicated else trainer.state)
        if not self.dedicated:  # the cache sleeps until new weights are installed
            sync += rollout.weights + rollout.receiving
        update = trainer.state + trainer.gradients + trainer.activations + trainer.logits
        used = {"rollout": collect, "weight sync": sync, "update": update}
        return {name: FIXED_BYTES + size for name, size in used.items()}

    @property
    def headroom(self) -> float:
        """Share of the GPU that is free in the fullest phase; negative if it does not fit."""
        return 1.0 - max(self.phases.values()) / self.gpu

    def fits(self, headroom: float) -> bool:
        """Return whether every phase leaves this share free and the cache holds one sequence."""
        return self.headroom >= headroom and self.rollout.cached_tokens >= self.longest


def element_bytes(precision: Precision) -> int:
    """Return the bytes of a weight; the scales of fp8 are not counted.

    In int8 the embedded engine computes with rounded weights that it holds in fp32.
    """
    return {Precision.FP32: 4, Precision.INT8: 4, Precision.FP8: 1}.get(precision, 2)


def state_bytes(
    model: ModelShape, layout: LayoutSettings, world: int, stage: int
) -> tuple[int, int, int]:
    """Return bytes of weights, fp32 gradients and optimizer state of the fullest rank of a stage.

    The optimizer has two fp32 moments of the elements it owns; below fp32 also fp32 weights.

    Args:
        world: number of training GPUs.

    Raises:
        SettingsError: the layout does not divide the model or the GPUs.
    """
    ranks, tensors = ranks_of(layout, world), rank_tensors(model, layout, stage)
    copies = 2 if layout.precision is Precision.FP32 else 3
    elements = owned = 0
    for sizes, parts in ((tensors.shared, ranks.data), (tensors.expert, ranks.expert_data)):
        if sizes:
            elements += buffer_elements(sizes, parts)
            owned += max(owned_elements(sizes, parts))
    return element_bytes(layout.precision) * elements, 4 * elements, 4 * copies * owned


def layer_bytes(
    model: ModelShape,
    layout: LayoutSettings,
    tokens: int,
    kernels: SavedTensors,
    *,
    imbalance: float = 1.0,
) -> int:
    """Return the bytes one layer saves of a micro-batch without recompute, on one rank.

    Args:
        tokens: tokens of the micro-batch over all ranks; sequence and context parallel ranks
            have equal parts of them.
        imbalance: rows of this rank's experts divided by an equal share.
    """
    rows = tokens / (layout.tensor * layout.context)
    routed = rows * imbalance * model.experts_per_token if model.experts else rows * layout.tensor
    width = model.width if model.experts else model.width / layout.tensor
    elements = (
        rows * kernels.hidden * model.hidden
        + rows * kernels.query * model.query_size
        + rows * kernels.key_value * model.key_value_size
        + rows * kernels.rotary * model.head_size
        + routed * kernels.expert_width * width
    )
    elements += routed * kernels.expert_hidden * model.hidden if model.experts else 0
    elements += rows * kernels.expert_width * model.shared_width
    if model.extra_experts:
        added = rows * imbalance * model.extra_active
        elements += added * kernels.expert_width * model.extra_width
        elements += (added * kernels.expert_hidden + rows) * model.hidden
    router = 4 * rows * model.experts
    return int(element_bytes(layout.precision) * elements + router)


def checkpoint_bytes(model: ModelShape, layout: LayoutSettings, tokens: int) -> int:
    """Return the bytes one layer saves under recompute: its input, on one rank."""
    rows = tokens // (layout.tensor * layout.context)
    return element_bytes(layout.precision) * rows * model.hidden


def activation_bytes(
    model: ModelShape, layout: LayoutSettings, tokens: int, stage: int, kernels: SavedTensors
) -> int:
    """Return the peak of the activations of a pipeline stage in a 1F1B schedule.

    Stage s of p has p - s micro-batches in flight. Under recompute each keeps the inputs of its
    layers, and one layer at a time is recomputed.
    """
    layers, flying = model.layers // layout.pipeline, layout.pipeline - stage
    whole = layer_bytes(model, layout, tokens, kernels, imbalance=IMBALANCE)
    if layout.recompute:
        return flying * layers * checkpoint_bytes(model, layout, tokens) + whole
    return flying * layers * whole


def trainer_memory(
    model: ModelShape,
    layout: LayoutSettings,
    work: Workload,
    *,
    world: int,
    stage: int,
) -> TrainerMemory:
    """Compute the memory of one rank of a pipeline stage.

    A micro-batch is `layout.micro_batch_tokens`, or one longer sequence; with shared prefixes it
    takes less (trainer_megatron/micro_batches.py, `ATTENTION_SHARE`). Packed masks and batches in
    host memory are not counted.

    Raises:
        SettingsError: the layout does not divide the model or the GPUs.
    """
    weights, gradients, optimizer = state_bytes(model, layout, world, stage)
    tokens = max(layout.micro_batch_tokens, work.longest)
    logits = 0
    if stage == layout.pipeline - 1:
        chunk = min(CHUNK_LOGITS, tokens * model.vocabulary // layout.tensor)
        gathered = tokens // layout.context * model.hidden
        logits = HEAD_COPIES * 4 * chunk + 2 * element_bytes(layout.precision) * gathered
    return TrainerMemory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activation_bytes(model, layout, tokens, stage, TRANSFORMER_ENGINE),
        logits=logits,
        weight_sync=sync_bytes(model, layout),
        reference=weights if work.reference else 0,
    )


def sync_bytes(model: ModelShape, layout: LayoutSettings) -> int:
    """Return the peak of a weight sync on one trainer rank: twice what is gathered.

    That is a piece of a rank's experts, and the largest other tensor: the vocabulary, queries, keys
    and values, or a matrix whose shards are in memory beside their join. Twice: a copy is sent.
    """
    projections = model.query_size + 2 * model.key_value_size
    joined = max(model.query_size, 0 if model.experts else model.width)
    rows = max(model.vocabulary, projections, joined * (2 if layout.tensor > 1 else 1))
    expert = 2 * model.hidden * model.width * element_bytes(layout.precision)
    experts = min(max(1, SYNC_PIECE_BYTES // expert), model.experts // layout.expert)
    return 2 * (element_bytes(layout.precision) * model.hidden * rows + experts * expert)


def cache_token_bytes(model: ModelShape, tensor: int, precision: Precision) -> int:
    """Return the cache bytes of a token on one GPU, which has at least one key-value head.

    With fp8 weights the cache is bf16.
    """
    heads = max(1, model.key_value_heads // tensor)
    element = 4 if precision is Precision.FP32 else 2
    return model.layers * heads * 2 * model.head_size * element


def rollout_weight_bytes(model: ModelShape, tensor: int, precision: Precision) -> int:
    """Return the bytes of the weights of a rollout engine on one GPU.

    With fp8, projections and experts are fp8; embedding, head, norms and routers stay in bf16.
    """
    heads = max(model.key_value_heads, tensor)
    projections = model.hidden * (2 * model.query_size + 2 * heads * model.head_size)
    routed = model.layers - model.dense_layers
    experts = routed * model.routed_parameters + model.unrouted_parameters
    divided = (model.layers * projections + experts) // tensor
    whole = model.layers * (2 * model.hidden + model.small)
    whole += routed * model.experts * model.hidden
    vocabulary = -(-model.vocabulary // 64) * 64
    tables = (1 if model.tied else 2) * vocabulary * model.hidden // tensor
    other = 4 if precision is Precision.FP32 else 2
    return element_bytes(precision) * divided + other * (whole + model.hidden + tables)


def route_bytes(model: ModelShape) -> int:
    """Bytes of a token's routes in host memory and in files; 0 without experts."""
    wide = 1 if model.experts <= 256 else 2
    return model.layers * model.experts_per_token * wide


def rollout_memory(
    model: ModelShape, layout: LayoutSettings, precision: Precision, gpu: int, sequences: int
) -> RolloutMemory:
    """Compute the memory of one GPU of a rollout engine.

    Args:
        precision: precision of the engine.
        gpu: bytes of a GPU.
        sequences: number of sequences decoded at once.
    """
    tensor, element = layout.rollout_tensor, 4 if precision is Precision.FP32 else 2
    token, routed = cache_token_bytes(model, tensor, precision), max(1, model.experts_per_token)
    row = (
        2 * model.hidden
        + (model.query_size + 2 * model.key_value_size) // tensor
        + routed * (model.hidden + 3 * model.width // tensor)
        + round(model.extra_active * (model.hidden + 3 * model.extra_width // tensor))
    )
    routes = 4 * BATCHED_TOKENS * model.layers * model.experts_per_token
    working = BATCHED_TOKENS * row * element + HEAD_COPIES * 4 * sequences * model.vocabulary
    claim = int(layout.rollout_memory * gpu)
    weights = rollout_weight_bytes(model, tensor, precision)
    cached = max(0, claim - weights - routes - working) // token
    return RolloutMemory(
        claim=claim,
        weights=weights,
        routes=routes,
        working=working,
        token_bytes=token,
        host_routes=cached * route_bytes(model),
        receiving=element_bytes(layout.precision) * model.largest_layer,
    )


def budget(
    model: ModelShape,
    layout: LayoutSettings,
    precision: Precision,
    work: Workload,
    *,
    gpus: int,
    node_gpus: int = 8,
    gpu: int = H100_BYTES,
) -> MemoryBudget:
    """Compute the budget of the fullest GPU.

    Args:
        precision: precision of the rollout engine; the trainer's is in the layout.
        gpus: GPUs of the task; `layout.dedicated_rollout_gpus` of each node only roll out.
        gpu: bytes of one GPU.

    Raises:
        SettingsError: the layout does not divide the model or the GPUs.
    """
    dedicated = layout.dedicated_rollout_gpus
    nodes = max(1, gpus // node_gpus)
    world = gpus - nodes * dedicated
    engines = max(1, (nodes * dedicated or gpus) // layout.rollout_tensor)
    rollout = rollout_memory(model, layout, precision, gpu, -(-work.sequences // engines))
    stages = {0, layout.pipeline // 2, layout.pipeline - 1}
    budgets = [
        MemoryBudget(
            gpu=gpu,
            stage=stage,
            trainer=trainer_memory(model, layout, work, world=world, stage=stage),
            rollout=rollout,
            dedicated=dedicated > 0,
            longest=work.longest,
        )
        for stage in sorted(stages)
    ]
    return min(budgets, key=lambda one: one.headroom)
