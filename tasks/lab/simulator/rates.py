"""Seconds of the elementary work of RL on a layout, from the model's shape and the machine.

Same layout, cache and weight bytes as the memory budget. A decoding pass reads the weights and the
cache and computes one token per sequence; the trainer's passes compute, exchange activations, and
wait in the pipeline's bubble. Constants without a source are assumed, and are called so.

Differs: transfers do not overlap with computation, and rank 0's work on responses not with that of
GPUs, though a third of it is done while others are generated. Of a commit, the gathering of
optimizer states on the ranks that write them is not counted.
"""

from dataclasses import dataclass, replace

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.capacity.memory import element_bytes, route_bytes
from tasks.capacity.model_shape import ModelShape, rank_tensors
from tasks.capacity.plan import Plan

FLOPS = 989e12
"""Dense bf16 operations per second of an H100 (its data sheet); fp8: twice as many."""
HBM_BYTES_S = 3.35e12
NVLINK_BYTES_S = 450e9
NETWORK_BYTES_S = 50e9
"""Rates of one GPU: memory, other GPUs of its node (one direction), other nodes (400 Gbit/s)."""
NODE_GPUS = 8
COLLECTIVE_S = 15e-6
"""Assumed: latency of one all-reduce in a decoding pass; two in a layer."""
NODE_CORES = 96
"""As the machine table asks for (tasks/platform/resources.py)."""
ENGINE_SEQUENCES = 256
"""Sequences that vLLM decodes at once (`max_num_seqs`), if the cache holds them."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What the data sheet does not say."""

    compute: float = 0.4
    """Assumed: share of the operations per second that matrix products reach."""
    bandwidth: float = 0.396
    """Share of the memory bandwidth that decoding reaches; fitted (study/earlier/README.md)."""
    reward_s: float = 1 / 208
    """Seconds of one node per response, if they are scored one by one (tasks/gym/README.md)."""
    hash_bytes_s: float = 1e9
    """Rate of one core: both sides of a weight sync hash all tensors
    (tasks/engines/weight_sync.py), and every rank the shards that it wrote."""
    host_bytes_s: float = 2e10
    """Assumed: of one process that copies tensors from a GPU into pinned memory, to hash them."""
    tensor_s: float = 0.00027
    """CPU seconds of one tensor in a weight sync, whatever its size: names, checks, vLLM's update
    path, handing over to be hashed. Measured (tests/bench/sync_cost.json, `sync`)."""
    disk_bytes_s: float = 2e9
    """Assumed: of one node that writes to the disk of states, which all nodes share."""
    rank_zero_s: float = 0.007
    rank_zero_byte_s: float = 5.3e-10
    """CPU seconds of rank 0 per response, and more per byte of its routes. Measured: 0.012 with
    9.4 MB of routes, 0.020 with 24.6 MB (tasks/engines/README.md)."""


@dataclass(frozen=True, slots=True)
class EngineRates:
    """One rollout engine."""

    pass_s: float
    """A decoding pass, whatever its batch."""
    experts_s: float
    """More, if all experts are read."""
    expert_share: float
    """Share of the experts that one token chooses; 0 = a dense model."""
    sequence_s: float
    """More, for every sequence."""
    context_s: float
    """More, for every token in the cache of a sequence."""
    prefill_s: float
    """Per token that is prefilled."""
    slots: int
    cache_tokens: int

    def pass_seconds(self, live: int) -> float:
        """Return the seconds of a decoding pass without the cache's part."""
        expert_part = 1.0 - (1.0 - self.expert_share) ** live
        return self.pass_s + self.experts_s * expert_part + self.sequence_s * live


@dataclass(frozen=True, slots=True)
class TaskRates:
    """A whole task: its engines, and its trainer with its parts of a step."""

    engine: EngineRates
    engines: int
    score_s: float
    """Per token, prompt included."""
    update_s: float
    """Per token, prompt included."""
    sync_s: float
    reward_s: float
    """Per response."""
    rank_zero_s: float = 0.0
    """Per response: rank 0 checks, batches and sends it, and GPUs wait."""
    commit_s: float = 0.0
    """Per step: a commit's seconds, divided by the steps between two."""


