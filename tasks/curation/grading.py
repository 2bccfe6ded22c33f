"""Stage 1b: measure how often the start model of RL solves each problem.

A seeded mixture of problems is answered several times each; the share of solved answers
determines the difficulty band of a problem. Prompts that the model always solves (or,
optionally, never solves) give zero-variance groups and are dropped.
Source: CompassMax-V3-Thinking's rollout-stage elimination of zero-variance prompts, and
Ring-lite's rule to drop all-correct prompts. The start model itself is graded; a smaller
model may screen the problems before (CompassMax drops what smaller models consistently
solve). Differs: the thresholds are ours; the papers state none.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data_schemas.arrow import write_table
from data_schemas.machine_settings import RolloutKind
from data_schemas.pass_rates import Band, GradedProblem, band_of
from data_schemas.rollouts import Rollout, StopReason
from data_schemas.rows import GRADED, QUARANTINE, Outcome, Problem, QuarantinedItem
from data_schemas.samples import RESPONSES, ResponseTokens
from data_schemas.settings import GradingSettings
from data_schemas.verdicts import Verdict
from tasks.curation.cleaning.verification import Score
from tasks.curation.items import Item, refuse
from tasks.curation.mixture import draw
from tasks.engines import episodes
from tasks.engines.chat import render_prompts
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError, EngineError
from tasks.gym.degenerate import spread
from tasks.gym.references import describe, is_lost, likely_cause, try_references
from tasks.platform.progress import progress
from tasks.store.files import write_bytes

_LOG = logging.getLogger(__name__)

STAGE = "grade"
SCREEN_SAMPLES = 8
SCREEN_PASS_RATE = 0.9
"""A smaller model with at least this pass rate on SCREEN_SAMPLES responses consistently solves
the problem."""
REPORT = "report.json"


def grade(
    settings: GradingSettings,
    problems: Sequence[Problem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
    out: Path,
    screened: Sequence[QuarantinedItem] = (),
) -> dict[str, float | int | str]:
    """Write the graded problems, the dropped ones and the report to `out`.

    Args:
        settings: number of samples, and the bounds of too easy and too hard.
        problems: candidates; a seeded draw of them is graded.
        engine: serves the start model.
        tokenizer: of the start model.
        score: scores responses.
        out: folder of the three files.
        screened: problems that a smaller model consistently solves; they are not graded.

    Raises:
        DataError: no problem is left; the message names the bound that removed most.
        EngineError: the engine did not answer every request.
    """
    sample = draw(problems, settings.weights, settings.max_problems, settings.seed)
    mastered = {refusal.key for refusal in screened}
    sample = [problem for problem in sample if problem.id not in mastered]
    rollouts = answer(settings, sample, engine, tokenizer, "grading")
    graded = _measure(sample, rollouts, tokenizer, score)
    unfit = [
        bounds for problem in graded if (bounds := _check_bounds(settings, problem)) is not None
    ]
    refused = [*screened, *unfit]
    refused_ids = {refusal.key for refusal in refused}
    survivors = [problem for problem in graded if problem.id not in refused_ids]
    lost = _lost_reward(graded, score)
    if not survivors:
        raise DataError(_explain_nothing_left(settings, graded, refused) + lost)
    write_table(out / GRADED, GradedProblem, survivors)
    write_table(out / QUARANTINE, QuarantinedItem, refused)
    if settings.engines.rollout is RolloutKind.HF:
        _write_responses(out, survivors, rollouts)
    report = _report(graded, survivors, refused)
    write_bytes(out / REPORT, json.dumps(report, indent=2, sort_keys=True).encode())
    reasons = Counter(refusal.reason for refusal in refused)
    rates = [problem.pass_rate for problem in graded if problem.pass_rate is not None]
    unsolved = unsolved_domains(graded)
    if unsolved:
        _LOG.warning(
            "pass rate 0 in %d of %d domains (%s): RL has nothing to reward there. Fine-tune on "
            "them first, add easier problems, or lower grading.temperature.%s",
            len(unsolved),
            len({problem.domain for problem in graded}),
            ", ".join(unsolved),
            lost,
        )
    stops = [one.stop_reason is StopReason.LENGTH for of in rollouts.values() for one in of]
    if 2 * sum(stops) > len(stops):
        _LOG.warning(
            "%d %% of the responses were cut at grading.max_new_tokens, %d: what they would have "
            "answered earns nothing. Raise it and those of the phases, or fine-tune first",
            *(100 * sum(stops) // len(stops), settings.max_new_tokens),
        )
    _LOG.info("graded %d problems, kept %d, dropped %s", len(graded), len(survivors), dict(reasons))
    return {
        "offered": len(problems),
        "graded": len(graded),
        "generated_tokens": sum(one.num_sampled for of in rollouts.values() for one in of),
        "kept": len(survivors),
        "too_easy": reasons["too_easy"],
        "small_model_solves": reasons["small_model_solves"],
        "too_hard": reasons["too_hard"],
        "ungraded": sum(problem.band is Band.UNGRADED for problem in graded),
        "mean_pass_rate": sum(rates) / len(rates) if rates else 0.0,
        "unsolved_domains": len(unsolved),
    }


def unsolved_domains(graded: Sequence[GradedProblem]) -> list[str]:
    """Name the domains of which the start model solved no problem in any sample."""
    best: dict[str, float] = {}
    for problem in graded:
        if problem.pass_rate is not None:
            best[problem.domain] = max(best.get(problem.domain, 0.0), problem.pass_rate)
    return sorted(domain for domain, rate in best.items() if rate == 0.0)


def _lost_reward(graded: Sequence[GradedProblem], score: Score) -> str:
    """Say of what is never solved that its own reference earns no full marks; '' if it does."""
    never = spread([problem for problem in graded if problem.pass_rate == 0.0])
    lost = [one for one in try_references(never, [()] * len(never), score) if is_lost(one)]
    if not lost:
        return ""
    return (
        f" Nor can anybody solve {len(lost)} of {len(never)} such problems: {describe(lost[0])}. "
        f"Likely cause: {likely_cause(lost[0])}"
    )


def _measure(
    problems: Sequence[Problem],
    rollouts: Mapping[str, Sequence[Rollout]],
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
) -> list[GradedProblem]:
    """Measure the pass rate of every problem."""
    verdicts = iter(
        score(
            [problem for problem in problems for _ in rollouts[problem.id]],
            [
                episodes.text_of(tokenizer, rollout, problem.verifier)
                for problem in problems
                for rollout in rollouts[problem.id]
            ],
        )
    )
    return [
        _with_pass_rate(
            problem, rollouts[problem.id], [next(verdicts) for _ in rollouts[problem.id]]
        )
        for problem in problems
    ]


def screen_out(
    settings: GradingSettings,
    problems: Sequence[Problem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
) -> list[QuarantinedItem]:
    """Refuse the problems that a smaller model consistently solves, of those that are graded.

    Args:
        engine: serves the smaller model. Close it before the start model's is opened: a GPU holds
            one engine.
        tokenizer: of the smaller model.
    """
    enough = settings.model_copy(update={"samples": SCREEN_SAMPLES})
    sample = draw(problems, settings.weights, settings.max_problems, settings.seed)
    rollouts = answer(enough, sample, engine, tokenizer, "grading")
    rated = _measure(sample, rollouts, tokenizer, score)
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


def answer(
    settings: GradingSettings,
    problems: Sequence[Problem],
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    title: str,
) -> dict[str, list[Rollout]]:
    """Return the rollouts of each problem, ordered by sample number.

    Raises:
        EngineError: the engine did not answer every request.
    """
    prompts = render_prompts(tokenizer, [problem.messages for problem in problems])
    requests = [
        Request(problem.id, prompt, settings.samples)
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    sampling = Sampling(
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        seed=settings.seed,
        record_routes=False,
    )
    answers: dict[str, list[Rollout]] = defaultdict(list)
    total = len(requests) * settings.samples
    by_id = {problem.id: problem for problem in problems}
    stream = episodes.generate(engine, tokenizer, by_id, requests, sampling)
    for rollout in progress(stream, title, total):
        answers[rollout.problem_id].append(rollout)
    for problem in problems:
        results = sorted(rollout.sample for rollout in answers[problem.id])
        if results != list(range(settings.samples)):
            raise EngineError(
                f"{problem.id}: requested {settings.samples} samples, the engine returned {results}"
            )
        answers[problem.id].sort(key=lambda rollout: rollout.sample)
    return answers


def _write_responses(
    out: Path, problems: Sequence[Problem], rollouts: Mapping[str, Sequence[Rollout]]
) -> None:
    """Write the tokens of all responses."""
    rows = (
        ResponseTokens(
            stream=problem.id,
            sample=rollout.sample,
            tokens=tuple(rollout.response_tokens.tolist()),
        )
        for problem in problems
        for rollout in rollouts[problem.id]
    )
    write_table(out / RESPONSES, ResponseTokens, rows)


def _with_pass_rate(
    problem: Problem, rollouts: Sequence[Rollout], verdicts: Sequence[Verdict]
) -> GradedProblem:
    decided = [verdict for verdict in verdicts if not verdict.abstained]
    rate = sum(verdict.solved for verdict in decided) / len(decided) if decided else None
    return GradedProblem(
        **dict(problem),
        pass_rate=rate,
        mean_tokens=sum(rollout.num_sampled for rollout in rollouts) / len(rollouts),
        band=band_of(rate),
    )


def _check_bounds(settings: GradingSettings, problem: GradedProblem) -> QuarantinedItem | None:
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


def _explain_nothing_left(
    settings: GradingSettings, graded: Sequence[GradedProblem], refused: Sequence[QuarantinedItem]
) -> str:
    if not graded:
        return (
            "there is no problem to grade in the domains that grading.weights names "
            f"({', '.join(settings.weights) or 'any'}). Name a domain that has problems."
        )
    hard = sum(refusal.reason == "too_hard" for refusal in refused)
    easy = len(refused) - hard
    advice = (
        "Add harder problems; or, to release what solves them, set grading.drop_at_or_above to "
        "1.01 and the steps of rl_one and rl_two to 0."
        if easy >= hard
        else f"Add easier ones or lower grading.drop_at_or_below ({settings.drop_at_or_below})."
    )
    return (
        f"no problem is left to train on: of {len(graded)} graded problems, {easy} are too easy "
        f"for the start model and {hard} too hard. {advice}"
    )


def _report(
    graded: Sequence[GradedProblem],
    survivors: Sequence[GradedProblem],
    refused: Sequence[QuarantinedItem],
) -> dict[str, dict[str, object]]:
    domains: dict[str, object] = {}
    for domain in sorted({problem.domain for problem in graded}):
        mine = [problem for problem in graded if problem.domain is domain]
        rates = [problem.pass_rate for problem in mine if problem.pass_rate is not None]
        reasons = {refusal.key: refusal.reason for refusal in refused}
        domains[domain] = {
            "graded": len(mine),
            "kept": sum(problem.domain is domain for problem in survivors),
            "dropped": dict(Counter(reasons[p.id] for p in mine if p.id in reasons)),
            "bands": dict(Counter(problem.band.value for problem in mine)),
            "mean_pass_rate": sum(rates) / len(rates) if rates else None,
            "mean_tokens": sum(problem.mean_tokens for problem in mine) / len(mine),
        }
    return {"domains": domains}
