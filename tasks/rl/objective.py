"""The arithmetic of a step between scores and loss: pure, so that a replay can repeat it.

Advantages are made in batch.py. Letters: N sequences, T tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from data_schemas.reports import GateRecord, MismatchDecision
from data_schemas.rl_settings import LossSettings, RLSettings, TermSettings
from tasks.algorithms.losses import table
from tasks.algorithms.losses.protocol import StepTokens, StepTotals, TokenPlan
from tasks.algorithms.losses.surrogate import unclipped
from tasks.algorithms.terms.fold import fold_update
from tasks.algorithms.terms.protocol import EngineGap, StepSignal, UpdateSignal
from tasks.algorithms.terms.table import find_terms
from tasks.algorithms.terms.token_budget import SEED_STRIDE
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.errors import DataError
from tasks.rl.batch import StepBatch, token_advantages


def step_seed(settings: RLSettings, step: int) -> int:
    """Seed of a step: no step of one seed draws as a step of the next one."""
    return settings.seed * SEED_STRIDE + step


def split(settings: RLSettings, num_rows: int, step: int) -> tuple[torch.Tensor, ...]:
    """Rows of every update of the step: a seeded shuffle in equal parts, none of them empty."""
    generator = torch.Generator().manual_seed(step_seed(settings, step))
    parts = torch.randperm(num_rows, generator=generator).tensor_split(settings.num_mini_batches)
    return tuple(part for part in parts if len(part))


SMALLEST_SAMPLE, SAMPLED_SHARE = 8, 8
"""Sequences of a step that are measured at least, where the trainer does not score them all, and
the share of them: one in eight [no paper's]."""


def measured_rows(settings: RLSettings, num_rows: int, step: int) -> torch.Tensor:
    """Rows that the trainer scores before the first update: all, or a sample."""
    return torch.arange(num_rows) if settings.recomputes else sampled_rows(settings, num_rows, step)


def sampled_rows(settings: RLSettings, num_rows: int, step: int) -> torch.Tensor:
    """Draw rows by seed and step, ascending: an eighth, at least eight."""
    count = min(num_rows, max(SMALLEST_SAMPLE, num_rows // SAMPLED_SHARE))
    generator = torch.Generator().manual_seed(step_seed(settings, step))
    return torch.randperm(num_rows, generator=generator)[:count].sort().values


def correcting_kinds(settings: RLSettings) -> list[str]:
    """Name the terms that correct every step, however well trainer and rollout engine agree."""
    pairs = zip(settings.terms, find_terms(settings.terms), strict=True)
    return [one.kind for one, term in pairs if term.engine_gap >= EngineGap.MASKS]


def acting_terms(settings: RLSettings, decision: GateRecord) -> tuple[TermSettings, ...]:
    """Return the terms that act on a step, in their order.

    A step whose k3, or that of a slice for certain, is above the bound is first of all corrected,
    unless a term that is listed weighs by the ratio of trainer and rollout engine.
    """
    mismatch = settings.engines.mismatch
    exceeds = (
        decision.decision is MismatchDecision.CORRECT
        and max(decision.k3, decision.slice_k3) > mismatch.correct_above
    )
    listed = find_terms(settings.terms)
    if exceeds and all(one.engine_gap < EngineGap.WEIGHS for one in listed):
        return (mismatch.corrected_by, *settings.terms)
    return settings.terms


def first_signal(
    settings: RLSettings,
    batch: StepBatch,
    scores: tuple[TokenScores, TokenScores],
    rows: tuple[torch.Tensor, ...],
    *,
    vocabulary: int,
    step: int,
    reference_NT: torch.Tensor | None,
) -> StepSignal:
    """Put together what a step knows of its tokens before any term acts.

    The loss plans groups, clip ranges and weights of every token; without a row it plans none.

    Args:
        settings: of the phase.
        batch: of the step.
        scores: before the first update, and those behind the prompts as drawn.
        rows: of every update.
        vocabulary: tokens of the model.
        step: number of the step.
        reference_NT: log-probabilities of the phase's start model, where a term needs them.
    """
    (old, drawn), response_NT = scores, batch.tokens.response_NT
    responses = settings.prompts_per_step * settings.group_size
    totals = StepTotals(
        num_sequences=batch.num_sequences,
        num_tokens=batch.num_tokens,
        max_new_tokens=settings.max_new_tokens,
        updates=rows,
        seed=step_seed(settings, step),
        responses_per_update=responses / settings.num_mini_batches,
    )
    if rows:
        tokens = StepTokens(old.entropy_NT, response_NT, vocabulary, totals)
        plan = table.find(settings.loss).plan(tokens)
    else:
        plan = unclipped(response_NT, torch.zeros(response_NT.shape))
    return StepSignal(
        response_NT=response_NT,
        old_NT=old.logprobs_NT,
        rollout_prompt_NT=drawn.logprobs_NT,
        rollout_NT=batch.tokens.columns["rollout_logprobs"],
        entropy_NT=old.entropy_NT,
        reference_NT=reference_NT,
        zero_variance_N=batch.zero_variance_N,
        correct_N=batch.correct_N,
        totals=totals,
        advantages_NT=token_advantages(batch),
        plan=plan,
        weights_NT=torch.ones(response_NT.shape),
        kept_NT=response_NT,
    )


def loss_columns(old: TokenScores, signal: StepSignal) -> dict[str, torch.Tensor]:
    """Name the batch columns that the loss and its terms read beside the current log-probs.

    Args:
        old: log-probs that the ratio is formed with.
        signal: after the fold.
    """
    own = {
        "old_logprobs": old.logprobs_NT,
        "advantages": signal.advantages_NT * signal.weights_NT,
        **signal.plan.columns(),
    }
    return {**signal.held, **own}


PROMPT_WEIGHT = "prompt_weight"
"""Column: weight of the sequence's prompt, on each of its tokens; absent where all are 1."""


def weigh_prompts(columns: Mapping[str, torch.Tensor], batch: StepBatch) -> dict[str, torch.Tensor]:
    """Add the weights of the prompts to the columns of a batch that has any but 1."""
    if bool((batch.weights_N == 1.0).all()):
        return dict(columns)
    weights_NT = batch.weights_N[:, None] * batch.tokens.response_NT
    return {**columns, PROMPT_WEIGHT: weights_NT}


def without_cut(training: TokenBatch, kept_NT: torch.Tensor) -> TokenBatch:
    """End every sequence at its last token that is in the step.

    What is cut is in no term of the loss, and no later token attends to it. A sequence of which
    nothing is kept has one token left; `kept_rows` leaves it out.
    """
    place_T = torch.arange(1, kept_NT.shape[1] + 1)
    # amax of rows without tokens is an error in torch: without a sequence there is no end.
    ends_N = (kept_NT * place_T).amax(dim=1).clamp(min=1) if len(kept_NT) else place_T[:0]
    has_cut_N = (training.response_NT & ~kept_NT).any(dim=1)
    lengths_N = torch.where(has_cut_N, ends_N, training.lengths_N)
    return replace(training, lengths_N=lengths_N, response_NT=kept_NT)


def kept_rows(rows: tuple[torch.Tensor, ...], kept_NT: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Leave the sequences of which nothing is kept out of every update."""
    return tuple(part[kept_NT[part].any(dim=1)] for part in rows)


@dataclass(frozen=True, slots=True)
class UpdateLoss:
    """The policy loss of a mini-batch in the form of `LossFn`; picklable for other ranks."""

    loss: LossSettings
    num_sequences: float
    """Sequences of the step per mini-batch, by which the loss is divided."""
    terms: tuple[TermSettings, ...] = ()

    def __call__(
        self, logprobs_NT: torch.Tensor, batch: TokenBatch
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the loss of a micro-batch and its counts; those of a mini-batch add up."""
        column = batch.columns
        plan = TokenPlan(
            column["groups"], column["weights"], column["clip_low"], column["clip_high"]
        )
        outside_NT = plan.weights_NT <= 0  # padding there may be anything
        update, effects = fold_update(
            find_terms(self.terms),
            UpdateSignal(
                logprobs_NT=logprobs_NT,
                ratio_NT=logprobs_NT,
                old_NT=column["old_logprobs"],
                advantages_NT=column["advantages"],
                weights_NT=plan.weights_NT,
                columns=column,
                num_sequences=self.num_sequences,
            ),
        )
        objective_N, clipped_NT = table.find(self.loss).objective(
            update.ratio_NT.masked_fill(outside_NT, 0.0),
            update.old_NT.masked_fill(outside_NT, 0.0),
            update.advantages_NT,
            plan,
        )
        self._check(objective_N, clipped_NT, logprobs_NT)
        counts = {
            "clipped_tokens": float(clipped_NT.sum()),
            "tokens": float((~outside_NT & (update.advantages_NT != 0)).sum()),
        }
        for effect in effects:
            counts |= effect.counts
            for name, marks_NT in effect.clipped.items():
                counts[name] = float((clipped_NT & marks_NT).sum())
            if effect.penalty_N is not None:
                objective_N = objective_N - effect.penalty_N
        if PROMPT_WEIGHT in column:
            # The whole sequence, its penalties with it: what a skipped prompt would have added.
            objective_N = objective_N * column[PROMPT_WEIGHT].amax(dim=1)
        return -objective_N.sum() / self.num_sequences, counts

    def _check(
        self, objective_N: torch.Tensor, clipped_NT: torch.Tensor, logprobs_NT: torch.Tensor
    ) -> None:
        """Refuse what a loss of a user's own returns in another form."""
        shape, expected = objective_N.shape, logprobs_NT.shape
        is_differentiable = objective_N.requires_grad or not logprobs_NT.requires_grad
        if shape != expected[:1] or clipped_NT.shape != expected or not is_differentiable:
            raise DataError(
                f"loss.kind {self.loss.kind} returned an objective of shape {tuple(shape)}, "
                f"{'' if is_differentiable else 'not '}differentiable, and a mask of "
                f"{tuple(clipped_NT.shape)}; for log-probabilities of {tuple(expected)} it is a "
                f"differentiable number for each of {expected[0]} sequences, and a mask of "
                f"{tuple(expected)}"
            )


def policy_loss(
    settings: RLSettings, num_sequences: float, terms: tuple[TermSettings, ...]
) -> UpdateLoss:
    """Choose the policy loss of a mini-batch, and the terms that act beside it."""
    return UpdateLoss(settings.loss, num_sequences, terms)
