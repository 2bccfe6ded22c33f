"""Flyte shell of the ledger: cost and contribution of every prompt."""

import os
from collections.abc import Sequence

from data_schemas.artifacts import StoreRef
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.platform.tables import Screen
from tasks.provenance.ledger.accounts import settle, to_csv
from tasks.provenance.ledger.figure import ledger_png
from tasks.provenance.ledger.phases import PhaseAccount, phases_behind
from tasks.provenance.ledger.text import ledger_text
from tasks.provenance.lineage.stage import workplace
from tasks.rl.foresight import Foresight, foresee, foresight_table
from tasks.store import location
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at


@shell("ledger")
def ledger(model: str, store: str, show: int) -> list[str]:
    """Aggregate the ledgers of all RL phases of a model, print them and plot them.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/3'.
        store: folder or s3:// prefix that holds the artifacts.
        show: number of best and of worst prompts to print.

    Returns:
        Paths of the files: per phase a table of all prompts (CSV) and a figure (PNG).
    """
    uri = location.absolute_store(store)
    tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
    cache = workplace(StoreRef(uri=uri, id="ledger", tracking_uri=tracking))
    files: list[str] = []
    phases = phases_behind(model, tracking, uri, cache)
    foreseen = foresee([phase.rows for phase in phases], phases[0].problems)
    for phase, forecast in zip(phases, foreseen, strict=True):
        files += _show(phase, forecast, uri, show)
    return files


def _show(phase: PhaseAccount, foreseen: Sequence[Foresight], store: str, show: int) -> list[str]:
    account = settle(phase.rows, phase.costs, phase.grading)
    csv = to_csv(account.prompts)
    stem = f"{store}/ledgers/{phase.name.replace('/', '.')}-{sha256_bytes(csv)[:12]}"
    store_at(f"{stem}.csv").write_bytes(csv)
    store_at(f"{stem}.png").write_bytes(ledger_png(account, phase.name))
    deck_of_facts(f"ledger of {phase.name}", account.totals)
    console = Screen()
    console.print(ledger_text(account, phase.name, show))
    console.print(foresight_table(foreseen))
    console.print(f"\nall prompts  {stem}.csv\nfigure       {stem}.png\n", soft_wrap=True)
    return [f"{stem}.csv", f"{stem}.png"]
