"""What each prompt cost and contributed in the RL phases of a model.

pyflyte run workflows/ledger.py ledger --model models:/eachprompt-tiny@released
"""

from data_schemas.machine_settings import Whole
from tasks.platform.entry_point import entry_point
from tasks.stages.ledger import ledger as add_up


@entry_point
def ledger(
    model: str = "models:/eachprompt-tiny@released",
    store: str = "runs",
    show: Whole = 8,
) -> list[str]:
    """Print and draw the ledger of every RL phase that led to a model.

    Per prompt: draws, tokens, engine and verifier seconds, judge calls, advantage per
    token, change of its pass rate; per stage of the zero-variance elimination: what it saved; for
    the phase: what its generated tokens were used for.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/VERSION'.
        store: folder or s3:// prefix the artifacts lie in.
        show: prompts to print at either end.

    Returns:
        A CSV with all prompts and a PNG for every phase.
    """
    return add_up(model=model, store=store, show=show)
