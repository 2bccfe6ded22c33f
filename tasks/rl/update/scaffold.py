"""Log-probabilities under the prompt that a response was drawn with, and the scaffold's records.

Where a scaffold showed criteria, the update has the bare prompt, but the mismatch between the
engines is that of one prompt: the trainer scores such a response a second time, as it was drawn.
So neither the gate nor importance weights see the difference between the prompts, which is no
mismatch. Letters: N sequences, T tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

from data_schemas.ledger import ShownRow
from data_schemas.rl_settings import RLSettings, RouterReplay
from data_schemas.rollouts import ScoredRollout
from data_schemas.scaffold_settings import Ratio, scaffold_of
from tasks.algorithms.mismatch import mismatch_metrics
from tasks.algorithms.scaffold import share_of_step
from tasks.engines.protocols import TokenScores, Trainer
from tasks.gym.judging.shown import criteria_of, mentions
from tasks.rl.rollouts.collected import Collected
from tasks.rl.rollouts.group_outcomes import CollectedGroup
from tasks.rl.rollouts.scaffold import is_bare
from tasks.rl.update.batch import StepBatch, token_batch


def score_as_drawn(
    trainer: Trainer,
    settings: RLSettings,
    groups: Sequence[CollectedGroup],
    batch: StepBatch,
    old: TokenScores,
) -> TokenScores:
    """Score the responses that saw criteria under the prompts that they were drawn with.

    Args:
        trainer: before the first update of the step.
        settings: of the phase.
        groups: those of the training batch.
        batch: made of them.
        old: scores of the batch.

    Returns:
        `old` with these log-probabilities; `old` itself if no response saw criteria.
    """
    items = [groups[place].group.rollouts[sample] for place, sample in batch.owners]
    rows = [row for row, item in enumerate(items) if item.rollout.bare_prompt is not None]
    if not rows:
        return old
    use_routes = settings.router_replay is RouterReplay.R3
    drawn = token_batch([items[row] for row in rows], use_routes=use_routes, drawn=True)
    scores = trainer.score(drawn, temperature=settings.temperature, record_routes=False)
    logprobs_NT = old.logprobs_NT.clone()
    part_MT = logprobs_NT[rows]
    # The same tokens in the same order, at other places.
    part_MT[batch.tokens.response_NT[rows]] = scores.logprobs_NT[drawn.response_NT]
    logprobs_NT[rows] = part_MT
    return replace(old, logprobs_NT=logprobs_NT)


def denominator(settings: RLSettings, old: TokenScores, drawn: TokenScores) -> TokenScores:
    """Return the scores whose log-probabilities are the old ones of the policy ratio."""
    scaffold = scaffold_of(settings)
    if scaffold is not None and scaffold.ratio is Ratio.IMPORTANCE:
        return replace(old, logprobs_NT=drawn.logprobs_NT)
    return old


def shown_rows(settings: RLSettings, collected: Collected) -> list[ShownRow]:
    """Say for every finished response of a step what its prompt showed; none without a scaffold."""
    if scaffold_of(settings) is None:
        return []
    return [
        _row(collected.step, entry, item)
        for entry in collected.groups
        for item in entry.group.rollouts
    ]


def scaffold_metrics(
    settings: RLSettings,
    rows: Sequence[ShownRow],
    step: int,
    batch: StepBatch,
    scores: tuple[TokenScores, TokenScores],
) -> dict[str, float]:
    """Strength of the scaffold in a step and what it costs; empty without a scaffold.

    Args:
        settings: of the phase.
        rows: of the step.
        step: from 1.
        batch: of the step.
        scores: `old` and `drawn` of the batch.
    """
    scaffold = scaffold_of(settings)
    if scaffold is None:
        return {}
    bare = [row for row in rows if not row.shown]
    shown = [row for row in rows if row.shown]
    old, drawn = scores
    mask_NT = batch.tokens.response_NT.clone()
    mask_NT[(old.logprobs_NT == drawn.logprobs_NT).all(dim=1)] = False
    apart = mismatch_metrics(old.logprobs_NT, drawn.logprobs_NT, mask_NT)
    return {
        "scaffold/share": share_of_step(step, settings.steps, scaffold),
        "scaffold/shown_responses": float(len(shown)),
        "scaffold/shown_criteria_mean": _mean([float(len(row.shown)) for row in rows]),
        "scaffold/reward_shown": _mean([row.score for row in shown if row.score is not None]),
        "scaffold/reward_bare": _mean([row.score for row in bare if row.score is not None]),
        "scaffold/mentioning_responses": float(sum(row.mentions for row in rows)),
        "scaffold/added_prompt_tokens": float(sum(row.added_tokens for row in rows)),
        "scaffold/k3_between_prompts": apart["mismatch/k3"],
    }


def describe_scaffold(
    settings: RLSettings, rows: Sequence[ShownRow]
) -> dict[str, float | int | str]:
    """Facts of a phase with a scaffold, for its statement; none without one."""
    scaffold = scaffold_of(settings)
    if scaffold is None:
        return {}
    return {
        "scaffold_ratio": scaffold.ratio.value,
        "scaffold_responses": sum(bool(row.shown) for row in rows),
        "scaffold_criteria_shown": sum(len(row.shown) for row in rows),
        "scaffold_last_step": max((row.step for row in rows if row.shown), default=0),
        "scaffold_added_prompt_tokens": sum(row.added_tokens for row in rows),
        "scaffold_mentions": sum(row.mentions for row in rows),
    }


def _row(step: int, entry: CollectedGroup, item: ScoredRollout) -> ShownRow:
    rollout, criteria = item.rollout, criteria_of(entry.group.problem)
    shortest = min(len(one.rollout.prompt_tokens) for one in entry.group.rollouts)
    bare = shortest if rollout.bare_prompt is None else len(rollout.bare_prompt)
    return ShownRow(
        step=step,
        round=entry.round,
        problem_id=entry.group.problem.id,
        sample=rollout.sample,
        criteria=len(criteria),
        shown=rollout.shown,
        added_tokens=0 if is_bare(rollout) else len(rollout.prompt_tokens) - bare,
        mentions=mentions(item.text, criteria),
        score=item.verdict.score,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
