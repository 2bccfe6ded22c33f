"""Compare two evaluations item by item: ours, or sample logs of lm-evaluation-harness.

pyflyte run workflows/compare.py compare --left runs/objects/3f2a9c01 --right logs/other-model
"""

from tasks.platform.entry_point import entry_point
from tasks.stages.evaluation import compare_logs


@entry_point
def compare(left: str, right: str, out: str = "comparison.json") -> str:
    """Pair the items of every task that both sides have; print the differences.

    Every task and metric has a paired bootstrap interval over items and an exact sign test, which
    lm-evaluation-harness lacks. Items are paired by problem, or by the hash of the document.

    Args:
        left: folder of an evaluation, samples_<task>_<date>.jsonl, or a folder of them.
        right: the other side; `evaluate` also writes its results as such logs.
        out: JSON to write.

    Returns:
        Where the JSON is.
    """
    return compare_logs(left=left, right=right, out=out)
