"""What a cell of a study runs: a seam of one function, for the pipeline and for recipes alike.

A study names it as `module:name`, by default `workflows.lab.cells:PIPELINE`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from pydantic import BaseModel

from data_schemas.artifacts import Context, GradedRef, ReportRef
from data_schemas.study import StudyCell
from tasks.errors import SettingsError


@dataclass(frozen=True, slots=True)
class CellReports:
    """The reports of a cell, as promises of Flyte."""

    names: list[str]
    """Names of the reports; that of an evaluation is its checkpoint."""
    reports: list[ReportRef]
    graded: list[GradedRef]
    """Problems whose grading cost tokens, if there are any."""
    context: Context


@dataclass(frozen=True, slots=True)
class CellKind:
    """One kind of cell."""

    settings: type[BaseModel]
    """A variant changes fields of it."""
    wire: Callable[[StudyCell, str], CellReports]
    """Calls the tasks of a cell, given the address of the store."""
    stages: Callable[[tuple[str, ...]], tuple[str, ...]]
    """Stages whose code decides the result, of the checkpoints that are evaluated."""


def find_run(name: str) -> CellKind:
    """Import what a study names.

    Raises:
        SettingsError: there is no such run.
    """
    module, colon, attribute = name.partition(":")
    try:
        run = getattr(import_module(module), attribute) if colon else None
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"run {name!r} cannot be imported: {error}") from error
    if not isinstance(run, CellKind):
        raise SettingsError(
            f"run is {name!r}; name a tasks.lab.study.runs.CellKind as module:name, such as "
            "workflows.lab.cells:PIPELINE"
        )
    return run
