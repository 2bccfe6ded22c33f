"""Rank and world size of a process, from torchrun's environment."""

import os
from dataclasses import dataclass


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
