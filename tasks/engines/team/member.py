"""One process of a team: its groups, and the engines it holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Protocol

import torch
from torch import distributed as dist

from tasks.engines.protocols import RolloutEngine, Trainer
from tasks.engines.team.failure_store import FailureStore
from tasks.engines.team.rank_info import RankInfo, read_rank_info

COLLECTIVE_LIMIT = timedelta(hours=2)
"""Longest a rank waits for another inside an engine's collective."""
COMMAND_LIMIT = timedelta(days=30)
"""Between two commands lie whole rollouts and their rewards; that a peer died shows at once."""


@dataclass(frozen=True, slots=True)
class Member:
    """This process among the others."""

    rank_info: RankInfo
    failures: FailureStore
    commands: dist.ProcessGroup
    """What the main threads of all ranks do together."""
    async_group: dist.ProcessGroup
    """What rollout engines with processes of their own do meanwhile, in a second thread."""
    rollouts: dist.ProcessGroup
    """Finished rollouts on their way to the controller."""
    trainers: dict[int, Trainer] = field(default_factory=dict)
    engines: dict[int, RolloutEngine] = field(default_factory=dict)
    """By number; a rank has only the replicas it is part of."""


class End(Enum):
    """What the controller sends last."""

    DONE = "done"
    FAILED = "failed"


class Command(Protocol):
    """What the controller has others do while it does its own part."""

    def follow(self, member: Member) -> object:
        """Do this rank's part; what is returned goes to the controller, so it is small."""
        ...


@contextmanager
def joined() -> Iterator[Member]:
    """Meet the other processes; all ranks call this at the same time.

    The default group is made here, for every engine to use: gloo, and NCCL for CUDA tensors.
    """
    here, cuda = read_rank_info(), torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(here.local_rank)
    backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    dist.init_process_group(backend, timeout=COLLECTIVE_LIMIT)
    yield Member(here, FailureStore(here.rank), _group(), _group(), _group())
    # Only after a good end: with a peer gone this could wait for it.
    if dist.is_initialized():
        dist.destroy_process_group()


def _group() -> dist.ProcessGroup:
    """Make a group of all ranks, for one purpose: each carries one conversation at a time."""
    group = dist.new_group(backend="gloo", timeout=COMMAND_LIMIT)
    assert isinstance(group, dist.ProcessGroup)
    return group
