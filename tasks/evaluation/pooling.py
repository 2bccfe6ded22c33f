"""Evaluations beside each other: pooled over runs, against earlier models, rates by problem."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import Problem, SampleResult, SolveRate
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.intervals import SAMPLES_FILE, compare
from tasks.evaluation.runner import REPORT_FILE, summarise
from tasks.formats.progression import read_evaluation, write_progression
from tasks.gym.protocol import JUDGED
from tasks.store.files import canonical_json, write_bytes

# Pool the evaluations of the same checkpoint over several runs.


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


# Compare the candidate with every earlier model of the checkpoint progression, by samples.


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


# How often each model of an evaluation solved each problem, as curation reads it back.


def measure(
    problems: Mapping[str, Problem], samples: Mapping[str, Iterable[SampleResult]]
) -> Iterator[SolveRate]:
    """Yield the solve rate of every model for every problem that it was asked.

    Problems that a judge scores are left out: its scores compare responses, and do not say which
    is right. A problem none of whose responses has a verdict has 0 scored ones, and no pass rate.

    Args:
        problems: by id.
        samples: by model.
    """
    for model, rows in samples.items():
        attempts, scored, solved = Counter[str](), Counter[str](), Counter[str]()
        for row in rows:
            attempts[row.problem_id] += 1
            scored[row.problem_id] += row.scored
            solved[row.problem_id] += row.solved
        for name, count in sorted(attempts.items()):
            problem = problems[name]
            if problem.verifier not in JUDGED:
                yield SolveRate(
                    problem=name,
                    source=problem.source,
                    source_row=problem.source_row,
                    gold=problem.answer,
                    model=model,
                    samples=count,
                    scored=scored[name],
                    solved=solved[name],
                )