def rates_of(plan: Plan, efficiency: Efficiency, mean_tokens: float) -> TaskRates:
    """Derive all rates of a plan.

    Args:
        mean_tokens: of a sequence, prompt included: attention grows with it.
    """
    nodes, world = _nodes_and_world(plan)
    score, update = trainer_rates(plan, efficiency, mean_tokens)
    return TaskRates(
        engine=engine_rates(plan, efficiency),
        engines=max(1, ((plan.gpus - world) or plan.gpus) // plan.layout.rollout_tensor),
        score_s=score,
        update_s=update,
        sync_s=sync_seconds(plan, efficiency),
        reward_s=efficiency.reward_s / nodes,
        rank_zero_s=rank_zero_seconds(plan, efficiency, mean_tokens),
        commit_s=commit_seconds(plan, efficiency) / plan.commit_every,
    )


def trainer_rates(plan: Plan, efficiency: Efficiency, mean_tokens: float) -> tuple[float, float]:
    """Derive the trainer's seconds per token, without gradient and in an update.

    Backward costs twice the products of a forward pass, but exchanges once: gradients of what
    forward exchanged. Scoring is one pass over the whole batch, an update is a pipeline of its own.
    """
    _, world = _nodes_and_world(plan)
    compute, exchange = _forward_seconds(plan, efficiency, mean_tokens, world)
    again = 1.0 if plan.layout.recompute else 0.0
    whole = bubble_share(replace(plan, mini_batches=1), mean_tokens, world)
    update = (3.0 + again) * compute + (2.0 + again) * exchange
    return (
        (compute + exchange) / (1.0 - whole),
        update / (1.0 - bubble_share(plan, mean_tokens, world)),
    )


def sync_seconds(plan: Plan, efficiency: Efficiency) -> float:
    """Derive the seconds of a weight sync: every rank receives all tensors, and hashes them.

    Every tensor is copied to the host between two transfers; rank 0 does so twice, as it sends and
    as it receives. One thread of every rank handles all tensors, one by one: those of each expert,
    also those of which its engine holds a part, with tensor parallelism, or nothing, with expert
    parallelism. Hashing runs beside that, on the node's cores: once per receiving process, and
    once more on the side that sends. What the trainer takes to gather a tensor is not counted.
    """
    weights = element_bytes(plan.layout.precision) * plan.model.parameters
    receiving = plan.layout.dedicated_rollout_gpus or min(plan.gpus, NODE_GPUS)
    hashing = weights * (receiving + 1) / (NODE_CORES * efficiency.hash_bytes_s)
    copying = weights * (1 if plan.layout.dedicated_rollout_gpus else 2) / efficiency.host_bytes_s
    handling = plan.model.tensors * efficiency.tensor_s
    return max(weights / _link(plan.gpus) + copying + handling, hashing)


def rank_zero_seconds(plan: Plan, efficiency: Efficiency, mean_tokens: float) -> float:
    """Derive the seconds in which rank 0 handles one response; 0 on one GPU, which sends nothing.

    Args:
        mean_tokens: of a sequence, prompt included.
    """
    if plan.gpus == 1:
        return 0.0
    routes = mean_tokens * route_bytes(plan.model)
    return efficiency.rank_zero_s + efficiency.rank_zero_byte_s * routes


def commit_seconds(plan: Plan, efficiency: Efficiency) -> float:
    """Derive the seconds of a commit: ranks write the trainer's state, then hash what they wrote.

    Data-parallel ranks have one state, which the first of them writes. So the first ranks of a
    pipeline stage write, as many as divide its tensors or its experts, and a commit takes as long
    as the node that writes most.
    """
    nodes, world = _nodes_and_world(plan)
    layout, node = plan.layout, world // nodes
    stages = max(1, node * layout.pipeline // world)  # on one node
    most_of_node = most_of_rank = 0
    for first in (0, layout.pipeline - stages):
        of_node = 0
        for stage in range(first, first + stages):
            tensors = rank_tensors(plan.model, layout, stage)
            shared, expert = sum(tensors.shared), sum(tensors.expert)
            of_node += min(node, layout.tensor) * shared + min(node, layout.expert) * expert
            most_of_rank = max(most_of_rank, shared + expert)
        most_of_node = max(most_of_node, of_node)
    return plan.state_bytes_per_weight * (
        most_of_node / efficiency.disk_bytes_s + most_of_rank / efficiency.hash_bytes_s
    )


def engine_rates(plan: Plan, efficiency: Efficiency) -> EngineRates:
    """Derive the rates of one rollout engine."""
    model, tensor = plan.model, plan.layout.rollout_tensor
    memory = plan.budget().rollout
    bandwidth = efficiency.bandwidth * HBM_BYTES_S
    flops = efficiency.compute * FLOPS * (2 if plan.precision is Precision.FP8 else 1)
    experts = model.layers * model.experts * model.expert_parameters
    expert_bytes = element_bytes(plan.precision) * experts // tensor
    token_s = 2 * model.active_parameters / tensor / flops
    return EngineRates(
        pass_s=(memory.weights - expert_bytes) / bandwidth
        + (2 * model.layers * COLLECTIVE_S if tensor > 1 else 0.0),
        experts_s=expert_bytes / bandwidth,
        expert_share=model.experts_per_token / model.experts if model.experts else 0.0,
        sequence_s=token_s,
        context_s=memory.token_bytes / bandwidth,
        prefill_s=token_s,
        slots=ENGINE_SEQUENCES,
        cache_tokens=memory.cached_tokens,
    )


def bubble_share(plan: Plan, mean_tokens: float, world: int) -> float:
    """Return the share of an update in which a pipeline stage waits (1F1B); 0 with one stage."""
    layout = plan.layout
    replicas = max(1, world // (layout.tensor * layout.pipeline * layout.context))
    tokens = plan.work.sequences * mean_tokens / plan.mini_batches / replicas
    micro_batches = max(1.0, tokens / layout.micro_batch_tokens)
    return (layout.pipeline - 1) / (micro_batches + layout.pipeline - 1)


def _nodes_and_world(plan: Plan) -> tuple[int, int]:
    """Return the number of nodes, and that of the training GPUs."""
    nodes = max(1, plan.gpus // NODE_GPUS)
    return nodes, plan.gpus - nodes * plan.layout.dedicated_rollout_gpus


def forward_flops(model: ModelShape, mean_tokens: float) -> float:
    """Return the operations of a forward pass per token: matrix products and attention."""
    return 2.0 * model.active_parameters + 2.0 * mean_tokens * model.query_size * model.layers


def _forward_seconds(
    plan: Plan, efficiency: Efficiency, mean_tokens: float, world: int
) -> tuple[float, float]:
    """Return the seconds in which a forward pass computes and exchanges, per token, on all GPUs."""
    compute = forward_flops(plan.model, mean_tokens) / (efficiency.compute * FLOPS)
    return compute / world, _exchange_seconds(plan.model, plan.layout) / world


def _exchange_seconds(model: ModelShape, layout: LayoutSettings) -> float:
    """Return the GPU seconds per token in which activations travel in a forward pass.

    Tensor parallelism gathers and scatters a layer's hidden states twice; expert parallelism sends
    them to the chosen experts and back.
    """
    hidden = element_bytes(layout.precision) * model.hidden
    tensor = 4 * hidden * (layout.tensor - 1) / _link(layout.tensor)
    expert_bytes = 2 * hidden * model.experts_per_token * (layout.expert - 1) / layout.expert
    return model.layers * (tensor + expert_bytes / _link(layout.expert))


def _link(ranks: int) -> float:
    return NVLINK_BYTES_S if ranks <= NODE_GPUS else NETWORK_BYTES_S
