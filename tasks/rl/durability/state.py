"""The saved state of a phase, from which step n+1 is the same as without a crash.

A state folder belongs to one phase on one start model and one set of problems:

    steps/000012.json         report, timing and ledger rows of step 12
committed/000012/         run.json, the trainer's state, rollouts in flight, the digests of
                              the records of steps 1 to 12, MANIFEST.json last

Everything random is a function of seed, step and position, so there is no generator state to save.
The step number is also the policy's version and the ledger's offset. Recovery uses the newest
committed step whose manifest and records match; a damaged one is skipped with a warning.
"""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from data_schemas.ledger import LedgerRow, PromptCost
from data_schemas.mismatch import GateRecord
from data_schemas.reports import StepReport, StepTiming
from tasks.engines.protocols import Trainer
from tasks.store.files import canonical_json, sha256_file, staged_folder, write_bytes
from tasks.store.manifest import MANIFEST, folder_manifest

KEPT_STATES = 2
RECORDS_FILE = "records.json"
"""In a committed state: sha256 of every step's record up to it, by file name."""
logger = logging.getLogger(__name__)


class RunState(BaseModel):
    """Where a phase stands after a committed step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = 0
    updates: int = 0
    """Optimizer updates so far, for the learning-rate schedule."""
    code: tuple[str, ...] = ()
    """Source digests that contributed, oldest first."""


class StepRecord(BaseModel):
    """All that is kept of one step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    report: StepReport
    timing: StepTiming
    ledger: tuple[LedgerRow, ...]
    costs: tuple[PromptCost, ...]
    gate: GateRecord


def write_step(folder: Path, record: StepRecord) -> None:
    """Write a step's record. It is valid once a state at or beyond that step is committed."""
    path = folder / "steps" / _record_name(record.report.step)
    write_bytes(path, canonical_json(record))


def write_pause(folder: Path, record: GateRecord) -> None:
    """Write the record of a step that the mismatch gate stopped; kept if the step is repeated."""
    path = folder / "pauses" / f"{record.step:06d}.json"
    write_bytes(path, canonical_json(record))


def read_pauses(folder: Path) -> list[GateRecord]:
    """Read the records of all stopped steps, in order."""
    paths = sorted((folder / "pauses").glob("[0-9]*.json"))
    return [GateRecord.model_validate_json(path.read_bytes()) for path in paths]


def read_steps(folder: Path, last: int) -> Iterator[StepRecord]:
    """Yield the records of steps 1 to `last`."""
    for step in range(1, last + 1):
        path = folder / "steps" / _record_name(step)
        yield StepRecord.model_validate_json(path.read_bytes())


def commit(folder: Path, state: RunState, trainer: Trainer, files: Mapping[str, bytes]) -> None:
    """Save the state atomically, and drop states that are no longer needed.

    Args:
        folder: of the phase.
        state: progress of the phase.
        trainer: saves weights and optimizer.
        files: further content of the state, by file name.
    """
    target = committed_folder(folder) / f"{state.step:06d}"
    records = _record_digests(folder, state.step)
    with staged_folder(target) as staged:  # renamed into place when the block ends
        (staged / "run.json").write_bytes(canonical_json(state))
        (staged / RECORDS_FILE).write_bytes(canonical_json(records))
        for name, payload in files.items():
            (staged / name).write_bytes(payload)
        trainer.save(staged)
        (staged / MANIFEST).write_bytes(folder_manifest(staged))
    _drop_old(folder)


def restore(folder: Path, trainer: Trainer) -> RunState:
    """Load the newest complete state into the trainer; a fresh RunState if there is none.

    Damaged states and files left incomplete by a killed process are removed.
    """
    _sweep(folder)
    path = newest_whole(folder)
    for newer in reversed(_states(folder)):
        if newer == path:
            break
        logger.warning("state %s is damaged and skipped; an earlier step is used", newer)
        shutil.rmtree(newer)
    _drop_old(folder)
    if path is None:
        return RunState()
    trainer.restore(path)
    return read_state(path)


def newest_whole(folder: Path) -> Path | None:
    """Find the newest state that matches its manifest, with the records of all its steps."""
    return next((path for path in reversed(_states(folder)) if _is_whole(folder, path)), None)


def newest(folder: Path) -> int:
    """Number of the newest committed step; 0 if there is none."""
    return max((int(path.name) for path in _states(folder)), default=0)


def read_state(path: Path) -> RunState:
    """Read the progress of a committed state."""
    return RunState.model_validate_json((path / "run.json").read_bytes())


def read_records(path: Path) -> dict[str, str]:
    """Read the sha256 of every step's record that belongs to a committed state, by file name."""
    return json.loads((path / RECORDS_FILE).read_bytes())


def read_file(folder: Path, step: int, name: str) -> bytes:
    """Read one of the files that were committed with a step."""
    return (committed_folder(folder) / f"{step:06d}" / name).read_bytes()


def past_code(folder: Path) -> tuple[str, ...]:
    """Source digests that contributed to the newest whole state; empty if there is none."""
    path = newest_whole(folder)
    return read_state(path).code if path else ()


def committed_folder(folder: Path) -> Path:
    """Folder of a phase's committed states, one subfolder each."""
    return folder / "committed"


def _states(folder: Path) -> list[Path]:
    return sorted(committed_folder(folder).glob("[0-9]*"))


def _drop_old(folder: Path) -> None:
    for old in _states(folder)[:-KEPT_STATES]:
        shutil.rmtree(old)


def _record_name(step: int) -> str:
    return f"{step:06d}.json"


def _record_digests(folder: Path, last: int) -> dict[str, str]:
    """Hash the records of steps 1 to `last`, reusing the digests of the previous state."""
    before = _states(folder)
    known = read_records(before[-1]) if before else {}
    names = [_record_name(step) for step in range(1, last + 1)]
    return {name: known.get(name) or sha256_file(folder / "steps" / name) for name in names}


def _sweep(folder: Path) -> None:
    """Remove temporary files and folders of a process that was killed while it wrote them."""
    for path in folder.glob("*/.*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_whole(folder: Path, path: Path) -> bool:
    manifest = path / MANIFEST
    if not manifest.exists() or manifest.read_bytes() != folder_manifest(path):
        return False
    return all(
        (folder / "steps" / name).exists() and sha256_file(folder / "steps" / name) == digest
        for name, digest in read_records(path).items()
    )
