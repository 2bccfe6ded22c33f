"""Files that evaluations write and that stages read to compare models.

A folder of one model holds report.json and samples.parquet. A checkpoint progression holds
progression.json, the reports of all models in training order, and comparisons.json, the last of
them against every other. A model that was evaluated in several precisions has precisions.json.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from data_schemas.reports import Comparison, EvaluationReport, PrecisionReport
from tasks.errors import DataError
from tasks.store.files import canonical_json, write_bytes

REPORT_FILE = "report.json"
PROGRESSION_FILE = "progression.json"
COMPARISONS_FILE = "comparisons.json"
PRECISIONS_FILE = "precisions.json"
Record = TypeVar("Record")
_REPORTS = TypeAdapter(tuple[EvaluationReport, ...])
_COMPARISONS = TypeAdapter(tuple[Comparison, ...])
_PRECISIONS = TypeAdapter(tuple[PrecisionReport, ...])


def read_evaluation(folder: Path) -> EvaluationReport:
    """Read one model's scores.

    Raises:
        DataError: the folder is not an evaluation's.
    """
    return _read(folder / REPORT_FILE, TypeAdapter(EvaluationReport))


def write_progression(
    folder: Path, reports: Sequence[EvaluationReport], comparisons: Sequence[Comparison]
) -> None:
    """Write the reports of all models, the candidate's last, and its comparisons with the rest."""
    _write(folder / PROGRESSION_FILE, reports)
    _write(folder / COMPARISONS_FILE, comparisons)


def write_precisions(folder: Path, reports: Sequence[PrecisionReport]) -> None:
    """Write what every other precision of a model changes."""
    _write(folder / PRECISIONS_FILE, reports)


def read_precisions(folder: Path) -> tuple[PrecisionReport, ...]:
    """Read it.

    Raises:
        DataError: the folder is not a comparison of precisions.
    """
    return _read(folder / PRECISIONS_FILE, _PRECISIONS)


def read_progression(folder: Path) -> tuple[EvaluationReport, ...]:
    """Read all reports, the candidate's last.

    Raises:
        DataError: the folder is not a checkpoint progression.
    """
    return _read(folder / PROGRESSION_FILE, _REPORTS)


def read_comparisons(folder: Path) -> tuple[Comparison, ...]:
    """Read the candidate's comparisons.

    Raises:
        DataError: the folder is not a checkpoint progression.
    """
    return _read(folder / COMPARISONS_FILE, _COMPARISONS)


def _write(path: Path, records: Sequence[BaseModel]) -> None:
    rows = [record.model_dump(mode="json") for record in records]
    write_bytes(path, canonical_json(rows))


def _read(path: Path, kind: TypeAdapter[Record]) -> Record:
    try:
        return kind.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
