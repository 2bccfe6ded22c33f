"""Compare the candidate with every earlier model of the checkpoint progression, by samples."""

from collections.abc import Sequence
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE, compare
from tasks.formats.progression import read_evaluation, write_progression


def against_all(
    settings: EvaluationSettings, candidate: Path, parents: Sequence[Path], out: Path
) -> dict[str, float | int | str]:
    """Compare an evaluated model with earlier ones and write their checkpoint progression.

    Args:
        settings: of the bootstrap.
        candidate: folder of its evaluation.
        parents: folders of the evaluations of the other models, in training order.
        out: empty folder.

    Returns:
        The gain over each of the other models on all problems.

    Raises:
        DataError: the models answered different problems.
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
