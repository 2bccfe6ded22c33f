"""Files on a disk that all ranks share, hashed by all: terabytes take one rank minutes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tasks.engines.team.controller import current
from tasks.engines.team.member import Member
from tasks.store.manifest import hash_files

_WRITER = re.compile(r"__(\d+)_\d+\.distcp$")
"""torch's name of a file that one rank wrote: its node still has it in memory."""


@dataclass(frozen=True, slots=True)
class Hash:
    """Hash this rank's share of files."""

    shares: Sequence[Sequence[Path]]
    """By rank."""

    def execute(self, member: Member) -> list[str]:
        return hash_files(self.shares[member.rank_info.rank])


def hash_in_team(paths: Sequence[Path]) -> list[str]:
    """sha256 of each file: of a shard by the rank that wrote it, of all others by rank 0.

    Only a trainer whose ranks share a disk has such shards.
    """
    matches = [_WRITER.search(path.name) for path in paths]
    controller = current() if any(matches) else None
    if controller is None:
        return hash_files(paths)
    size = controller.member.rank_info.size
    ranks = [int(one[1]) % size if one else 0 for one in matches]
    shares = [
        [path for path, reader in zip(paths, ranks, strict=True) if reader == rank]
        for rank in range(size)
    ]
    with controller.commands.together(Hash(shares)) as replies:
        own = hash_files(shares[0])
    digests = [iter(one) for one in (own, *cast(list[list[str]], replies))]
    return [next(digests[rank]) for rank in ranks]
