"""Scored groups to the trainer's input batch, and its log-probabilities as drawn.

Where a recipe shaped the prompt of a response, the update may have the problem's own, but the
mismatch between the engines is that of one prompt: the trainer scores such a response a second
time, as it was drawn. So neither the gate nor importance weights see the difference between the
prompts, which is no mismatch.

Letters: P problems, G rollouts per problem, N sequences, T tokens.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import MathsReward, RLSettings, RouterReplay
from data_schemas.rollouts import ScoredRollout
from data_schemas.rows import Domain, Message, Problem
from tasks.algorithms.advantages.grouped import signed_scores
from tasks.algorithms.advantages.table import estimate
from tasks.algorithms.distillation import TeacherSignal
from tasks.algorithms.kept_sets import kept_behind
from tasks.algorithms.packing import pad_rows
from tasks.algorithms.phase_choices import counts_all_responses
from tasks.algorithms.routing import Traces
from tasks.engines.protocols import TokenBatch, TokenScores, Trainer
from tasks.errors import EngineError
from tasks.gym.table import is_signed
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Teacher

Value = TypeVar("Value")
Render = Callable[[Sequence[Message]], NDArray[np.int32]]
"""Makes the tokens of a prompt, from its chat template."""


@dataclass(frozen=True, slots=True)
class StepBatch:
    """The sequences of a step that are in its loss, with their scalar advantages."""

    tokens: TokenBatch
    owners: list[tuple[int, int]]
    """(group, sample) of every sequence."""
    advantages_N: torch.Tensor
    zero_variance_N: torch.Tensor
    """True: its group has equal rewards, and a term gives its tokens advantages."""
    correct_N: torch.Tensor
    num_sequences: int
    """Sequences that the loss divides by, those that are left out included."""
    num_tokens: int
    """Response tokens of all of them."""
    slices_N: list[tuple[str, ...]]
    """Domain and language of every sequence: 'domain:maths', 'language:th'."""
    weights_N: torch.Tensor
    """Weight of a sequence in the loss: that of its prompt, which counts once whatever its group's
    size; 1 where no prompt is weighed."""


def scalar_advantages(settings: RLSettings, groups: Sequence[CollectedGroup]) -> torch.Tensor:
    """Advantages [P, G]: a recipe's own, the others group-relative; [0, G] without groups."""
    if not groups:
        return torch.zeros(0, settings.group_size)
    width = max(len(entry.group.rollouts) for entry in groups)
    advantages_PG = torch.zeros(len(groups), width)
    # Groups of a recipe may have one response each, of which no estimator makes an advantage.
    if any(entry.advantages is None for entry in groups):
        scores = [[item.verdict.score for item in entry.group.rollouts] for entry in groups]
        advantages_PG = group_relative(settings, groups, scores)
    for place, entry in enumerate(groups):
        if entry.advantages is not None:
            own_G = _padded(entry.advantages, width, 0.0)
            advantages_PG[place] = torch.tensor(own_G)
    return advantages_PG


def group_relative(
    settings: RLSettings,
    groups: Sequence[CollectedGroup],
    scores: Sequence[Sequence[float | None]],
) -> torch.Tensor:
    """Advantages [P, G] by the estimator of the phase; G of the largest group.

    Args:
        settings: of the phase.
        groups: with the penalties of their responses.
        scores: of the responses of every group; None where the verifier abstained, which has 0.
    """
    width = max(map(len, scores))
    verdicts = [_padded(row, width, None) for row in scores]
    # 0 stands in for an abstention: `valid_PG` keeps it out of mean and advantage.
    scores_PG = torch.tensor([[score or 0.0 for score in row] for row in verdicts])
    if settings.rewards.maths is MathsReward.RULE:
        signed_P1 = torch.tensor([[is_signed(entry.group.problem)] for entry in groups])
        scores_PG = torch.where(signed_P1, signed_scores(scores_PG), scores_PG)
    valid_PG = torch.tensor([[score is not None for score in row] for row in verdicts])
    penalties_PG = torch.tensor(
        [_padded([item.penalty for item in e.group.rollouts], width, 0.0) for e in groups]
    )
    return estimate(settings, scores_PG, penalties_PG, valid_PG)


def _padded(row: Sequence[Value], width: int, filler: Value) -> list[Value]:
    return [*row, *[filler] * (width - len(row))]


