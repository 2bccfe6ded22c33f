"""pass@k, suites and comparisons of two models, with bootstrap intervals."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from data_schemas.reports import Comparison, SuiteScore
from data_schemas.rows import SLICE, Domain, SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.errors import DataError

# pass@k, and bootstrap intervals of means over problems.
#
# Sources: pass@k from Chen et al. 2021 (arXiv 2107.03374, eq. 1); percentile bootstrap from Efron
# and Tibshirani 1993, chapter 13; sign test. The problem is the unit that is resampled, because
# responses to one problem are not independent of each other.
#
# Differs: the pass@k product runs over the k draws instead of over the c solved samples.
# The result is the same, every factor lies in [0, 1], and no factorial is computed.
#
# A percentile interval of few problems is too narrow: at a mean accuracy of 0.3 and 4 responses
# each, the 95 % interval covered the truth in 94 % of simulated evaluations with 60 problems,
# in 91 % with 10.
#
# Letters: P problems, B bootstrap resamples, K draws.

CONFIDENCE = 0.95
"""Confidence level of the intervals in reports."""
RESAMPLES = 2000
"""Bootstrap resamples of an interval: about 50 lie beyond each of its ends."""
_CHUNK_CELLS = 2**20
"""Resampled values in memory at once: 8 MiB of indices and 8 MiB of values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over problems with its bootstrap interval."""

    mean: float
    low: float
    high: float


def pass_at_k(solved_P: ArrayLike, judged_P: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """Estimate per problem, without bias, the chance that at least one of k responses is right.

    Args:
        solved_P: responses that were right, 0 <= solved <= scored.
        judged_P: responses that have a verdict.
        k: draws, one number for all problems or one per problem.

    Returns:
        1 - C(scored - solved, k) / C(scored, k), one per problem; with k = scored this is
        1.0 if anything was solved, else 0.0. No problems give an empty array.

    Raises:
        DataError: k is below 1 or above the number of scored responses, or solved is out of range.
    """
    judged_P1 = np.asarray(judged_P, dtype=np.int64).reshape(-1, 1)
    wrong_P1 = judged_P1 - np.asarray(solved_P, dtype=np.int64).reshape(-1, 1)
    k_P1 = np.broadcast_to(np.asarray(k, dtype=np.int64).reshape(-1, 1), judged_P1.shape)
    if np.any(wrong_P1 < 0) or np.any(wrong_P1 > judged_P1):
        raise DataError("pass@k needs 0 <= solved <= scored responses for every problem")
    if np.any(k_P1 < 1) or np.any(k_P1 > judged_P1):
        raise DataError(
            f"pass@k needs 1 <= k <= scored responses, got k up to {k_P1.max()} "
            f"with {judged_P1.min()} scored. Sample at least k responses per problem."
        )
    draws_1K = np.arange(k_P1.max(initial=1)).reshape(1, -1)
    left_PK = np.maximum(judged_P1 - draws_1K, 1)
    factors_PK = np.maximum(wrong_P1 - draws_1K, 0) / left_PK
    return 1.0 - np.prod(factors_PK, axis=1, where=draws_1K < k_P1)


def bootstrap_mean(
    values_P: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Compute the mean of one value per problem with its percentile bootstrap interval.

    One problem, or equal values, give an interval of zero width.

    Raises:
        DataError: there is no problem, or a value is not finite.
    """
    values = np.asarray(values_P, dtype=np.float64).reshape(-1)
    if values.size == 0:
        raise DataError("the mean over 0 problems is undefined. Evaluate at least one problem.")
    if not np.all(np.isfinite(values)):
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"value {first} of {values.size} is {values[first]}, not a number")
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK_CELLS // values.size)
    means_B = np.concatenate(
        [
            values[
                generator.integers(0, values.size, (min(rows, resamples - start), values.size))
            ].mean(axis=1)
            for start in range(0, resamples, rows)
        ]
    )
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means_B, [tail, 1.0 - tail])
    return Interval(mean=float(values.mean()), low=float(low), high=float(high))


