"""A team of nodes with a process each, which upload a state from one disk: run by gloo_world.py."""

import os
import time
from functools import partial
from pathlib import Path

from tasks.durability import states
from tasks.durability.durable import keep_durable
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.trainer import TeamTrainer
from tasks.store.files import write_bytes
from tasks.store.local import LocalStore

SHARDS = 12
PATIENCE_S = 60.0


class Shards:
    """A trainer whose first rank has several small shards."""

    def save(self, folder: Path) -> None:
        for number in range(SHARDS if read_rank_info().is_controller else 0):
            write_bytes(folder / f"{number}.distcp", bytes([number]) * 64)

    def restore(self, folder: Path) -> None:
        """Read nothing."""


def uploaded(folder: Path, uri: str) -> list[str]:
    """Commit a state and make it durable: the names of what this node uploaded."""
    os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"] = "0", "1"
    sent: list[str] = []
    plain = LocalStore.upload_file

    def slowly(store: LocalStore, path: Path, name: str = "") -> None:
        time.sleep(0.5)
        plain(store, path, name)
        sent.append(Path(name).name)

    LocalStore.upload_file = slowly  # pyright: ignore[reportAttributeAccessIssue]
    in_team(partial(_work, folder, uri))()
    return sent


def _work(folder: Path, uri: str) -> None:
    controller = current()
    assert controller is not None
    trainer = TeamTrainer(controller, Shards)  # pyright: ignore[reportArgumentType]
    with keep_durable(folder, uri, None, lambda: PATIENCE_S) as uploads:
        states.commit(folder, 1, trainer, {"run.json": b"{}"}, [])
        uploads.flush(PATIENCE_S)
        assert 1 == uploads.counts.uploaded
