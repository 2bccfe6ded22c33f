"""The data of a run's terminal summary and report, read from the artifacts of its stages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from data_schemas.artifacts import Execution
from data_schemas.reports import (
    STEPS_FILE,
    Comparison,
    EvaluationReport,
    GateDecision,
    PrecisionReport,
    StepReport,
    SuiteScore,
)
from tasks.errors import DataError
from tasks.pages.before_after import BeforeAfter
from tasks.pages.stage_rows import StageRow

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
    """Answers of the first model and the candidate."""
    precisions: tuple[PrecisionReport, ...] = ()
    """What other precisions of the last model's engine change."""
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
