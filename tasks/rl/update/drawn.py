"""Log-probabilities under the prompt that a response was drawn with.

Where a recipe shaped the prompt, the update may have the problem's own, but the mismatch between
the engines is that of one prompt: the trainer scores such a response a second time, as it was
drawn. So neither the gate nor importance weights see the difference between the prompts, which is
no mismatch. Letters: N sequences, T tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

from data_schemas.rl_settings import RLSettings, RouterReplay
from tasks.engines.protocols import TokenScores, Trainer
from tasks.rl.rollouts.group_outcomes import CollectedGroup
from tasks.rl.update.batch import StepBatch, token_batch


def score_as_drawn(
    trainer: Trainer,
    settings: RLSettings,
    groups: Sequence[CollectedGroup],
    batch: StepBatch,
    old: TokenScores,
) -> TokenScores:
    """Score the responses to shaped prompts under the prompts that they were drawn with.

    Args:
        trainer: before the first update of the step.
        settings: of the phase.
        groups: those of the training batch.
        batch: made of them.
        old: scores of the batch.

    Returns:
        `old` with these log-probabilities; `old` itself if no prompt was shaped.
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
