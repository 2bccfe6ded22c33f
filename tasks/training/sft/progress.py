"""The saved progress of a fine-tuning, from which it goes on to the bytes of one nobody killed.

    steps/epoch-1/            the exported checkpoint of an epoch
    committed/000120/         the trainer's state after update 120, and progress.json

The rows of every batch are a function of seed and epoch, so there is no generator state to save.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Domain
from tasks.durability import states
from tasks.engines.protocols import PACKED_ROWS, PADDING_ROWS, Trainer
from tasks.store.files import canonical_json, staged_folder
from tasks.training.sft.measures import EpochReport

PROGRESS_FILE = "progress.json"
COMMIT_SHARE = 0.05
"""Largest share of the time that is spent on commits, apart from those at the end of an epoch. A
killed run repeats at most the work of 1 / COMMIT_SHARE commits' time."""


class Progress(FrozenModel):
    """Where a fine-tuning stands after a committed update."""

    updates: int = 0
    loss_sum: float = 0.0
    """Over the response tokens of the current epoch so far, nats."""
    tokens: int = 0
    """Response tokens of the current epoch so far."""
    loss_sums: dict[Domain, float] = Field(default={})
    """`loss_sum` divided by domain."""
    domain_tokens: dict[Domain, int] = Field(default={})
    """`tokens` divided by domain."""
    rows: int = 0
    """Packed rows that the trainer computed in the current epoch so far."""
    padding: int = 0
    """Rows among these that belong to no token."""
    skipped: int = 0
    """Updates of the current epoch so far whose gradients overflowed in fp16."""
    epochs: tuple[EpochReport, ...] = ()
    """Reports of the epochs that are complete."""
    code: tuple[str, ...] = ()
    """Source digests that contributed, oldest first."""


def after_update(
    now: Progress,
    result: Mapping[str, float],
    shares: Mapping[Domain, float],
    trained: Iterable[tuple[Domain, int]],
) -> Progress:
    """Return the progress after one more update.

    Args:
        now: before it.
        result: of the trainer: loss in nats per response token, packed and padding rows, and in
            fp16 whether the update was skipped.
        shares: of `loss`, by domain.
        trained: domain and response tokens of every row.
    """
    sums, tokens = dict(now.loss_sums), dict(now.domain_tokens)
    for domain, amount in trained:
        tokens[domain] = tokens.get(domain, 0) + amount
    count = sum(tokens.values()) - sum(now.domain_tokens.values())
    for domain, share in shares.items():
        sums[domain] = sums.get(domain, 0.0) + share * count
    changes = {
        "updates": now.updates + 1,
        "loss_sum": now.loss_sum + result["loss"] * count,
        "tokens": now.tokens + count,
        "loss_sums": sums,
        "domain_tokens": tokens,
        "rows": now.rows + int(result[PACKED_ROWS]),
        "padding": now.padding + int(result[PADDING_ROWS]),
        "skipped": now.skipped + int(result.get("overflow_updates", 0.0)),
    }
    return now.model_copy(update=changes)


def restore(folder: Path, trainer: Trainer) -> Progress:
    """Load the newest complete state into the trainer; a fresh Progress if there is none."""
    return _read(states.restore(folder, trainer))


def newest(folder: Path) -> Progress:
    """Read the newest complete state's progress; a fresh one if there is none."""
    return _read(states.newest_whole(folder))


def keep_checkpoint(folder: Path, epoch: int, trainer: Trainer) -> None:
    """Export an epoch's checkpoint. It is valid once a state at or beyond it is committed."""
    target = checkpoint_folder(folder, epoch)
    if target.exists():  # of a process that was killed before that commit
        shutil.rmtree(target)
    with staged_folder(target) as staged:
        trainer.export(staged)


def checkpoint_folder(folder: Path, epoch: int) -> Path:
    """Folder of the exported checkpoint of an epoch."""
    return states.record_path(folder, f"epoch-{epoch}")


@dataclass(slots=True)
class Committer:
    """Commits the states of one fine-tuning.

    Args:
        folder: of its states.
        share: of the time that commits may take; 1 commits after every update.
        clock: seconds.
    """

    folder: Path
    share: float = COMMIT_SHARE
    clock: Callable[[], float] = time.monotonic
    _cost_s: float = 0.0
    _ended: float = -1.0

    def is_due(self) -> bool:
        """Return whether enough time has passed since the last commit. The first is due at once."""
        return self._ended < 0.0 or self.clock() - self._ended >= self._cost_s * (
            1.0 / self.share - 1.0
        )

    def commit(self, now: Progress, trainer: Trainer) -> None:
        """Commit the trainer's state, with the checkpoints of all complete epochs as records."""
        started = self.clock()
        root = states.record_path(self.folder, "")
        records = [
            path.relative_to(root).as_posix()
            for report in now.epochs
            for path in sorted(checkpoint_folder(self.folder, report.epoch).rglob("*"))
            if path.is_file()
        ]
        files = {PROGRESS_FILE: canonical_json(now)}
        states.commit(self.folder, now.updates, trainer, files, records)
        self._ended = self.clock()
        self._cost_s = self._ended - started


def _read(path: Path | None) -> Progress:
    if path is None:
        return Progress()
    return Progress.model_validate_json((path / PROGRESS_FILE).read_bytes())