def build(
    settings: RLSettings,
    groups: Sequence[CollectedGroup],
    taught: Collection[tuple[int, int]] = (),
) -> StepBatch:
    """Pad the sequences that are in the loss; leave out the rest before any forward pass.

    KL, entropy, balance and z losses act on every response, and C3PO draws from all of them
    (Ring-lite eq. 2). Where the loss has none of these, responses without an advantage have no
    gradient, and to leave them out changes nothing.

    Args:
        settings: of the phase.
        groups: of the step.
        taught: (group, sample) of the responses to which a teacher gives an advantage.
    """
    advantages_PG, weights_P = scalar_advantages(settings, groups), prompt_weights(groups)
    acts_on_all = counts_all_responses(settings)
    places: list[tuple[int, int]] = []
    zero_variance: list[bool] = []
    for place, entry in enumerate(groups):
        flat = entry.outcome is GroupOutcome.ZERO_VARIANCE_TRAINED
        for sample, item in enumerate(entry.group.rollouts):
            signed = flat and not item.verdict.abstained
            has_advantage = signed or float(advantages_PG[place, sample]) != 0.0
            is_taught = (place, sample) in taught
            if has_advantage or is_taught or acts_on_all:
                places.append((place, sample))
                zero_variance.append(signed)
    items = [groups[place].group.rollouts[sample] for place, sample in places]
    return StepBatch(
        tokens=token_batch(items, use_routes=settings.router_replay is RouterReplay.R3),
        owners=places,
        advantages_N=torch.tensor([float(advantages_PG[owner]) for owner in places]),
        zero_variance_N=torch.tensor(zero_variance, dtype=torch.bool),
        correct_N=torch.tensor([item.verdict.solved for item in items], dtype=torch.bool),
        num_sequences=sum(len(entry.group.rollouts) for entry in groups),
        num_tokens=sum(
            item.rollout.num_sampled for entry in groups for item in entry.group.rollouts
        ),
        slices_N=[slices_of(groups[place].group.problem) for place, _ in places],
        weights_N=weights_P[[place for place, _ in places]],
    )


def slices_of(problem: Problem) -> tuple[str, str]:
    """Name the slices of a problem by which a step is reported."""
    return f"domain:{problem.domain.value}", f"language:{problem.language}"


def prompt_weights(groups: Sequence[CollectedGroup]) -> torch.Tensor:
    """Weigh the responses of every group [P], by skips of prompts and by sizes of groups.

    Among prompts of the stream every one counts once, so that a response weighs less the more there
    are of its prompt: mean size / size. Turns of other agents weigh 1 each.
    """
    sizes = [len(entry.group.rollouts) for entry in groups if entry.turn is None]
    return torch.tensor(
        [
            entry.kept.weight * sum(sizes) / len(sizes) / len(entry.group.rollouts)
            if entry.turn is None
            else 1.0
            for entry in groups
        ]
    )


def token_batch(
    items: Sequence[ScoredRollout], *, use_routes: bool, as_drawn: bool = False
) -> TokenBatch:
    """Right-pad prompt and response of every rollout, with the sets that it was drawn from.

    Routes belong to the prompt that a response was drawn under. Where it is trained under another
    one (a scaffold), no row has a route: the trainer's own router decides.

    Args:
        items: in the order of the rows.
        use_routes: replay recorded routes.
        as_drawn: put the prompt in front that the response was drawn under.

    Raises:
        EngineError: routes are to be replayed but a rollout has none; some have sets, some not.
    """
    rollouts = [item.rollout for item in items]
    rows, masks, logprobs, starts = [], [], [], []
    for rollout in rollouts:
        before = rollout.prompt_tokens if as_drawn else rollout.trained_prompt
        prompt = len(before)
        row = np.concatenate([before, rollout.response_tokens]).astype(np.int64)
        mask = np.arange(len(row)) >= prompt
        if rollout.sampled is not None:
            mask[prompt:] = rollout.sampled
        rows.append(torch.from_numpy(row))
        starts.append(prompt)
        masks.append(torch.from_numpy(mask))
        logprobs.append(torch.from_numpy(np.pad(rollout.logprobs, (prompt, 0))))
    routes = None
    if use_routes and rollouts:
        first = rollouts[0].trace
        if first is None:
            raise EngineError("routes are to be replayed but the rollouts have none")
        num_layers, k = first.experts_TLK.shape[1:]
        traces = [one.trace if as_drawn or one.bare_prompt is None else None for one in rollouts]
        recorded = tuple(None if one is None else one.experts_TLK for one in traces)
        routes = Traces(recorded, num_layers, k, tuple(one.digest if one else "" for one in traces))
    sets = [
        kept_behind(start, rollout.kept)
        for start, rollout in zip(starts, rollouts, strict=True)
        if rollout.kept is not None
    ]
    if sets and len(sets) < len(rollouts):
        raise EngineError("some rollouts have the sets that they were drawn from, and others none")
    return TokenBatch(
        tokens_NT=pad_rows(rows, 0),
        lengths_N=torch.tensor([len(row) for row in rows], dtype=torch.int64),
        response_NT=pad_rows(masks, False),
        experts_NTLK=routes,
        columns={"rollout_logprobs": pad_rows(logprobs, 0.0)},
        kept_N=tuple(sets) or None,
    )


