"""What must be saved so that step n+1 is the same after a crash.

A state folder belongs to one phase on one start model and one set of problems:

    steps/000012.json         report, timing and ledger rows of step 12
    committed/000012/         run.json, the trainer's state, what is in flight, MANIFEST.json last

Everything random is a function of seed, step and place, so no generator has a state to save:
run.json, the trainer's state and what lies between two steps are all there is. The newest committed
step whose manifest fits wins; a damaged one is passed over with a warning.
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
from tasks import storage
from tasks.engines.protocols import Trainer

KEPT_STATES = 2
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
    """Keep a step's record. It counts once a state at or beyond that step is committed."""
    path = folder / "steps" / f"{record.report.step:06d}.json"
    storage.write_bytes(path, storage.canonical_json(record))


def read_steps(folder: Path, last: int) -> Iterator[StepRecord]:
    """Yield the records of steps 1 to `last`."""
    for step in range(1, last + 1):
        path = folder / "steps" / f"{step:06d}.json"
        yield StepRecord.model_validate_json(path.read_bytes())


def commit(folder: Path, state: RunState, trainer: Trainer, files: Mapping[str, bytes]) -> None:
    """Save the state whole or not at all, and drop states that are no longer needed.

    Args:
        folder: of the phase.
        state: where it stands.
        trainer: saves its own part.
        files: what else belongs to the state, by file name.
    """
    target = folder / "committed" / f"{state.step:06d}"
    with storage.staged_folder(target) as staged:
        storage.write_bytes(staged / "run.json", storage.canonical_json(state))
        for name, payload in files.items():
            storage.write_bytes(staged / name, payload)
        trainer.save(staged)
        storage.write_bytes(staged / storage.MANIFEST, storage.folder_manifest(staged))
    for old in sorted(target.parent.glob("[0-9]*"))[:-KEPT_STATES]:
        shutil.rmtree(old)


def restore(folder: Path, trainer: Trainer) -> RunState:
    """Load the newest whole state into the trainer; a fresh RunState if there is none."""
    for path in sorted((folder / "committed").glob("[0-9]*"), reverse=True):
        if _is_whole(path):
            trainer.restore(path)
            return RunState.model_validate(json.loads((path / "run.json").read_bytes()))
        logger.warning("state %s is damaged and passed over; the step before it is used", path)
        shutil.rmtree(path)
    return RunState()


def newest(folder: Path) -> int:
    """Number of the newest committed step; 0 if there is none."""
    return max((int(path.name) for path in (folder / "committed").glob("[0-9]*")), default=0)


def read_file(folder: Path, step: int, name: str) -> bytes:
    """Read one of the files that were committed with a step."""
    return (folder / "committed" / f"{step:06d}" / name).read_bytes()


def past_code(folder: Path) -> tuple[str, ...]:
    """Source digests that contributed to the newest whole state; empty if there is none."""
    for path in sorted((folder / "committed").glob("[0-9]*"), reverse=True):
        if _is_whole(path):
            return RunState.model_validate_json((path / "run.json").read_bytes()).code
    return ()


def _is_whole(path: Path) -> bool:
    manifest = path / storage.MANIFEST
    return manifest.exists() and manifest.read_bytes() == storage.folder_manifest(path)
