"""How often each model of an evaluation solved each problem, as curation reads it back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from data_schemas.pass_rates import SolveRate
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.gym.table import is_judged


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
            if not is_judged(problem):
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
