"""Aggregate sampled responses to suites: 'all', every domain, language, level, source and slice.

Requests that see what a model refuses are suites of their own, harmful and harmless ones by
language: a model that answers everything is right on half of them, which says nothing of its work.

A level is its source's own difficulty, which says nothing beside another source's.

The problem is the unit: the accuracy of a problem is the share of its responses with a verdict
that solve it, the accuracy of a suite is the mean over problems, and its interval is a bootstrap
over problems. An abstained response has no verdict; it is excluded from every mean and counted.
A problem without any verdict is excluded. A suite without any remaining problem has `problems`
0, and its means of 0 are to be ignored.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from data_schemas.reports import SuiteScore
from data_schemas.rows import SLICE, Domain
from data_schemas.samples import RequestKind, SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.intervals import bootstrap_mean, pass_at_k

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
    request: RequestKind
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
    has_tasks = any(not rows[0].request for rows in by_problem.values())
    return [
        ProblemScore(
            problem_id=problem_id,
            suites=(
                *_suites_of(rows[0], has_tasks=has_tasks),
                *([slices[problem_id]] if has_slices else []),
            ),
            decided=sum(row.scored for row in rows),
            abstained=sum(not row.scored for row in rows),
            solved=sum(row.solved for row in rows),
            score=sum(row.score for row in rows if row.score is not None),
            tokens=sum(row.tokens for row in rows),
            truncated=sum(row.truncated for row in rows),
            request=rows[0].request,
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


def _suites_of(row: SampleResult, *, has_tasks: bool) -> tuple[str, ...]:
    """Name the suites of a problem; requests are 'all' where nothing else was evaluated."""
    if row.request:
        own = (f"{row.request}:{row.language}", f"source:{row.source}")
        return own if has_tasks else ("all", *own)
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
    kinds = {problem.request for problem in members}
    about = {
        "request": kinds.pop() if len(kinds) == 1 else RequestKind.ORDINARY,
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
            **about,
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
        **about,
    )


def _mean_majority(decided: Sequence[ProblemScore]) -> float | None:
    majorities = [problem.majority for problem in decided]
    if None in majorities:
        return None
    return float(np.mean([bool(majority) for majority in majorities]))
