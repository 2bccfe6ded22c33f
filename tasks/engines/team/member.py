"""One process of a team: its rank, its groups, and the engines it holds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import distributed as dist

from tasks.engines.process_group import join_world
from tasks.engines.protocols import Trainer
from tasks.engines.request_queue import QueueingEngine
from tasks.engines.team.fabric import least_bandwidth, refuse_slow_fabric
from tasks.engines.team.failure_store import FailureStore

# Rank and world size of a process, from torchrun's environment.


@dataclass(frozen=True, slots=True)
class RankInfo:
    """One process; a world of one if not started by torchrun."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    """Processes on this node."""

    @property
    def is_controller(self) -> bool:
        """True for the process that runs the stage."""
        return self.rank == 0


def read_rank_info() -> RankInfo:
    """Read RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    return RankInfo(
        rank=int(os.environ.get("RANK", "0")),
        size=size,
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        local_size=int(os.environ.get("LOCAL_WORLD_SIZE", size)),
    )


def replicas(
    size: int, local_size: int, *, tensor: int, dedicated: bool
) -> tuple[tuple[int, ...], ...]:
    """Ranks of every rollout engine, its representative first; the first replica has rank 0.

    Args:
        size: of the team.
        local_size: processes per node.
        tensor: tensor parallel size of an engine; a group never spans nodes.
        dedicated: one engine per node in separate processes, else one per `tensor` ranks.
    """
    if dedicated:
        return tuple((first,) for first in range(0, size, local_size))
    return tuple(tuple(range(first, first + tensor)) for first in range(0, size, tensor))


COMMAND_LIMIT = timedelta(days=30)
"""Between two commands are whole rollouts and rewards; a peer's death is detected at once."""


@dataclass(frozen=True, slots=True)
class Member:
    """This process in its team."""

    rank_info: RankInfo
    failures: FailureStore
    commands: dist.ProcessGroup
    """Commands executed by the main threads of all ranks."""
    async_group: dist.ProcessGroup
    """Commands to dedicated rollout engines, executed in a second thread."""
    rollouts: dist.ProcessGroup
    """Finished rollouts sent to the controller."""
    trainers: dict[int, Trainer] = field(default_factory=dict)
    engines: dict[int, QueueingEngine] = field(default_factory=dict)
    """By number; a rank has only the replicas to which it belongs."""
    routes: dict[str, NDArray[np.uint8 | np.int16]] = field(default_factory=dict)
    """Recorded here under the engine's current weights, by digest: trainers get them from here."""
    recorders: dict[str, int] = field(default_factory=dict)
    """Which rank holds them; at the controller."""


class End(Enum):
    """The controller's last message."""

    DONE = "done"
    FAILED = "failed"


class Command(Protocol):
    """A command that workers execute while the controller executes its own part."""

    def execute(self, member: Member) -> object:
        """Execute this rank's part; the result is sent to the controller and should be small."""
        ...


@contextmanager
def join_team() -> Iterator[Member]:
    """Initialise the process groups; a collective call of all ranks.

    The default group, which all engines use, is created here: gloo, and NCCL for CUDA tensors.

    Raises:
        SettingsError: the nodes have a fabric that NCCL does not use.
    """
    device = join_world()
    here = read_rank_info()
    least_gb_s = least_bandwidth(device, ranks=here.size, local_ranks=here.local_size)
    refuse_slow_fabric(device, least_gb_s)
    yield Member(here, FailureStore(here.rank, here.size), _group(), _group(), _group())
    # Only after success: without a peer this could wait forever.
    if dist.is_initialized():
        dist.destroy_process_group()


def _group() -> dist.ProcessGroup:
    """Create a group of all ranks; each group carries one exchange at a time."""
    group = dist.new_group(backend="gloo", timeout=COMMAND_LIMIT)
    assert isinstance(group, dist.ProcessGroup)
    return group
