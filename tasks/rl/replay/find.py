"""Find the snapshot of a step through the chain of statements of a model, or read a given file."""

from pathlib import Path

from data_schemas.statements import Output
from tasks.errors import SettingsError
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.statements import chain
from tasks.rl.step_snapshot import FOLDER, StepSnapshot, decode, name_of
from tasks.store.objects import localise


def find_snapshot(
    model_uri: str, tracking_uri: str, store: str, cache: Path, *, phase: str, step: int
) -> StepSnapshot:
    """Read the snapshot of a step that led to a registered model.

    Args:
        model_uri: 'models:/NAME@released' or 'models:/NAME/3'.
        tracking_uri: the MLflow tracking server or database.
        store: folder or s3:// prefix that holds the artifacts.
        cache: local folder for objects of a remote store.
        phase: 'rl/two'; '' selects the last one.
        step: 0 selects the newest one with a snapshot.

    Raises:
        SettingsError: there is no such model, phase or step; the message lists those available.
        DataError: the report is missing.
        TamperError: a statement or the report was changed.
    """
    root = find_release(model_uri, store, tracking_uri).folder.statement
    reports = reports_of_rl(store, [root])
    name = phase or next(reversed(reports), "")
    if name not in reports:
        available = ", ".join(reports) or "none"
        raise SettingsError(f"no RL phase {name!r} led to {model_uri}; available: {available}")
    report = reports[name]
    folder = localise(report.uri, report.digest, cache) / FOLDER
    steps = sorted(int(path.stem) for path in folder.glob("[0-9]*.npz"))
    number = step or (steps[-1] if steps else 0)
    if number not in steps:
        available = ", ".join(map(str, steps)) or "none"
        raise SettingsError(
            f"there is no snapshot of step {number} of {name}; available: {available}"
        )
    return read(folder / name_of(number))


def reports_of_rl(store: str, roots: list[str]) -> dict[str, Output]:
    """Find the report of every RL phase in a chain of statements, first phase first."""
    return {
        statement.stage: output
        for statement in chain(store, roots).values()
        for output in statement.outputs
        if statement.stage.startswith("rl/") and output.role == "report"
    }


def read(path: Path) -> StepSnapshot:
    """Read the snapshot in one file.

    Raises:
        SettingsError: it cannot be read.
        DataError: it is not a snapshot.
    """
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
