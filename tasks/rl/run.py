"""One phase of RL from a start model to an exported one, resumable at every step."""

import logging
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.graded import GradedProblem
from data_schemas.ledger import LedgerRow
from data_schemas.prompts import Problem
from data_schemas.settings import RLSettings
from tasks import storage
from tasks.engines.chat import load_tokenizer
from tasks.engines.select import open_rollout, open_trainer
from tasks.errors import Preempted
from tasks.rl import loop, state
from tasks.rl.collect import Score
from tasks.rl.draw import PromptStream

STEPS_FILE = "steps.jsonl"
LEDGER_FILE = "ledger.parquet"
PROBLEMS_FILE = "graded.parquet"
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Phase:
    """What a phase starts from and where its state lives."""

    settings: RLSettings
    start: Path
    """Model directory the phase starts from."""
    problems: tuple[Problem, ...]
    state: Path
    """Durable folder of this phase; a second run with the same folder goes on where it stopped."""
    code: str
    """Source digest of this program."""


def state_folder(workplace: Path, settings: RLSettings, start: str, problems: str) -> Path:
    """Name the state of a phase by all that decides what it does: the same work finds it again.

    Args:
        workplace: a disk that outlives the process, shared by all nodes on a cluster.
        settings: of the phase.
        start: digest of the start model.
        problems: digest of the graded problems.
    """
    work = {"settings": settings.model_dump(mode="json"), "start": start, "problems": problems}
    return workplace / "state" / storage.sha256_bytes(storage.canonical_json(work))[:16]


def all_code(folder: Path, code: str) -> tuple[str, ...]:
    """Source digests a phase will rest on: those its committed state has seen, then this one."""
    return tuple(dict.fromkeys((*state.past_code(folder), code)))


def read_problems(graded: Path) -> tuple[Problem, ...]:
    """Read what grading left to train on."""
    return tuple(read_table(graded / PROBLEMS_FILE, GradedProblem))


def train(phase: Phase, score: Score) -> Iterator[state.StepRecord]:
    """Yield the record of every step that still had to be done.

    Raises:
        Preempted: SIGTERM came; the step in flight was finished and committed first.
    """
    settings = phase.settings
    trainer = open_trainer(settings.engines.trainer, phase.start)
    now = state.restore(phase.state, trainer)
    if now.step:
        # A warning, because whoever reads the curves must know that two processes made them.
        logger.warning("continuing after committed step %d of %d", now.step, settings.steps)
    if phase.code not in now.code:
        now = now.model_copy(update={"code": (*now.code, phase.code)})
    run = loop.Run(
        settings=settings,
        engine=open_rollout(settings.engines.rollout, phase.start),
        trainer=trainer,
        tokenizer=load_tokenizer(phase.start),
        score=score,
        stream=PromptStream(phase.problems, settings.domains, settings.seed, now.position),
        folder=phase.state,
    )
    with _termination() as told_to_stop:
        for record in loop.steps(run, now):
            yield record
            if told_to_stop.is_set() and record.report.step < settings.steps:
                raise Preempted(f"stopped by SIGTERM after committed step {record.report.step}")


def finish(phase: Phase, model_out: Path, report_out: Path) -> dict[str, float | int | str]:
    """Export the trained policy and write the phase's report; returns facts for the statement.

    The model is read back from the committed state, so what is exported is what a
    resumed run would have had.
    """
    trainer = open_trainer(phase.settings.engines.trainer, phase.start)
    last = state.restore(phase.state, trainer)
    trainer.export(model_out)
    records = list(state.read_steps(phase.state, last.step))
    lines = b"".join(storage.canonical_json(record.report) + b"\n" for record in records)
    storage.write_bytes(report_out / STEPS_FILE, lines)
    rows = [row for record in records for row in record.ledger]
    write_table(report_out / LEDGER_FILE, LedgerRow, rows)
    tail = records[-5:]
    return {
        "steps": last.step,
        "updates": last.updates,
        "prompts": len(rows),
        "generated_tokens": sum(row.generated_tokens for row in rows),
        "trained_tokens": sum(row.trained_tokens for row in rows),
        "last_solved_share": sum(r.report.metrics["reward/solved_share"] for r in tail) / len(tail),
        "zero_variance_share": sum(r.report.metrics["zero_variance/share"] for r in records)
        / len(records),
    }


def clear(phase: Phase) -> None:
    """Remove a finished phase's working state; its results are committed artifacts by now."""
    shutil.rmtree(phase.state, ignore_errors=True)


@contextmanager
def _termination() -> Iterator[threading.Event]:
    """Turn SIGTERM into an event while the block runs; only the main thread can."""
    told = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: told.set())
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, previous)
