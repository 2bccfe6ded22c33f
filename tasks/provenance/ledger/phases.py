"""Find the ledgers of a model through its chain of statements, or read them from given files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from data_schemas.arrow import read_table
from data_schemas.ledgers import LedgerRow, PromptCost
from data_schemas.pass_rates import PROBLEMS_FILE, GradedProblem
from data_schemas.reports import COSTS_FILE, LEDGER_FILE
from tasks.errors import SettingsError
from tasks.formats.ledgers import read_ledger
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.statements import chain
from tasks.store.objects import find_beside, localise

if TYPE_CHECKING:
    pass
from tasks.provenance.ledger.accounts import check_conservation


@dataclass(frozen=True, slots=True)
class PhaseAccount:
    """One phase of RL and what its prompts cost and earned."""

    name: str
    rows: list[LedgerRow]
    costs: list[PromptCost]
    grading: int = 0
    """Tokens that graded its problems; of several phases, the first has them."""
    problems: tuple[GradedProblem, ...] = ()
    """Those that it draws from, as they were graded."""


def phases_behind(model_uri: str, tracking_uri: str, store: str, cache: Path) -> list[PhaseAccount]:
    """Read the ledger of every RL phase that led to a registered model, first phase first.

    Args:
        model_uri: 'models:/NAME@released' or 'models:/NAME/3'.
        tracking_uri: the MLflow tracking server or database.
        store: folder or s3:// prefix that holds the artifacts.
        cache: local folder for objects of a remote store.

    Raises:
        SettingsError: the model does not exist, or no RL phase led to it.
        DataError: a ledger is damaged, or its tokens differ from the engine's count.
        TamperError: a statement was changed.
    """
    roots = [find_release(model_uri, store, tracking_uri).folder.statement]
    phases: list[PhaseAccount] = []
    grading = 0
    for statement in chain(store, roots).values():
        if statement.stage == "grade":
            grading += int(statement.facts.get("generated_tokens", 0))
        reports = [output for output in statement.outputs if output.role == "report"]
        if not statement.stage.startswith("rl/") or not reports:
            continue
        folder = localise(reports[0].uri, reports[0].digest, cache)
        phase = read_folder(statement.stage, folder)
        engine_tokens = statement.facts.get("engine_tokens")
        if engine_tokens is not None:
            check_conservation(phase.rows, int(engine_tokens))
        graded = [item for item in statement.inputs if item.role == "graded"]
        for item in graded[:1]:
            table = localise(item.uri, item.digest, cache) / PROBLEMS_FILE
            phase = replace(phase, problems=tuple(read_table(table, GradedProblem)))
        phases.append(phase)
    if not phases:
        raise SettingsError(f"no RL phase led to {model_uri}; there is no ledger to read")
    return [replace(phases[0], grading=grading), *phases[1:]]


def read_folder(name: str, folder: Path) -> PhaseAccount:
    """Read the ledger and the costs from the report of an RL phase."""
    return PhaseAccount(
        name=name,
        rows=read_ledger(folder / LEDGER_FILE),
        costs=read_table(find_beside(folder, COSTS_FILE), PromptCost),
    )
