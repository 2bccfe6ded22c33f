"""Recompute a step of RL byte for byte, and show what another loss would have computed.

pyflyte run workflows/replay.py replay --model models:/eachprompt-tiny@released --loss gspo
"""

from data_schemas.machine_settings import Whole
from tasks.platform.entry_point import entry_point
from tasks.stages.replay import replay as repeat


@entry_point
def replay(
    model: str = "models:/eachprompt-tiny@released",
    phase: str = "",
    step: Whole = 0,
    loss: str = "",
    store: str = "runs",
    file: str = "",
) -> list[str]:
    """Recompute advantages, masks and losses of a step from its snapshot and compare the bytes.

    Needs no model and no GPU. Ends with an error if a byte differs.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/VERSION'.
        phase: 'rl/one', 'rl/two', 'rl/retrain'; '' for the last one.
        step: number of the step; 0 for the newest with a snapshot.
        loss: a `loss.kind`, such as gspo: shows its result on the same data.
        store: folder or s3:// prefix the artifacts lie in.
        file: a snapshot (.npz), instead of a model.

    Returns:
        Names of everything that was equal.
    """
    return repeat(model=model, phase=phase, step=step, loss=loss, store=store, file=file)
