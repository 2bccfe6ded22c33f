# pyright: reportMissingImports=false
"""Parallel groups: the ranks of this process in Megatron's parallel groups.

Order of ranks is Megatron's: tensor fastest, then context, then data, then pipeline. The
experts of a layer are spread over `expert` ranks out of tensor x context x data; a single
expert is never divided (expert tensor parallel is 1).
"""

import gc
from dataclasses import dataclass

import torch
from torch import distributed

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.process_group import COLLECTIVE_LIMIT, join_world
from tasks.engines.trainer_megatron.without_gpu import install, seed
from tasks.errors import SettingsError

SEED = 1234
"""Training has nothing random (no dropout), but Megatron requires seeded streams."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Sizes of the parallel groups and this process's ranks in them."""

    world: int
    rank: int
    device: torch.device
    tensor: int
    tensor_rank: int
    pipeline: int
    pipeline_rank: int
    expert: int
    expert_rank: int
    context: int
    context_rank: int
    data: int
    """Data-parallel replicas of the non-expert weights, context parallelism not counted."""
    data_rank: int
    tensor_group: distributed.ProcessGroup
    pipeline_group: distributed.ProcessGroup
    expert_group: distributed.ProcessGroup
    context_group: distributed.ProcessGroup
    data_group: distributed.ProcessGroup
    data_context_group: distributed.ProcessGroup

    @property
    def is_first_stage(self) -> bool:
        """Whether this rank holds the embedding."""
        return self.pipeline_rank == 0

    @property
    def is_last_stage(self) -> bool:
        """Whether this rank computes logits."""
        return self.pipeline_rank == self.pipeline - 1


def initialise(layout: LayoutSettings) -> Ranks:
    """Join Megatron's parallel groups, forming them first if this process has none.

    Without torchrun's environment the process is a world of its own.

    Raises:
        SettingsError: the layout does not divide the world, or differs from the one this
            process was started with.
    """
    on_cpu = install()
    from megatron.core import parallel_state  # after install: importing it warns otherwise

    device = join_world()
    _divide(layout, distributed.get_world_size())
    if parallel_state.model_parallel_is_initialized() and not _is_registered(
        parallel_state.get_tensor_model_parallel_group()
    ):
        # Another engine destroyed the default group of these groups: they are created again.
        # Only safe with one process; other ranks might still use the old groups.
        parallel_state.destroy_model_parallel()
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=layout.tensor,
            pipeline_model_parallel_size=layout.pipeline,
            context_parallel_size=layout.context,
            expert_model_parallel_size=layout.expert,
            expert_tensor_parallel_size=1,
            distributed_timeout_minutes=round(COLLECTIVE_LIMIT.total_seconds() / 60),
        )
        _seed(on_cpu=on_cpu)
    ranks = _ranks(device)
    actual = (ranks.tensor, ranks.pipeline, ranks.context, ranks.expert)
    requested = (layout.tensor, layout.pipeline, layout.context, layout.expert)
    if actual != requested:
        raise SettingsError(
            f"layout (tensor, pipeline, context, expert) is {requested}, but this process already "
            f"trains with {actual}; one process has one layout"
        )
    return ranks


def free_memory() -> None:
    """Free what nothing but itself refers to, as the hooks and buffers of a model do."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _is_registered(group: distributed.ProcessGroup) -> bool:
    """Whether a group belongs to the current default group."""
    try:
        distributed.get_rank(group)
    except ValueError:
        return False
    return True


def _divide(layout: LayoutSettings, world: int) -> None:
    dense = layout.tensor * layout.pipeline * layout.context
    if world % dense:
        raise SettingsError(
            f"layout.tensor x pipeline x context is {dense}, which does not divide "
            f"the {world} processes"
        )
    if world % (layout.expert * layout.pipeline):
        raise SettingsError(
            f"layout.expert x pipeline is {layout.expert * layout.pipeline}, which does not "
            f"divide the {world} processes"
        )


def _seed(*, on_cpu: bool) -> None:
    if on_cpu:
        seed(SEED)
        return
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    model_parallel_cuda_manual_seed(SEED)


def _ranks(device: torch.device) -> Ranks:
    from megatron.core import parallel_state as state

    return Ranks(
        world=distributed.get_world_size(),
        rank=distributed.get_rank(),
        device=device,
        tensor=state.get_tensor_model_parallel_world_size(),
        tensor_rank=state.get_tensor_model_parallel_rank(),
        pipeline=state.get_pipeline_model_parallel_world_size(),
        pipeline_rank=state.get_pipeline_model_parallel_rank(),
        expert=state.get_expert_model_parallel_world_size(),
        expert_rank=state.get_expert_model_parallel_rank(),
        context=state.get_context_parallel_world_size(),
        context_rank=state.get_context_parallel_rank(),
        data=state.get_data_parallel_world_size(),
        data_rank=state.get_data_parallel_rank(),
        tensor_group=state.get_tensor_model_parallel_group(),
        pipeline_group=state.get_pipeline_model_parallel_group(),
        expert_group=state.get_expert_model_parallel_group(),
        context_group=state.get_context_parallel_group(),
        data_group=state.get_data_parallel_group(),
        data_context_group=state.get_data_parallel_group(with_context_parallel=True),
    )
