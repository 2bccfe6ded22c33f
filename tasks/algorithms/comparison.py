"""Compare two models on the same problems, paired by problem id."""

import logging
from collections.abc import Sequence

from data_schemas.reports import Comparison
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.intervals import paired_difference
from tasks.algorithms.suites import ProblemScore, per_problem, suite_names
from tasks.errors import DataError

logger = logging.getLogger(__name__)

SAMPLES_FILE = "samples.parquet"
"""SampleResult rows of an evaluation."""


def compare(
    candidate: Sequence[SampleResult],
    parent: Sequence[SampleResult],
    parent_name: str,
    settings: EvaluationSettings,
) -> list[Comparison]:
    """Return candidate minus parent for 'all' and every slice.

    Only problems with at least one verdict for both models are included. A suite without such
    problems is not compared, which fails the release gate.

    Raises:
        DataError: the two sides answered different problems.
    """
    ours = {problem.problem_id: problem for problem in per_problem(candidate)}
    theirs = {problem.problem_id: problem for problem in per_problem(parent)}
    odd = sorted(ours.keys() ^ theirs.keys())
    if odd:
        raise DataError(
            f"candidate and {parent_name} answered different problems: {len(odd)} ids are on one "
            f"side only, first {odd[0]!r}. Evaluate both on the same held-out table."
        )
    comparisons = []
    for suite in suite_names(list(ours.values())):
        pairs = [(ours[id_], theirs[id_]) for id_ in ours if suite in ours[id_].suites]
        decided = [pair for pair in pairs if pair[0].decided and pair[1].decided]
        if len(decided) < len(pairs):
            logger.warning(
                "%s against %s: %d of %d problems left out, one side has no verdict",
                suite,
                parent_name,
                len(pairs) - len(decided),
                len(pairs),
            )
        if decided:
            comparisons.append(_compare_suite(suite, parent_name, decided, settings))
    return comparisons


def _compare_suite(
    suite: str,
    parent_name: str,
    pairs: Sequence[tuple[ProblemScore, ProblemScore]],
    settings: EvaluationSettings,
) -> Comparison:
    interval = paired_difference(
        [ours.accuracy for ours, _ in pairs],
        [theirs.accuracy for _, theirs in pairs],
        seed=settings.seed,
    )
    return Comparison(
        suite=suite,
        parent=parent_name,
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        problems=len(pairs),
    )