def paired_difference(
    candidate_P: ArrayLike,
    parent_P: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Compute the mean of candidate minus parent, both measured on the same problems.

    Resampling the differences keeps the pairing, so the difficulty that a problem has for both
    models cancels, and the interval is much narrower than two separate ones.

    Raises:
        DataError: the two sides differ in length, or `bootstrap_mean` rejects the difference.
    """
    candidate = np.asarray(candidate_P, dtype=np.float64).reshape(-1)
    parent = np.asarray(parent_P, dtype=np.float64).reshape(-1)
    if candidate.size != parent.size:
        raise DataError(
            f"a paired difference needs the same problems on both sides, "
            f"got {candidate.size} and {parent.size}"
        )
    return bootstrap_mean(candidate - parent, seed=seed, resamples=resamples, confidence=confidence)


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact sign test; McNemar's exact test if scores are 0 or 1.

    Source: Conover 1999, section 3.4. Ties are left out; without any difference it is 1.

    Args:
        better: pairs in which the first side is higher.
        worse: pairs in which it is lower.

    Returns:
        Probability of a split at least so uneven if both are equally likely.
    """
    pairs = better + worse
    term, tail = 1, 1
    for count in range(min(better, worse)):
        term = term * (pairs - count) // (count + 1)
        tail += term
    return min(1.0, float(Fraction(2 * tail, 2**pairs)))


# Aggregate sampled responses to suites: 'all', every domain, language, level, source and slice.
#
# A level is its source's own difficulty, which says nothing beside another source's.
#
# The problem is the unit: the accuracy of a problem is the share of its responses with a verdict
# that solve it, the accuracy of a suite is the mean over problems, and its interval is a bootstrap
# over problems. An abstained response has no verdict; it is excluded from every mean and counted.
# A problem without any verdict is excluded. A suite without any remaining problem has `problems`
# 0, and its means of 0 are to be ignored.

logger = logging.getLogger(__name__)

LEVEL = "level:"
FIRST_SLICE = "slice:first"
"""What was held out before the first release; a suite once there are later slices."""


@dataclass(frozen=True, slots=True)
class ProblemScore:
    """All responses of one model to one problem."""

    problem_id: str
    suites: tuple[str, ...]
    decided: int
    """Responses with a verdict."""
    abstained: int
    solved: int
    score: float
    """Sum of the verdict scores."""
    tokens: int
    truncated: int
    """Responses cut at the token limit."""
    majority: bool | None
    """Whether the most frequent answer is right; None if answers cannot be counted."""

    @property
    def accuracy(self) -> float:
        """Share of the responses with a verdict that solve it; undefined without a verdict."""
        return self.solved / self.decided


def per_problem(samples: Iterable[SampleResult]) -> list[ProblemScore]:
    """Gather samples by problem, in order of first appearance."""
    by_problem: dict[str, list[SampleResult]] = {}
    for sample in samples:
        by_problem.setdefault(sample.problem_id, []).append(sample)
    slices = {problem_id: _slice_of(problem_id) for problem_id in by_problem}
    has_slices = set(slices.values()) - {FIRST_SLICE}
    return [
        ProblemScore(
            problem_id=problem_id,
            suites=(*_suites_of(rows[0]), *([slices[problem_id]] if has_slices else [])),
            decided=sum(row.scored for row in rows),
            abstained=sum(not row.scored for row in rows),
            solved=sum(row.solved for row in rows),
            score=sum(row.score for row in rows if row.score is not None),
            tokens=sum(row.tokens for row in rows),
            truncated=sum(row.truncated for row in rows),
            majority=_majority(rows),
        )
        for problem_id, rows in by_problem.items()
    ]


def _majority(rows: Sequence[SampleResult]) -> bool | None:
    """Return whether the most frequent answer is right; of equally frequent ones the first."""
    votes = Counter(row.answer for row in rows if row.scored and row.answer)
    if any(row.answer is None for row in rows):
        return None
    if not votes:
        return False
    majority = max(votes, key=lambda answer: votes[answer])
    return next(row.solved for row in rows if row.scored and row.answer == majority)


def suite_scores(
    samples: Iterable[SampleResult], settings: EvaluationSettings
) -> tuple[SuiteScore, ...]:
    """Score every suite, in reading order."""
    problems = per_problem(samples)
    return tuple(
        _suite_score(suite, [problem for problem in problems if suite in problem.suites], settings)
        for suite in suite_names(problems)
    )


def suite_names(problems: Sequence[ProblemScore]) -> list[str]:
    """Name the suites in reading order: all, domains as declared, languages, levels, sources."""
    present = {suite for problem in problems for suite in problem.suites}
    domains = [f"domain:{domain.value}" for domain in Domain]
    rest = sorted(present - {"all"} - set(domains), key=_place)
    return [name for name in ["all", *domains, *rest] if name in present]


def _place(suite: str) -> tuple[str, int]:
    """Return what suites after the domains are sorted by: levels count, names do not."""
    name, _, level = suite.rpartition("/")
    return (name, int(level)) if suite.startswith(LEVEL) else (suite, 0)


def _suites_of(row: SampleResult) -> tuple[str, ...]:
    return (
        "all",
        f"domain:{row.domain.value}",
        f"language:{row.language}",
        f"source:{row.source}",
        *([f"{LEVEL}{row.source}/{row.level}"] if row.level else []),
    )


def _slice_of(problem_id: str) -> str:
    """Name the slice of the held-out set that a problem came with."""
    mark, _, _ = problem_id.partition("/")
    return f"slice:{mark.removeprefix(SLICE)}" if mark.startswith(SLICE) else FIRST_SLICE


def _suite_score(
    suite: str, members: Sequence[ProblemScore], settings: EvaluationSettings
) -> SuiteScore:
    decided = [problem for problem in members if problem.decided]
    abstained = sum(problem.abstained for problem in members)
    samples = max((problem.decided + problem.abstained for problem in members), default=0)
    responses = sum(problem.decided + problem.abstained for problem in members)
    lengths = {
        "mean_tokens": sum(problem.tokens for problem in members) / max(responses, 1),
        "truncated": sum(problem.truncated for problem in members),
    }
    if not decided:
        logger.warning("%s: no verdict on any of %d responses", suite, abstained)
        return SuiteScore(
            suite=suite,
            problems=0,
            samples=samples,
            accuracy=0.0,
            low=0.0,
            high=0.0,
            score=0.0,
            pass_at_k=0.0,
            abstained=abstained,
            **lengths,
        )
    interval = bootstrap_mean(
        [problem.accuracy for problem in decided],
        seed=settings.seed,
    )
    solved_P = [problem.solved for problem in decided]
    decided_P = [problem.decided for problem in decided]
    # A problem with abstained samples has fewer than k verdicts; its pass rate at that smaller
    # number is a lower bound of its pass@k.
    return SuiteScore(
        suite=suite,
        problems=len(decided),
        samples=samples,
        accuracy=interval.mean,
        low=interval.low,
        high=interval.high,
        score=float(np.mean([problem.score / problem.decided for problem in decided])),
        pass_at_k=float(pass_at_k(solved_P, decided_P, decided_P).mean()),
        abstained=abstained,
        majority_at_k=_mean_majority(decided),
        **lengths,
    )


def _mean_majority(decided: Sequence[ProblemScore]) -> float | None:
    majorities = [problem.majority for problem in decided]
    if None in majorities:
        return None
    return float(np.mean([bool(majority) for majority in majorities]))


# Compare two models on the same problems, paired by problem id.

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


# Many slices at once: small ones are pooled, and intervals are corrected for their number.
#
# Bonferroni: with the tail of every interval divided by the number of slices, the chance that any
# slice without a loss seems to lose is at most that of a single one, however the slices overlap
# (a problem counts in its domain, its language, its source and its level).

MIN_PROBLEMS = 20
"""Problems that a slice needs to be judged alone; the bootstrap of fewer is too narrow, and of one
it has no width at all."""


def group_slices(
    sizes: Mapping[str, int], pool_of: Callable[[str], object]
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Group slices to be judged: large ones alone, the small ones of a pool together.

    Args:
        sizes: problems of every slice.
        pool_of: what slices that may be pooled have in common. They must be disjoint.

    Returns:
        The groups, each of at least MIN_PROBLEMS problems, and the slices that are too small to
        be judged alone, whether their pool is among the groups or not; neither depends on the
        order of the slices.
    """
    small = sorted(name for name, problems in sizes.items() if problems < MIN_PROBLEMS)
    pools: dict[object, list[str]] = {}
    for name in small:
        pools.setdefault(pool_of(name), []).append(name)
    groups = [(name,) for name in sizes if sizes[name] >= MIN_PROBLEMS]
    groups += [
        tuple(pool) for pool in pools.values() if sum(sizes[name] for name in pool) >= MIN_PROBLEMS
    ]
    return sorted(groups), small


def pool_comparisons(parts: Sequence[Comparison], suite: str) -> Comparison:
    """Compare on the problems of disjoint slices together, from the comparisons on each.

    The variance over all problems is that within the slices, which their intervals imply, plus
    that between their means. So slices of one problem, whose intervals have no width, do not make
    the whole certain. One slice comes back with its own interval.

    Raises:
        DataError: there is no comparison.
    """
    if not parts:
        raise DataError(f"{suite}: no comparison to pool. Compare at least one slice.")
    if len(parts) == 1:
        return parts[0].model_copy(update={"suite": suite})
    problems = sum(part.problems for part in parts)
    mean = sum(part.problems * part.difference for part in parts) / problems
    between = sum(part.problems * (part.difference - mean) ** 2 for part in parts)

    def reach(ends: Iterable[float]) -> float:
        within = sum(
            (part.problems * (end - part.difference)) ** 2
            for part, end in zip(parts, ends, strict=True)
        )
        return float(np.sqrt(within + _quantile() ** 2 * between)) / problems

    return Comparison(
        suite=suite,
        parent=parts[0].parent,
        difference=mean,
        low=mean - reach(part.low for part in parts),
        high=mean + reach(part.high for part in parts),
        problems=problems,
    )


def correct_interval(comparison: Comparison, tests: int) -> Comparison:
    """Widen the interval of one of several comparisons so that all hold at once.

    Each end moves away from the mean by the ratio of Student's quantile, whose tail is divided by
    the number of comparisons, to the normal one. The ratio is above 1, so what is uncertain alone
    stays uncertain. An interval without width keeps none; one problem gives NaN.

    Args:
        comparison: with an interval at CONFIDENCE.
        tests: comparisons that are made, at least 1.
    """
    tail = (1.0 - CONFIDENCE) / (2 * tests)
    ratio = float(stdtrit(comparison.problems - 1, 1.0 - tail)) / _quantile()
    mean = comparison.difference
    return comparison.model_copy(
        update={
            "low": mean - ratio * (mean - comparison.low),
            "high": mean + ratio * (comparison.high - mean),
        }
    )


def least_share(count: float, problems: float, tests: int) -> float:
    """Return the lower end of the exact interval of a share (Clopper and Pearson 1934).

    Args:
        count: problems that have it; a part of one if some of its responses do.
        problems: all; responses to one problem are not independent, so they are no larger sample.
        tests: shares that are judged at once, by which the tail is divided.

    Returns:
        0 if none has it.
    """
    tail = (1.0 - CONFIDENCE) / (2 * tests)
    return float(betaincinv(count, problems - count + 1.0, tail)) if count > 0.0 else 0.0


def _quantile() -> float:
    """Quantile of the normal distribution at the ends of an interval."""
    return float(ndtri((1.0 + CONFIDENCE) / 2.0))
