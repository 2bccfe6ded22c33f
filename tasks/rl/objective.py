"""The arithmetic of a step between scores and loss: pure, so that a replay can repeat it.

Advantages are made in batch.py. Letters: N sequences, T tokens.
"""

import math
from dataclasses import dataclass, replace

import torch

from data_schemas.reports import Decision, GateRecord
from data_schemas.rl_settings import Correction, LossSettings, MismatchSettings, RLSettings
from data_schemas.rollouts import TokenUse
from tasks.algorithms.covariance import KL_WEIGHT, covariances, drawn_in_band, largest
from tasks.algorithms.losses import table
from tasks.algorithms.losses.kl import kl_penalty
from tasks.algorithms.losses.protocol import Plan, StepTotals
from tasks.algorithms.losses.router_shift import SHIFT
from tasks.algorithms.mismatch import correction_weights, is_stale
from tasks.algorithms.token_budget import SEED_STRIDE, kept_tokens
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.errors import DataError
from tasks.rl.batch import StepBatch


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


def corrections(
    settings: RLSettings, decision: GateRecord, batch: StepBatch, old: TokenScores
) -> tuple[torch.Tensor, dict[str, float]]:
    """Importance weights [N, T] by the gate's decision: 1 if the step proceeds uncorrected.

    A step whose k3 is above the bound is corrected by TIS where the settings choose no weight.
    """
    mismatch = settings.engines.mismatch
    if decision.decision is not Decision.CORRECT:
        mismatch = MismatchSettings()
    elif mismatch.correction is Correction.OFF and (
        decision.k3 > mismatch.correct_above or not mismatch.acts_on_every_step
    ):
        mismatch = mismatch.model_copy(update={"correction": Correction.TIS})
    return correction_weights(
        old.logprobs_NT,
        batch.tokens.columns["rollout_logprobs"],
        batch.tokens.response_NT,
        mismatch,
    )


