"""Files that stages write and later ones read: progression of evaluations, nights, ledgers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from data_schemas.arrow import column_names, read_table, write_table
from data_schemas.reports import Comparison, EvaluationReport, Night
from data_schemas.rollouts import SOLVER, AgentLedgerRow, LedgerRow
from data_schemas.rows import FACETS, QUARANTINE, Facet, Quarantined
from tasks.errors import DataError
from tasks.store.files import canonical_json, write_bytes
from tasks.store.interface import store_at

# Files that evaluations write and that stages read to compare models.
#
# A folder of one model holds report.json and samples.parquet. A checkpoint progression holds
# progression.json, the reports of all models in training order, and comparisons.json, the last of
# them against every other.

REPORT_FILE = "report.json"
PROGRESSION_FILE = "progression.json"
COMPARISONS_FILE = "comparisons.json"
Record = TypeVar("Record")
_REPORTS = TypeAdapter(tuple[EvaluationReport, ...])
_COMPARISONS = TypeAdapter(tuple[Comparison, ...])


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


# What the page of a night shows, kept beside the reports of the store until it is written.

FILE = "night.json"


def save(store: str, execution: str, night: Night) -> None:
    """Keep what is known so far; a later call replaces it."""
    store_at(f"{store}/reports").write_bytes(canonical_json(night), f"{execution}.{FILE}")


def load_night(store: str, execution: str) -> Night | None:
    """Read what is known of an execution; None if there is none or it read no rows."""
    place, name = store_at(f"{store}/reports"), f"{execution}.{FILE}"
    return Night.model_validate_json(place.read_bytes(name)) if name in place.list_files() else None


def add_pass_rates(store: str, execution: str, rates: Mapping[str, Sequence[float | None]]) -> None:
    """Add the mean pass rate of each kind of problems that has a verdict."""
    night = load_night(store, execution)
    assert night is not None, execution  # rows are examined before they are graded
    decided = {name: [rate for rate in of if rate is not None] for name, of in rates.items()}
    means = {name: sum(of) / len(of) for name, of in decided.items() if of}
    save(store, execution, night.model_copy(update={"pass_rates": means}))


def facets(folders: Sequence[Path]) -> list[Facet]:
    """Read what curated sets say of their problems besides."""
    paths = [folder / FACETS for folder in folders]
    return [facet for path in paths if path.exists() for facet in read_table(path, Facet)]


def refusals(curated: Path) -> dict[str, str]:
    """Give one example of every reason for which rows were left out."""
    examples: dict[str, str] = {}
    for row in read_table(curated / QUARANTINE, Quarantined):
        examples.setdefault(row.reason, f"{row.key}: {row.detail}")
    return examples


# The ledger of a phase as a file: with agent and parent of every group, if it has several agents.
#
# The ledger of a phase with a solver only has the columns of LedgerRow, byte for byte.


def write_ledger(path: Path, rows: Sequence[LedgerRow]) -> None:
    """Write the rows of a phase."""
    if any(isinstance(row, AgentLedgerRow) for row in rows):
        write_table(path, AgentLedgerRow, map(_with_agent, rows))
    else:
        write_table(path, LedgerRow, rows)


def read_ledger(path: Path) -> list[LedgerRow]:
    """Read the rows of a phase.

    Raises:
        SchemaError: the file is not a ledger.
    """
    if "agent" in column_names(path):
        return [*read_table(path, AgentLedgerRow)]
    return read_table(path, LedgerRow)


def _with_agent(row: LedgerRow) -> AgentLedgerRow:
    if isinstance(row, AgentLedgerRow):
        return row
    solver = {"agent": SOLVER, "key": "", "parent": ""}
    return AgentLedgerRow.model_validate(row.model_dump() | solver)
