"""The ledgers a model rests on: by the chain of statements behind it, or as given files."""

from dataclasses import dataclass
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.ledger import LedgerRow, PromptCost
from data_schemas.reports import COSTS_FILE, LEDGER_FILE
from tasks.errors import SettingsError
from tasks.ledger.accounts import check_conservation
from tasks.lineage.lookup import Lookup
from tasks.lineage.statements import chain
from tasks.store.objects import localise


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of RL and what its prompts cost and earned."""

    name: str
    rows: list[LedgerRow]
    costs: list[PromptCost]


def phases_behind(model_uri: str, tracking_uri: str, store: str, cache: Path) -> list[Phase]:
    """Read the ledger of every RL phase that led to a registered model, first phase first.

    Args:
        model_uri: 'models:/NAME@released' or 'models:/NAME/3'.
        tracking_uri: of MLflow.
        store: folder or s3:// prefix the artifacts lie in.
        cache: where objects of a remote store are kept.

    Raises:
        SettingsError: there is no such model, or no RL was done on the way to it.
        DataError: a ledger is damaged, or does not add up to the engine's count.
        TamperError: a statement was changed.
    """
    version = Lookup(tracking_uri).version(model_uri)
    tags = [version.tags, *([version.model.tags] if version.model else [])]
    roots = [tag["statement"] for tag in tags if tag.get("statement")]
    found = []
    for statement in chain(store, roots).values():
        reports = [output for output in statement.outputs if output.role == "report"]
        if not statement.stage.startswith("rl/") or not reports:
            continue
        folder = localise(reports[0].uri, reports[0].digest, cache)
        phase = read_folder(statement.stage, folder)
        counted = statement.facts.get("engine_tokens")
        if counted is not None:
            check_conservation(phase.rows, int(counted))
        found.append(phase)
    if not found:
        raise SettingsError(f"no phase of RL led to {model_uri}; there is no ledger to read")
    return found


def read_folder(name: str, folder: Path) -> Phase:
    """Read the two files an RL phase leaves in its report."""
    return Phase(
        name=name,
        rows=read_table(folder / LEDGER_FILE, LedgerRow),
        costs=read_table(folder / COSTS_FILE, PromptCost),
    )