def entropy_control(
    settings: RLSettings, batch: StepBatch, old: TokenScores, advantages_NT: torch.Tensor, step: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Choose the tokens [N, T] that Clip-Cov leaves out and those that KL-Cov holds.

    Returns:
        Weights, 0 where Clip-Cov leaves a token out, else 1; None without KL-Cov.
    """
    loss, mask_NT = settings.loss, batch.tokens.response_NT
    weights_NT = torch.ones(mask_NT.shape)
    if not (loss.clip_cov or loss.kl_cov):
        return weights_NT, None
    covariance_NT = covariances(old.logprobs_NT, advantages_NT, mask_NT)
    if loss.clip_cov:
        seed = step_seed(settings, step)
        drawn_NT = drawn_in_band(covariance_NT, mask_NT, loss.clip_cov, seed)
        weights_NT = weights_NT.masked_fill(drawn_NT, 0.0)
    held_NT = largest(covariance_NT, mask_NT, loss.kl_cov) if loss.kl_cov else None
    return weights_NT, held_NT


def policy_plan(
    settings: RLSettings,
    batch: StepBatch,
    old: TokenScores,
    rows: tuple[torch.Tensor, ...],
    *,
    vocabulary: int,
    step: int,
) -> Plan:
    """Compute groups, clip ranges and weights of every token before the first update."""
    return table.plan(
        settings.loss,
        old.entropy_NT,
        batch.tokens.response_NT,
        vocabulary=vocabulary,
        step=_totals(settings, batch, rows, step),
    )


def kept_by_budget(
    settings: RLSettings, batch: StepBatch, rows: tuple[torch.Tensor, ...], step: int
) -> torch.Tensor:
    """Mark the response tokens [N, T] that C3PO's budget keeps; all without a budget."""
    totals = _totals(settings, batch, rows, step)
    return kept_tokens(batch.tokens.response_NT, totals, settings.loss.truncate_last)


def _totals(
    settings: RLSettings, batch: StepBatch, rows: tuple[torch.Tensor, ...], step: int
) -> StepTotals:
    return StepTotals(
        num_sequences=batch.num_sequences,
        num_tokens=batch.num_tokens,
        max_new_tokens=settings.max_new_tokens,
        updates=rows,
        seed=step_seed(settings, step),
        token_budget=token_budget(settings),
    )


def without_cut(training: TokenBatch, kept_NT: torch.Tensor) -> TokenBatch:
    """End every sequence at its last token that the budget keeps.

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
    """Leave the sequences of which the budget keeps nothing out of every update."""
    return tuple(part[kept_NT[part].any(dim=1)] for part in rows)


def without_weight(
    settings: RLSettings,
    tokens: TokenBatch,
    advantages_NT: torch.Tensor,
    correction_NT: torch.Tensor,
    plan: Plan,
    kept_NT: torch.Tensor,
    old_NT: torch.Tensor,
) -> dict[TokenUse, torch.Tensor]:
    """Mark the tokens [N, T] that have no weight in the policy's surrogate, by the reason.

    A token is trained if plan weight x |advantage x correction| > 0, and if sampling could have
    drawn another one. One without an advantage is named only where an auxiliary term acts on it;
    else it is what its group is. What `loss.stale_below` leaves out is judged by the policy before
    the step, `old_NT`: its first update. Later ones judge again, and count in `policy/stale_share`.
    """
    signed_NT = kept_NT & (advantages_NT != 0)
    masked_NT = signed_NT & (correction_NT == 0)
    if settings.loss.stale_below:
        stale_N = is_stale(
            old_NT,
            tokens.columns["rollout_logprobs"],
            advantages_NT * correction_NT,
            kept_NT & (plan.weights_NT > 0),
            settings.loss.stale_below,
        )
        masked_NT |= signed_NT & stale_N[:, None]
    return {
        TokenUse.CUT: tokens.response_NT & ~kept_NT,
        TokenUse.MASKED: masked_NT,
        TokenUse.DROPPED: signed_NT & ~masked_NT & (plan.weights_NT <= 0),
        TokenUse.SINGLETON: signed_NT & ~masked_NT & (plan.weights_NT > 0) & tokens.alone_NT,
        TokenUse.REGULARISED: kept_NT & ~signed_NT & settings.loss.auxiliary.is_on,
    }


def token_budget(settings: RLSettings) -> int:
    """Return C3PO's Phi, the tokens of an update over all ranks; 0 = all tokens.

    The published 409,600 are a rank's: of 512 prompts x 16 responses a rank of 256 has 32, so Phi
    is 12,800 tokens for every response that an update is generated from. In this unit it depends
    neither on the number of ranks nor on the batch, and it is the same in every step.
    A budget that is set is at least one token.
    """
    if settings.loss.budget_per_response == 0.0:
        return 0
    num_responses = settings.prompts_per_step * settings.group_size / settings.num_mini_batches
    return max(1, round(settings.loss.budget_per_response * num_responses))


def loss_columns(
    old: TokenScores,
    advantages_NT: torch.Tensor,
    plan: Plan,
    reference_NT: torch.Tensor | None,
    rollout_NT: torch.Tensor | None = None,
    held_NT: torch.Tensor | None = None,
) -> dict[str, torch.Tensor]:
    """Name the batch columns that the loss reads in addition to the current log-probs.

    Args:
        old: log-probs that the ratio is formed with.
        advantages_NT: times the correction weights.
        plan: groups, clip ranges and weights.
        reference_NT: log-probs of the phase's start model, where the loss asks for a KL to it.
        rollout_NT: log-probs of the rollout engine, where the loss leaves out stale responses.
        held_NT: tokens that KL-Cov keeps near the old policy.
    """
    columns = {"old_logprobs": old.logprobs_NT, "advantages": advantages_NT} | plan.columns()
    more = {
        "reference_logprobs": reference_NT,
        "rollout_logprobs": rollout_NT,
        "held": held_NT,
    }
    return columns | {name: column for name, column in more.items() if column is not None}


@dataclass(frozen=True, slots=True)
class UpdateLoss:
    """The policy loss of a mini-batch in the form of `LossFn`; picklable for other ranks."""

    settings: LossSettings
    num_sequences: float
    """Of the mini-batch."""

    def __call__(
        self, logprobs_NT: torch.Tensor, batch: TokenBatch
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the loss of a micro-batch and its counts; those of a mini-batch add up."""
        column, beta = batch.columns, self.settings.auxiliary.kl
        plan = Plan(column["groups"], column["weights"], column["clip_low"], column["clip_high"])
        old_NT = column["old_logprobs"]
        outside_NT = plan.weights_NT <= 0  # padding there may be anything
        policy_advantages_NT = column["advantages"]
        counts = {}
        if self.settings.stale_below:
            stale_N = is_stale(
                logprobs_NT,
                column["rollout_logprobs"],
                policy_advantages_NT,
                ~outside_NT,
                self.settings.stale_below,
            )
            policy_advantages_NT = policy_advantages_NT.masked_fill(stale_N[:, None], 0.0)
            counts["stale_share"] = float(stale_N.sum()) / self.num_sequences
        ratio_NT = logprobs_NT  # over the old ones
        if SHIFT in column:
            shift_NT = column[SHIFT].clamp(min=math.log(self.settings.router_shift))
            ratio_NT = logprobs_NT + shift_NT
            trained_NT = ~outside_NT & (policy_advantages_NT != 0)
            counts["router_shift"] = float(shift_NT.exp()[trained_NT].sum())
        objective_N, clipped_NT = table.find(self.settings).objective(
            ratio_NT.masked_fill(outside_NT, 0.0),
            old_NT.masked_fill(outside_NT, 0.0),
            policy_advantages_NT,
            plan,
        )
        self._check(objective_N, clipped_NT, logprobs_NT)
        counts |= {
            "clipped_tokens": float(clipped_NT.sum()),
            "tokens": float((~outside_NT & (policy_advantages_NT != 0)).sum()),
        }
        if SHIFT in column:  # a factor below 1 reaches the lower clip earlier than the upper one
            falling_NT = clipped_NT & (policy_advantages_NT < 0)
            counts["clipped_falling_tokens"] = float(falling_NT.sum())
        if "held" in column:
            away_NT = (logprobs_NT - old_NT).masked_fill(~column["held"], 0.0).abs()
            objective_N = objective_N - KL_WEIGHT * (away_NT * plan.weights_NT).sum(dim=1)
        if beta > 0.0:
            reference_NT = column["reference_logprobs"]
            drift_N = kl_penalty(logprobs_NT, old_NT, reference_NT, plan.weights_NT)
            objective_N = objective_N - beta * drift_N
            counts["kl"] = float(drift_N.detach().sum()) / self.num_sequences
        return -objective_N.sum() / self.num_sequences, counts

    def _check(
        self, objective_N: torch.Tensor, clipped_NT: torch.Tensor, logprobs_NT: torch.Tensor
    ) -> None:
        """Refuse what a loss of a user's own returns in another form."""
        shape, expected = objective_N.shape, logprobs_NT.shape
        is_differentiable = objective_N.requires_grad or not logprobs_NT.requires_grad
        if shape != expected[:1] or clipped_NT.shape != expected or not is_differentiable:
            raise DataError(
                f"loss.kind {self.settings.kind} returned an objective of shape {tuple(shape)}, "
                f"{'' if is_differentiable else 'not '}differentiable, and a mask of "
                f"{tuple(clipped_NT.shape)}; for log-probabilities of {tuple(expected)} it is a "
                f"differentiable number for each of {expected[0]} sequences, and a mask of "
                f"{tuple(expected)}"
            )


def policy_loss(settings: RLSettings, num_sequences: float) -> UpdateLoss:
    """Choose the policy loss of a mini-batch."""
    return UpdateLoss(settings.loss, num_sequences)