def token_advantages(batch: StepBatch) -> torch.Tensor:
    """Scalar advantages on every response token. [N, T]"""
    response_NT = batch.tokens.response_NT
    if not batch.owners:
        return torch.zeros(response_NT.shape)
    return torch.where(response_NT, batch.advantages_N[:, None], 0.0)


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
    truncated = token_batch([items[row] for row in rows], use_routes=use_routes, as_drawn=True)
    drawn = _score_elsewhere(trainer, settings, batch, rows, truncated, old)
    return replace(old, logprobs_NT=drawn.logprobs_NT)


def taught_prompts(
    teacher: Teacher | None, groups: Sequence[CollectedGroup]
) -> dict[tuple[int, int], Sequence[Message]]:
    """Make the teacher's prompt of every response that it may teach, by (group, sample)."""
    if teacher is None:
        return {}
    return {
        (place, sample): messages
        for place, entry in enumerate(groups)
        for sample, messages in enumerate(teacher.prompts(entry))
        if messages is not None
    }


def score_as_taught(
    trainer: Trainer,
    teacher: Teacher,
    prompts: Mapping[tuple[int, int], Sequence[Message]],
    render: Render,
    settings: RLSettings,
    groups: Sequence[CollectedGroup],
    batch: StepBatch,
    *,
    positions: int,
    others: Mapping[Domain, Trainer],
) -> TeacherSignal:
    """Score the responses that are taught behind the prompts of their teacher.

    Routes belong to the prompt that was drawn, so that the trainer's own router decides.

    Args:
        trainer: before the first update of the step.
        teacher: made the prompts.
        prompts: from `taught_prompts`.
        render: makes their tokens.
        settings: of the phase.
        groups: those of the training batch.
        batch: made of them.
        positions: of the model; a response that does not fit behind its prompt is not taught.
        others: models that score the responses of a domain in place of the policy.

    Returns:
        What is said of the tokens of the batch.
    """
    rows: list[int] = []
    items: list[ScoredRollout] = []
    for row, (place, sample) in enumerate(batch.owners):
        messages = prompts.get((place, sample))
        tokens = None if messages is None else render(messages)
        item = groups[place].group.rollouts[sample]
        longest = min(teacher.max_prompt_tokens, positions - len(item.rollout.response_tokens))
        if tokens is not None and len(tokens) <= longest:
            rows.append(row)
            # `token_batch` trains behind the bare prompt: so the teacher's stands in its place.
            items.append(replace(item, rollout=replace(item.rollout, bare_prompt=tokens)))
    response_NT = batch.tokens.response_NT
    taught_NT = torch.zeros_like(response_NT)
    scores = TokenScores(torch.zeros(response_NT.shape), torch.zeros(response_NT.shape), None)
    taught_NT[rows] = response_NT[rows]
    by_domain: defaultdict[Domain, list[int]] = defaultdict(list)
    # The control arm teaches the same tokens nothing: it costs no pass.
    for index, row in enumerate([] if teacher.blend.control else rows):
        by_domain[groups[batch.owners[row][0]].group.problem.domain].append(index)
    for domain, indices in by_domain.items():
        scorer = others.get(domain, trainer)
        taught = token_batch([items[index] for index in indices], use_routes=False)
        places = [rows[index] for index in indices]
        scores = _score_elsewhere(scorer, settings, batch, places, taught, scores)
    entropy_NT = scores.entropy_NT if teacher.blend.by_entropy else None
    return TeacherSignal(teacher.blend, scores.logprobs_NT, taught_NT, entropy_NT)


def _score_elsewhere(
    trainer: Trainer,
    settings: RLSettings,
    batch: StepBatch,
    rows: Sequence[int],
    other: TokenBatch,
    before: TokenScores,
) -> TokenScores:
    """Put the scores of some rows behind other prompts in their places of the batch."""
    scores = trainer.score(other, temperature=settings.temperature, record_routes=False)

    def placed(before_NT: torch.Tensor, seen_MT: torch.Tensor) -> torch.Tensor:
        column_NT = before_NT.clone()
        part_MT = column_NT[rows]
        # The same tokens in the same order, at other places.
        part_MT[batch.tokens.response_NT[rows]] = seen_MT[other.response_NT]
        column_NT[rows] = part_MT
        return column_NT

    return TokenScores(
        placed(before.logprobs_NT, scores.logprobs_NT),
        placed(before.entropy_NT, scores.entropy_NT),
        None,
    )
