"""Flyte shell of the replay of a step from its snapshot."""

import os
from pathlib import Path

from data_schemas.artifacts import StoreRef
from tasks.algorithms.losses.table import LOSSES
from tasks.errors import TamperError, typed
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.platform.tables import Screen
from tasks.provenance.lineage.stage import workplace
from tasks.rl.replay import counterfactual, find, recompute
from tasks.rl.replay.text import compared_table, effects_table
from tasks.rl.step_snapshot import StepSnapshot
from tasks.settings.early import require_word
from tasks.store import location


@shell("replay")
def replay(model: str, phase: str, step: int, loss: str, store: str, file: str) -> list[str]:
    """Recompute an RL step from its snapshot, compare it byte by byte, and measure another loss.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/3'.
        phase: 'rl/two'; '' selects the last one.
        step: 0 selects the newest one with a snapshot.
        loss: 'gspo', 'grpo' ...: also measure this loss on the same step; '' only compares.
        store: folder or s3:// prefix that holds the artifacts.
        file: a snapshot file to read instead of the model's.

    Returns:
        Names of all outputs that are equal.

    Raises:
        TamperError: an output differs from the recorded one.
    """
    if loss:
        require_word("--loss", loss, list(LOSSES))
    if file:
        with typed("--file"):
            snapshot = find.read(Path(file))
    else:
        snapshot = _find_snapshot(model, phase, step, store)
    rows = recompute.compare(snapshot)
    console = Screen()
    console.print(compared_table(snapshot, rows))
    if loss:
        console.print(effects_table(*counterfactual.compare_losses(snapshot, loss)))
    differences = {row.name: row.difference or "equal" for row in rows}
    deck_of_facts(f"replay of step {snapshot.step}", differences)
    wrong = [f"{row.name}: {row.difference}" for row in rows if row.difference]
    if wrong:
        raise TamperError(
            f"step {snapshot.step} does not repeat: {'; '.join(wrong)}. The snapshot was changed, "
            "or other code or another version of torch wrote it: check out the version that its "
            "statement names."
        )
    return [row.name for row in rows]


def _find_snapshot(model: str, phase: str, step: int, store: str) -> StepSnapshot:
    uri = location.absolute_store(store)
    tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
    cache = workplace(StoreRef(uri=uri, id="replay", tracking_uri=tracking))
    return find.find_snapshot(model, tracking, uri, cache, phase=phase, step=step)
