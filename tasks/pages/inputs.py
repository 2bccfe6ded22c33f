"""The data of a run's summary and report: which stages ran, and why."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from data_schemas.artifacts import Execution
from data_schemas.reports import (
    STEPS_FILE,
    Comparison,
    EvaluationReport,
    GateDecision,
    StepReport,
    SuiteScore,
)
from data_schemas.statements import ExecutionRecord, Statement
from tasks.errors import DataError
from tasks.pages.before_after import BeforeAfter
from tasks.provenance.lineage.statements import chain, load_executions, load_statement
from tasks.store.interface import store_at

# Why a stage ran or was served from the cache.
#
# A stage that was not executed was served from the cache: its statement already existed. A
# stage that was executed is compared with the most recent earlier statement of the same name.

_MAX_CHANGES = 3
_MAX_VALUE = 40
"""Characters of a settings value that are shown."""


@dataclass(frozen=True, slots=True)
class Made:
    """A statement with one execution that made it."""

    statement: Statement
    record: ExecutionRecord


def explain(current: Statement, executed_now: bool, earlier: Sequence[Made]) -> str:
    """Explain in one line why a stage ran or was served from the cache.

    Args:
        current: the statement that this execution used as the stage's result.
        executed_now: False if it was served from the cache.
        earlier: statements of other executions in this store, any stage, any order.
    """
    same_stage = sorted(
        (earlier_run for earlier_run in earlier if earlier_run.statement.stage == current.stage),
        key=lambda earlier_run: earlier_run.record.started,
    )
    if not executed_now:
        return _explain_cached(current, same_stage)
    if not same_stage:
        return "first time in this store"
    last = same_stage[-1]
    changes = differences(last.statement, current)
    if not changes:
        return f"ran again; nothing changed since {_when(last.record)}"
    return "; ".join(changes)


def differences(before: Statement, after: Statement) -> list[str]:
    """List what changed between two statements of one stage, causes only."""
    changes = []
    if before.code != after.code:
        changes.append("code changed")
    changes.extend(_settings_changes(before.settings, after.settings))
    changes.extend(_input_changes(before, after))
    if before.environment != after.environment:
        changes.append("installed packages changed")
    return changes


def _explain_cached(current: Statement, same_stage: Sequence[Made]) -> str:
    makers = [earlier_run for earlier_run in same_stage if earlier_run.statement == current]
    if not makers:
        return "same code, settings and inputs as an execution not recorded in this store"
    return f"same code, settings and inputs as {_when(makers[-1].record)}"


def _when(record: ExecutionRecord) -> str:
    date = datetime.fromtimestamp(record.started, UTC).strftime("%Y-%m-%d")
    return f"execution {record.execution} on {date}"


def _settings_changes(before: str, after: str) -> list[str]:
    old, new = flat(json.loads(before)), flat(json.loads(after))
    changed = [
        f"{name} {value_text(old, name)} -> {value_text(new, name)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) or (name in old) != (name in new)
    ]
    if not changed:
        return []
    more = len(changed) - _MAX_CHANGES
    listed = ", ".join(changed[:_MAX_CHANGES])
    return [f"settings changed: {listed}" + (f" and {more} more" if more > 0 else "")]


def flat(value: object, prefix: str = "") -> dict[str, object]:
    """Nested settings as dotted names; lists stay whole."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    if not value:
        return {prefix: {}} if prefix else {}
    return {
        name: leaf
        for key, inner in value.items()
        for name, leaf in flat(inner, f"{prefix}.{key}" if prefix else str(key)).items()
    }


def value_text(settings: Mapping[str, object], name: str) -> str:
    """Write a value of flat settings in one line, or that there is none."""
    if name not in settings:
        return "(none)"
    text = json.dumps(settings[name], ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 3] + "..."


def _input_changes(before: Statement, after: Statement) -> list[str]:
    old = {item.role: item for item in before.inputs}
    new = {item.role: item for item in after.inputs}
    changes = []
    for role in sorted(old.keys() | new.keys()):
        if role not in old:
            changes.append(f"input '{role}' is new")
        elif role not in new:
            changes.append(f"input '{role}' is no longer read")
        elif old[role].digest != new[role].digest:
            changes.append(f"input '{role}' changed")
        elif old[role].statement != new[role].statement:
            changes.append(f"input '{role}' was made anew, with the same bytes")
    more = len(changes) - _MAX_CHANGES
    return changes[:_MAX_CHANGES] + ([f"{more} more inputs changed"] if more > 0 else [])


