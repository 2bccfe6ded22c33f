"""A team whose ranks each write a large shard of a state: run by gloo_world.py."""

from functools import partial
from pathlib import Path

from tasks.durability import states
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.trainer import TeamTrainer
from tasks.store.manifest import MANIFEST

SHARD_BYTES = 2**25


class Shard:
    """A trainer whose rank has one shard, empty and sparse: it takes no space on a disk."""

    def save(self, folder: Path) -> None:
        with (folder / f"__{read_rank_info().rank}_0.distcp").open("wb") as file:
            file.truncate(SHARD_BYTES)

    def restore(self, folder: Path) -> None:
        """Read nothing: what is counted is what hashing reads."""


def committed_and_restarted(folder: Path) -> tuple[int, bytes]:
    """Commit a state and restart from it: bytes that this rank read, the manifest."""
    before = bytes_read()
    in_team(partial(_work, folder))()
    manifest = states.committed_folder(folder) / "000001" / MANIFEST
    return bytes_read() - before, manifest.read_bytes()


def _work(folder: Path) -> None:
    controller = current()
    assert controller is not None
    trainer = TeamTrainer(controller, Shard)  # pyright: ignore[reportArgumentType]
    states.commit(folder, 1, trainer, {"run.json": b"{}"}, [])
    assert states.newest_whole(folder) is not None
    assert states.restore(folder, trainer) is not None


def bytes_read() -> int:
    """By this process so far."""
    return int(Path("/proc/self/io").read_text().split()[1])
