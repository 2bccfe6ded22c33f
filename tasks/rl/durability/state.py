"""The saved state of a phase, from which step n+1 is the same as without a crash.

A state folder belongs to one phase on one start model and one set of problems:

    steps/000012.json         report, timing and ledger rows of step 12
    committed/000012/         run.json, the trainer's state, rollouts in flight

Everything random is a function of seed, step and position, so there is no generator state to save.
The step number is also the policy's version and the ledger's offset. `tasks.durability` commits and
recovers states.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from data_schemas.ledger import AgentLedgerRow, LedgerRow, PromptCost
from data_schemas.mismatch import GateRecord
from data_schemas.reports import StepReport, StepTiming
from tasks.durability import states
from tasks.engines.protocols import Trainer
from tasks.store.files import canonical_json, write_bytes

STATE_FILE = "run.json"


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
    ledger: tuple[LedgerRow | AgentLedgerRow, ...]
    costs: tuple[PromptCost, ...]
    gate: GateRecord
    rows: tuple[dict[str, JsonValue], ...] = Field(default=(), exclude_if=lambda rows: not rows)
    """Of a recipe; the record of a plain phase does not mention them."""


def write_step(folder: Path, record: StepRecord) -> None:
    """Write a step's record. It is valid once a state at or beyond that step is committed."""
    path = states.record_path(folder, _record_name(record.report.step))
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
        path = states.record_path(folder, _record_name(step))
        yield StepRecord.model_validate_json(path.read_bytes())


def commit(folder: Path, state: RunState, trainer: Trainer, files: Mapping[str, bytes]) -> None:
    """Save the state atomically, and drop states that are no longer needed.

    Args:
        folder: of the phase.
        state: progress of the phase.
        trainer: saves weights and optimizer.
        files: further content of the state, by file name.
    """
    records = [_record_name(step) for step in range(1, state.step + 1)]
    content = {STATE_FILE: canonical_json(state), **files}
    states.commit(folder, state.step, trainer, content, records)


def restore(folder: Path, trainer: Trainer) -> RunState:
    """Load the newest complete state into the trainer; a fresh RunState if there is none."""
    path = states.restore(folder, trainer)
    return read_state(path) if path else RunState()


def read_state(path: Path) -> RunState:
    """Read the progress of a committed state."""
    return RunState.model_validate_json((path / STATE_FILE).read_bytes())


def past_code(folder: Path) -> tuple[str, ...]:
    """Source digests that contributed to the newest whole state; empty if there is none."""
    path = states.newest_whole(folder)
    return read_state(path).code if path else ()


def _record_name(step: int) -> str:
    return f"{step:06d}.json"
