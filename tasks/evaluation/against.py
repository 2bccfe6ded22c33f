"""The candidate against every model below it in the checkpoint progression, from their samples."""

from collections.abc import Sequence
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.evaluation.comparison import compare
from tasks.evaluation.runner import SAMPLES_FILE
from tasks.interchange.progression import read_evaluation, write_progression


def against_all(
    settings: EvaluationSettings, candidate: Path, parents: Sequence[Path], out: Path
) -> dict[str, float | int | str]:
    """Compare one evaluated model with others and write the checkpoint progression of all of them.

    Args:
        settings: of the bootstrap.
        candidate: folder of its evaluation.
        parents: folders of the others' evaluations, in the order the models were made.
        out: empty folder.

    Returns:
        The gain over each of them on all problems.

    Raises:
        DataError: they answered different problems.
    """
    ours = read_table(candidate / SAMPLES_FILE, SampleResult)
    comparisons = [
        comparison
        for parent in parents
        for comparison in compare(
            ours,
            read_table(parent / SAMPLES_FILE, SampleResult),
            read_evaluation(parent).model,
            settings,
        )
    ]
    write_progression(
        out, [read_evaluation(folder) for folder in (*parents, candidate)], comparisons
    )
    return {
        f"gain over {comparison.parent}": comparison.difference
        for comparison in comparisons
        if comparison.suite == "all"
    }
