"""Stage 1b: how well does the model that RL starts from do on each problem?

A seeded mixture of problems is answered several times each; the share of solved answers
puts a problem into a difficulty band. Prompts a model always solves (or, if asked for,
never solves) give no reward variance to learn from and are dropped.
Source: CompassMax-V3-Thinking's rollout-stage elimination of zero-variance prompts, and
Ring-lite's rule to drop all-correct prompts. The start model itself is graded; a smaller
model may screen the problems before (CompassMax drops what smaller models consistently
solve). Differs: thresholds are ours, the papers print none.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data_schemas.arrow import write_table
from data_schemas.graded import Band, GradedProblem
from data_schemas.prompts import Problem
from data_schemas.quarantine import Outcome, Quarantined
from data_schemas.rollouts import Rollout
from data_schemas.settings import GradingSettings
from data_schemas.verdicts import Verdict
from tasks.curation.items import Item, refuse
from tasks.curation.mixture import draw
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError, EngineError
from tasks.platform.progress import progress
from tasks.store.files import write_bytes

_LOG = logging.getLogger(__name__)

STAGE = "grade"
SCREEN_SAMPLES = 8
SCREEN_PASS_RATE = 0.9
"""A smaller model that solves this share of so many responses does so consistently."""
GRADED = "graded.parquet"
QUARANTINE = "quarantine.parquet"
REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Screen:
    """A smaller model, with its own tokenizer."""

    engine: RolloutEngine
    tokenizer: PreTrainedTokenizerBase


Score = Callable[[Sequence[Problem], Sequence[str]], Sequence[Verdict]]
"""Judge responses[i] as an answer to problems[i]."""


def grade(
    settings: GradingSettings,
    problems: Sequence[Problem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
    out: Path,
    screen: Screen | None = None,
) -> dict[str, float | int | str]:
    """Write graded.parquet, what was dropped and the report to `out`.

    Args:
        settings: how many samples, what is too easy or too hard.
        problems: offered; a seeded draw of them is graded.
        engine: holds the start model.
        tokenizer: of the start model.
        score: judges responses.
        out: folder of the three files.
        screen: a smaller model; what it consistently solves is dropped ungraded.

    Raises:
        DataError: nothing is left; the message says which bound took it.
        EngineError: the engine did not answer every request.
    """
    chosen = draw(problems, settings.weights, settings.max_problems, settings.seed)
    screened = _screened(settings, chosen, screen, score) if screen else []
    mastered = {refusal.key for refusal in screened}
    chosen = [problem for problem in chosen if problem.id not in mastered]
    graded = _measured(settings, chosen, engine, tokenizer, score)
    unfit = [found for problem in graded if (found := _unfit(settings, problem)) is not None]
    refused = [*screened, *unfit]
    lost = {refusal.key for refusal in refused}
    kept = [problem for problem in graded if problem.id not in lost]
    if not kept:
        raise DataError(_nothing_left(settings, graded, refused))
    write_table(out / GRADED, GradedProblem, kept)
    write_table(out / QUARANTINE, Quarantined, refused)
    report = _report(graded, kept, refused)
    write_bytes(out / REPORT, json.dumps(report, indent=2, sort_keys=True).encode())
    reasons = Counter(refusal.reason for refusal in refused)
    rates = [problem.pass_rate for problem in graded if problem.pass_rate is not None]
    _LOG.info("graded %d problems, kept %d, dropped %s", len(graded), len(kept), dict(reasons))
    return {
        "offered": len(problems),
        "graded": len(graded),
        "kept": len(kept),
        "too_easy": reasons["too_easy"],
        "small_model_solves": reasons["small_model_solves"],
        "too_hard": reasons["too_hard"],
        "ungraded": sum(problem.band is Band.UNGRADED for problem in graded),
        "mean_pass_rate": sum(rates) / len(rates) if rates else 0.0,
    }


def band_of(pass_rate: float | None) -> Band:
    """Name the difficulty of a pass rate."""
    if pass_rate is None:
        return Band.UNGRADED
    if pass_rate in (0.0, 1.0):
        return Band.SOLVED if pass_rate else Band.UNSOLVED
    if pass_rate < 1 / 3:
        return Band.HARD
    return Band.EASY if pass_rate > 2 / 3 else Band.MEDIUM


def _measured(
    settings: GradingSettings,
    problems: Sequence[Problem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
) -> list[GradedProblem]:
    """Answer every problem and give it its pass rate."""
    rollouts = _answer(settings, problems, engine, tokenizer)
    verdicts = iter(
        score(
            [problem for problem in problems for _ in rollouts[problem.id]],
            [
                response_text(tokenizer, rollout.response_tokens.tolist())
                for problem in problems
                for rollout in rollouts[problem.id]
            ],
        )
    )
    return [
        _graded(problem, rollouts[problem.id], [next(verdicts) for _ in rollouts[problem.id]])
        for problem in problems
    ]


def _screened(
    settings: GradingSettings, problems: Sequence[Problem], screen: Screen, score: Score
) -> list[Quarantined]:
    """Refuse what a smaller model consistently solves."""
    enough = settings.model_copy(update={"samples": SCREEN_SAMPLES})
    rated = _measured(enough, problems, screen.engine, screen.tokenizer, score)
    return [
        refuse(
            Item(problem, problem.prompt_text),
            STAGE,
            Outcome.DROPPED,
            "small_model_solves",
            f"pass rate {problem.pass_rate:.2f} of the smaller model, bound {SCREEN_PASS_RATE:.2f}",
        )
        for problem in rated
        if problem.pass_rate is not None and problem.pass_rate >= SCREEN_PASS_RATE
    ]


def _answer(
    settings: GradingSettings,
    problems: Sequence[Problem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> dict[str, list[Rollout]]:
    """Return each problem's rollouts in the order of their sample number."""
    prompts = render_prompts(tokenizer, [problem.messages for problem in problems])
    requests = [
        Request(problem.id, prompt, settings.samples)
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    sampling = Sampling(
        max_new_tokens=settings.max_new_tokens,
        temperature=1.0,
        seed=settings.seed,
        record_routes=False,
    )
    answers: dict[str, list[Rollout]] = defaultdict(list)
    total = len(requests) * settings.samples
    for rollout in progress(engine.generate(requests, sampling), "grading", total):
        answers[rollout.problem_id].append(rollout)
    for problem in problems:
        found = sorted(rollout.sample for rollout in answers[problem.id])
        if found != list(range(settings.samples)):
            raise EngineError(
                f"{problem.id}: asked for {settings.samples} samples, the engine gave {found}"
            )
        answers[problem.id].sort(key=lambda rollout: rollout.sample)
    return answers


def _graded(
    problem: Problem, rollouts: Sequence[Rollout], verdicts: Sequence[Verdict]
) -> GradedProblem:
    judged = [verdict for verdict in verdicts if not verdict.abstained]
    rate = sum(verdict.solved for verdict in judged) / len(judged) if judged else None
    return GradedProblem(
        **dict(problem),
        pass_rate=rate,
        mean_tokens=sum(len(rollout.response_tokens) for rollout in rollouts) / len(rollouts),
        band=band_of(rate),
    )


def _unfit(settings: GradingSettings, problem: GradedProblem) -> Quarantined | None:
    rate = problem.pass_rate
    if rate is None:
        return None
    reason, bound = "", 0.0
    if rate >= settings.drop_at_or_above:
        reason, bound = "too_easy", settings.drop_at_or_above
    elif rate <= settings.drop_at_or_below:
        reason, bound = "too_hard", settings.drop_at_or_below
    if not reason:
        return None
    item = Item(problem, problem.prompt_text)
    return refuse(item, STAGE, Outcome.DROPPED, reason, f"pass rate {rate:.2f}, bound {bound:.2f}")


def _nothing_left(
    settings: GradingSettings, graded: Sequence[GradedProblem], refused: Sequence[Quarantined]
) -> str:
    if not graded:
        return (
            "there is no problem to grade in the domains of grading.weights "
            f"({', '.join(settings.weights) or 'any'}). Name a domain that has problems."
        )
    hard = sum(refusal.reason == "too_hard" for refusal in refused)
    easy = len(refused) - hard
    advice = (
        f"Give harder problems or raise grading.drop_at_or_above ({settings.drop_at_or_above})."
        if easy >= hard
        else f"Give easier ones or lower grading.drop_at_or_below ({settings.drop_at_or_below})."
    )
    return (
        f"nothing is worth learning: of {len(graded)} graded problems the start model finds "
        f"{easy} too easy and {hard} too hard. {advice}"
    )


def _report(
    graded: Sequence[GradedProblem],
    kept: Sequence[GradedProblem],
    refused: Sequence[Quarantined],
) -> dict[str, dict[str, object]]:
    domains: dict[str, object] = {}
    for domain in sorted({problem.domain for problem in graded}):
        mine = [problem for problem in graded if problem.domain is domain]
        rates = [problem.pass_rate for problem in mine if problem.pass_rate is not None]
        lost = {refusal.key: refusal.reason for refusal in refused}
        domains[domain] = {
            "graded": len(mine),
            "kept": sum(problem.domain is domain for problem in kept),
            "dropped": dict(Counter(lost[p.id] for p in mine if p.id in lost)),
            "bands": dict(Counter(problem.band.value for problem in mine)),
            "mean_pass_rate": sum(rates) / len(rates) if rates else None,
            "mean_tokens": sum(problem.mean_tokens for problem in mine) / len(mine),
        }
    return {"domains": domains}