# The stage table of one execution, from the statements and records in its store.


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of a run, for display."""

    stage: str
    executed: bool
    """False: served from the cache."""
    seconds: float
    """Seconds of its execution, now or when it was cached."""
    rows_in: int
    rows_out: int
    why: str
    gpu_seconds: float = 0.0
    """Seconds times the GPUs that it reserved."""


def stage_rows(store: str, execution: str, results: Sequence[str]) -> tuple[StageRow, ...]:
    """List every stage that led to the results of an execution, producers first.

    Args:
        store: uri of the store.
        execution: id of the execution.
        results: statement digests of the last stages' outputs.

    Raises:
        DataError: a statement is missing.
        TamperError: a statement was changed.
    """
    statements = chain(store, results)
    records = _all_records(store)
    stages = {statement.stage for statement in statements.values()}
    others = [
        record for record in records if record.execution != execution and record.stage in stages
    ]
    now = {record.statement: record for record in records if record.execution == execution}
    latest = {record.statement: record for record in others} | now
    loaded = {digest: load_statement(store, digest) for digest in {r.statement for r in others}}
    until = {digest: record.started for digest, record in now.items()}
    return tuple(
        StageRow(
            stage=statement.stage,
            executed=digest in now,
            seconds=latest[digest].seconds if digest in latest else 0.0,
            rows_in=latest[digest].rows_in if digest in latest else 0,
            rows_out=latest[digest].rows_out if digest in latest else 0,
            why=explain(
                statement,
                digest in now,
                [
                    Made(loaded[record.statement], record)
                    for record in others
                    if record.started < until.get(digest, math.inf)
                ],
            ),
            gpu_seconds=latest[digest].gpu_seconds if digest in latest else 0.0,
        )
        for digest, statement in statements.items()
    )


def _all_records(store: str) -> list[ExecutionRecord]:
    """Read every execution record of the store, oldest first."""
    names = store_at(f"{store}/executions").list_files()
    executions = sorted({name.split("/")[0] for name in names})
    records = [record for name in executions for record in load_executions(store, name)]
    return sorted(records, key=lambda record: record.started)


# The data of a run's terminal summary and report, read from the artifacts of its stages.

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """One execution. Parts that a workflow does not have are empty and not shown."""

    workflow: str
    """'post_training', 'retrain' ..."""
    execution: Execution
    settings: BaseModel
    stages: tuple[StageRow, ...]
    progression: tuple[EvaluationReport, ...] = ()
    """In the order the models were made; the last one is the candidate."""
    gains: tuple[Comparison, ...] = ()
    """The candidate against one parent: 'all' and every domain."""
    answers: tuple[BeforeAfter, ...] = ()
    """Of the first model and the candidate."""
    gate: GateDecision | None = None
    phases: Mapping[str, Path] = field(default_factory=dict)
    """'rl/one' -> folder with steps.jsonl, in order."""
    tunings: Mapping[str, Path] = field(default_factory=dict)
    """'sft/reasoning' -> folder with epochs.json and report.json."""
    curated: Path | None = None
    """Folder with the curation's report.json."""
    places: Mapping[str, str] = field(default_factory=dict)
    """'MLflow' -> where it is."""


class EarlySample(BaseModel):
    """One answer of an epoch's model; reports of earlier versions have no prompt or reference."""

    model_config = ConfigDict(frozen=True)

    demonstration: str
    domain: str
    response: str
    prompt: str = ""
    reference: str = ""


class Epoch(BaseModel):
    """One line of epochs.json."""

    model_config = ConfigDict(frozen=True)

    epoch: int
    train_loss: float
    val_loss: float
    entropy: float
    train_losses: dict[str, float] = {}
    val_losses: dict[str, float] = {}
    """By domain; none in reports of earlier versions."""
    samples: tuple[EarlySample, ...] = ()
    chosen: bool = False


class Tuning(BaseModel):
    """report.json of a fine-tuning, with its epochs."""

    model_config = ConfigDict(frozen=True)

    demonstrations: int
    entropy_window_nats: tuple[float, float]
    epochs: tuple[Epoch, ...] = ()


def read_steps(folder: Path) -> list[StepReport]:
    """Read the step reports of one RL phase, in step order.

    Raises:
        DataError: the file is missing or a line is not a step report; names the line.
    """
    path = folder / STEPS_FILE
    reports = []
    for number, line in enumerate(read(path).splitlines(), start=1):
        if line.strip():
            reports.append(parse(line, StepReport, f"{path}, line {number}"))
    return sorted(reports, key=lambda report: report.step)


def read_tuning(folder: Path) -> Tuning:
    """Read the report of a fine-tuning.

    Raises:
        DataError: a file is missing or has the wrong format.
    """
    where = folder / "epochs.json"
    epochs = parse(read(where), tuple[Epoch, ...], str(where))
    where = folder / "report.json"
    tuning = parse(read(where), Tuning, str(where))
    return tuning.model_copy(update={"epochs": epochs})


def suite(report: EvaluationReport, name: str) -> SuiteScore | None:
    """Find one suite of a model; None without verdicts, because its means are undefined."""
    return next(
        (score for score in report.suites if score.suite == name and score.problems > 0), None
    )


def read(path: Path) -> bytes:
    """Read a file of an artifact.

    Raises:
        DataError: it is gone.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def parse(payload: bytes, kind: type[Record], where: str) -> Record:
    """Read a record from JSON.

    Raises:
        DataError: it is not one; names the place and the field.
    """
    try:
        return TypeAdapter(kind).validate_json(payload)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "value"
        raise DataError(f"{where}: {name}: {first['msg']}") from error
