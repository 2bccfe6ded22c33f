"""Pool the evaluations of the same checkpoint over several runs."""

from collections.abc import Sequence
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.evaluation.runner import REPORT_FILE, summarise
from tasks.formats.progression import read_evaluation
from tasks.store.files import canonical_json, write_bytes


def pool(
    settings: EvaluationSettings, name: str, parts: Sequence[Path], out: Path
) -> dict[str, float | int | str]:
    """Write one evaluation over the problems of all parts.

    Problems of different parts stay different problems even if their ids are equal, because
    each run answered its own problems with its own model.

    Args:
        settings: of the bootstrap.
        name: in the checkpoint progression.
        parts: evaluation folders, in the same order for every checkpoint.
        out: empty folder.
    """
    samples = [
        sample.model_copy(update={"problem_id": f"run {place}: {sample.problem_id}"})
        for place, part in enumerate(parts, start=1)
        for sample in read_table(part / SAMPLES_FILE, SampleResult)
    ]
    checkpoints = ",".join(read_evaluation(part).checkpoint for part in parts)
    report = summarise(settings, name, checkpoints, samples)
    write_table(out / SAMPLES_FILE, SampleResult, samples)
    write_bytes(out / REPORT_FILE, canonical_json(report))
    return {f"accuracy/{suite.suite}": suite.accuracy for suite in report.suites}
