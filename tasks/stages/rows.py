"""Flyte shells of row lineage."""

import io
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import csv
from pydantic import BaseModel
from rich.console import RenderableType

from data_schemas.artifacts import StoreRef
from tasks.errors import EngineError, SettingsError
from tasks.platform.shell import shell
from tasks.platform.tables import Screen, json_line
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.rows import find
from tasks.provenance.rows.differences import compare
from tasks.provenance.rows.index import Index, open_index
from tasks.provenance.rows.influence import trace_model, trace_rows
from tasks.provenance.rows.text import comparison_text, forget_text, model_text, row_text
from tasks.provenance.rows.withdrawal import forget as withdraw
from tasks.provenance.rows.withdrawal import read_rows
from tasks.store import location
from tasks.store.interface import store_at

logger = logging.getLogger(__name__)

FORMATS = ("text", "json")
RELEASED = "models:/eachprompt-tiny@released"


@shell("trace")
def trace(
    model: str,
    row: str,
    file: str,
    source: str,
    verifier: str,
    judge: str,
    store: str,
    show: int,
    format: str,
) -> str:
    """Follow rows to what they touched, or a model back to its rows; print the answer.

    Args:
        model: 'models:/NAME@released', 'models:/NAME/3', or the digest of a checkpoint.
        row: digest or text of a raw row.
        file: raw file, by path or sha256.
        source: adapter.
        verifier: its name, also with the digest of its code: 'final_answer@1a2b3c4d'.
        judge: its kind, model or address.
        store: folder or s3:// prefix that holds the artifacts.
        show: rows to print.
        format: 'text', or 'json' for the answer as one line.

    Returns:
        CSV with all rows of a model; '' for other questions, or if nothing can be written.

    Raises:
        SettingsError: not exactly one thing was asked for, or it is not in the store.
    """
    options = {"model": model, "row": row, "file": file, "source": source}
    options |= {"verifier": verifier, "judge": judge}
    selected = {name: value for name, value in options.items() if value} or {"model": RELEASED}
    if len(selected) > 1:
        raise SettingsError(f"give one of {', '.join(f'--{name}' for name in selected)}")
    ((name, value),) = selected.items()
    check_format(format)
    uri = location.absolute_store(store)
    index = open_store_index(uri)
    if name == "model":
        return _trace_model(index, uri, value, show, format)
    questions: dict[str, Callable[[], find.RowSelection]] = {
        "row": lambda: find.by_row(index, uri, value),
        "file": lambda: find.by_file(index, value),
        "source": lambda: find.by_source(index, value),
        "verifier": lambda: find.by_verifier(index, value),
        "judge": lambda: find.by_judge(index, value),
    }
    answer = trace_rows(index, questions[name](), show)
    say(answer, row_text(answer), format)
    return ""


@shell("compare_models")
def compare_models(before: str, after: str, store: str, format: str) -> str:
    """Print what two models differ in.

    Args:
        before: 'models:/NAME/3', or the digest of a checkpoint.
        after: as before.
        store: folder or s3:// prefix that holds the artifacts.
        format: 'text', or 'json' for the answer as one line.

    Returns:
        CSV with all rows that differ; '' if nothing can be written.

    Raises:
        SettingsError: there is no such model.
    """
    check_format(format)
    uri = location.absolute_store(store)
    index = open_store_index(uri)
    roots = [find_statements(index, uri, model)[0] for model in (before, after)]
    difference, rows = compare(index, *roots)
    name = f"{difference.before.checkpoint[:16]}-{difference.after.checkpoint[:16]}"
    difference = difference.model_copy(update={"table": write_rows(uri, name, rows)})
    say(difference, comparison_text(difference), format)
    return difference.table


@shell("forget")
def forget(rows: str, store: str, show: int, format: str) -> str:
    """Print which releases must go because of withdrawn rows, and write the exclusion list.

    Args:
        rows: file that names one row per line, by digest or text.
        store: folder or s3:// prefix that holds the artifacts.
        show: rows to print.
        format: 'text', or 'json' for the answer as one line.

    Returns:
        The exclusion list.

    Raises:
        SettingsError: a line of the file means no row.
    """
    check_format(format)
    uri = location.absolute_store(store)
    file = store_at(location.existing_file(rows, "--rows")).local_path
    if file is None:
        raise SettingsError(f"--rows {rows} is remote. Copy it to this machine.")
    index = open_store_index(uri)
    withdrawal = withdraw(index, uri, _place(uri), read_rows(index, uri, file), show)
    say(withdrawal, forget_text(withdrawal, uri), format)
    return withdrawal.exclusions


def check_format(format: str) -> None:
    """Check the format of what is printed.

    Raises:
        SettingsError: there is no such format.
    """
    if format not in FORMATS:
        raise SettingsError(f"--format {format!r} is neither {' nor '.join(FORMATS)}")


def open_store_index(store: str) -> Index:
    """Open the index of a store."""
    return open_index(store, _place(store))


def find_statements(index: Index, store: str, model: str) -> list[str]:
    """Find the statements of a model; MLflow is only asked for 'models:/...'."""
    environment = os.environ.get("MLFLOW_TRACKING_URI", "")
    tracking = location.tracking_uri(store, environment) if model.startswith("models:") else ""
    return find.model_statements(index.graph, model, store, tracking)


def say(answer: BaseModel, text: RenderableType, format: str) -> None:
    """Print an answer as text, or as JSON on one line."""
    console = Screen()
    if format == "json":
        console.print(json_line(answer), soft_wrap=True)
    else:
        console.print(text)


def write_rows(store: str, name: str, table: pa.Table) -> str:
    """Write a table of rows into the store; '' if nothing can be written there."""
    where = f"{store}/traces/{name}.csv"
    payload = io.BytesIO()
    csv.write_csv(table, payload)
    try:
        store_at(where).write_bytes(payload.getvalue())
    except (OSError, EngineError) as error:
        logger.warning("the rows are not kept, %s cannot be written: %s", where, error)
        return ""
    return where


def _place(store: str) -> Path:
    """Return the local folder of a store, or that where objects of a remote one are cached."""
    return workplace(StoreRef(uri=store, id="index", tracking_uri=""))


def _trace_model(index: Index, store: str, model: str, show: int, format: str) -> str:
    statements = find_statements(index, store, model)
    answer, rows = trace_model(index, statements, show)
    table = write_rows(store, answer.model.checkpoint[:16], rows)
    answer = answer.model_copy(update={"table": table})
    say(answer, model_text(answer), format)
    return table
