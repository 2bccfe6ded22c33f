"""A step of RL repeated byte for byte, and what another loss would have made of it.

pyflyte run workflows/replay.py replay --model models:/eachprompt-tiny@released --loss gspo
"""

from tasks.platform.entry_point import entry_point
from tasks.replay.task import replay as repeat


@entry_point
def replay(
    model: str = "models:/eachprompt-tiny@released",
    phase: str = "",
    step: int = 0,
    loss: str = "",
    store: str = "runs",
    file: str = "",
) -> list[str]:
    """Recompute advantages, masks and losses of a step from its snapshot and compare the bytes.

    Needs no model and no GPU. Ends with an error if a byte differs.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/VERSION'.
        phase: 'rl/one', 'rl/two', 'rl/retrain'; '' for the last one.
        step: its number; 0 for the newest of which there is a snapshot.
        loss: espo, gspo, grpo, dr_grpo, dapo or cispo: what it would have done on the same data.
        store: folder or s3:// prefix the artifacts lie in.
        file: a snapshot (.npz) to read instead.

    Returns:
        Names of all that was equal.
    """
    return repeat(model=model, phase=phase, step=step, loss=loss, store=store, file=file)
