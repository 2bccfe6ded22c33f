"""The gate before a scaffold: does the start model do better when it sees the criteria?

A policy that cannot follow a criterion in its prompt gains nothing from one, so nothing would be
trained but noise. Measured on the problems that are trained on; held-out ones are not touched.
The mean score of a problem under its bare prompt is also what its quantile is taken of (Rubicon).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from data_schemas.frozen_model import FrozenModel
from data_schemas.pass_rates import GradedProblem
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.algorithms.intervals import Interval, paired_difference
from tasks.algorithms.rubrics import in_quantile_band
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError, SettingsError
from tasks.lab.recipes.rusca.criteria import criteria_of, with_criteria
from tasks.lab.recipes.rusca.settings import ScaffoldSettings

Score = Callable[[Sequence[Problem], Sequence[str]], list[Verdict]]
MIN_LIFT = 0.1
"""Smallest gain in mean score from showing everything [I]."""
SAMPLES = 4
MAX_PROBLEMS = 128
"""As many as the specification's own measurement."""


class Lift(FrozenModel):
    """What showing all criteria changes."""

    bare: float = Field(description="mean score without criteria")
    shown: float = Field(description="mean score with all of them in the prompt")
    lift: Interval = Field(description="difference, paired by problem")
    scores: dict[str, float] = Field(description="problem -> its mean score without criteria")


def measure_lift(
    settings: RLSettings,
    scaffold: ScaffoldSettings,
    problems: Sequence[GradedProblem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
) -> Lift:
    """Answer problems with and without their criteria in the prompt.

    Raises:
        DataError: no problem has a rubric, or none has a verdict on both sides.
    """
    candidates = [one for one in problems if criteria_of(one)][:MAX_PROBLEMS]
    if not candidates:
        raise DataError("no problem has a rubric; a scaffold would have nothing to show")
    plain = [one.messages for one in candidates]
    full = [with_criteria(one.messages, criteria_of(one), scaffold.form) for one in candidates]
    bare_scores, full_scores = (
        _mean_scores(settings, candidates, prompts, engine, tokenizer, score)
        for prompts in (render_prompts(tokenizer, plain), render_prompts(tokenizer, full))
    )
    names = [name for name in bare_scores if name in full_scores]
    if not names:
        raise DataError("no response has a verdict, so the lift of a scaffold is unknown")
    ours, theirs = [full_scores[name] for name in names], [bare_scores[name] for name in names]
    return Lift(
        bare=sum(theirs) / len(names),
        shown=sum(ours) / len(names),
        lift=paired_difference(ours, theirs, seed=settings.seed),
        scores=bare_scores,
    )


def require_lift(lift: Lift) -> None:
    """Refuse a scaffold that the start model does not follow.

    Raises:
        DataError: the gain is below MIN_LIFT.
    """
    if lift.lift.mean < MIN_LIFT:
        raise DataError(
            f"with all criteria in the prompt the start model scores {lift.shown:.3f}, without "
            f"them {lift.bare:.3f}; a scaffold needs a gain of {MIN_LIFT:g}. Teach the model the "
            "words of the criteria first, or choose another scaffold.form."
        )


def check_band(low: float, high: float) -> None:
    """Check the quantiles between which problems are kept.

    Raises:
        SettingsError: they are no shares in ascending order.
    """
    if not 0.0 <= low < high <= 1.0:
        raise SettingsError(
            f"low is {low:g} and high {high:g}: give quantiles from 0 to 1, the lower one first"
        )


def in_band(
    problems: Sequence[GradedProblem], lift: Lift, low: float, high: float
) -> list[GradedProblem]:
    """Keep the problems whose score lies between two quantiles; those not measured are kept.

    Raises:
        DataError: none is left.
    """
    names = list(lift.scores)
    marks = in_quantile_band([lift.scores[name] for name in names], low, high)
    out = {name for name, stays in zip(names, marks, strict=True) if not stays}
    survivors = [problem for problem in problems if problem.id not in out]
    if not survivors:
        raise DataError(f"no problem scores between the quantiles {low:g} and {high:g}; widen them")
    return survivors


def _mean_scores(
    settings: RLSettings,
    problems: Sequence[Problem],
    prompts: Sequence[NDArray[np.int32]],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
) -> dict[str, float]:
    """Mean score by problem, of those with a verdict."""
    requests = [
        Request(problem.id, tokens, SAMPLES)
        for problem, tokens in zip(problems, prompts, strict=True)
    ]
    sampling = Sampling(
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        seed=settings.seed,
        record_routes=False,
        top_p=settings.top_p,
        top_k=settings.top_k,
    )
    by_id = {problem.id: problem for problem in problems}
    results = sorted(
        engine.generate(requests, sampling), key=lambda one: (one.problem_id, one.sample)
    )
    texts = [response_text(tokenizer, one.response_tokens.tolist()) for one in results]
    verdicts = score([by_id[one.problem_id] for one in results], texts)
    scores: dict[str, list[float]] = {}
    for rollout, verdict in zip(results, verdicts, strict=True):
        if verdict.score is not None:
            scores.setdefault(rollout.problem_id, []).append(verdict.score)
    return {name: sum(values) / len(values) for name, values in scores.items()}
