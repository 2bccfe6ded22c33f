"""Select the policy loss from the settings."""

from dataclasses import dataclass

import torch

from data_schemas.rl_settings import LossSettings, PolicyLoss, RatioMode
from tasks.algorithms.losses import cispo, dapo, dr_grpo, espo, grpo, gspo
from tasks.algorithms.losses.surrogate import DETACHED, Plan, RatioForm
from tasks.algorithms.token_budget import apply_budget


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Totals of the whole step that a plan needs; rows without gradient are included."""

    num_sequences: int
    num_tokens: int
    """Response tokens."""
    max_new_tokens: int
    """Longest response that may be sampled; Dr. GRPO's constant."""
    updates: tuple[torch.Tensor, ...]
    """Rows of every update, over all ranks."""
    seed: int
    """Seed of C3PO's draw; different for every step."""
    token_budget: int = 0
    """C3PO's Phi of every update, over all ranks; 0 = all tokens."""


def whole_step(mask_NT: torch.Tensor, token_budget: int = 0) -> StepTotals:
    """Treat these rows as the whole step, trained in one update."""
    lengths_N = mask_NT.sum(dim=1)
    return StepTotals(
        num_sequences=len(mask_NT),
        num_tokens=int(lengths_N.sum()),
        max_new_tokens=int(lengths_N.max()) if len(lengths_N) else 0,
        updates=(torch.arange(len(mask_NT)),),
        seed=0,
        token_budget=token_budget,
    )


def plan(
    settings: LossSettings,
    entropy_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    vocabulary: int,
    step: StepTotals | None = None,
) -> Plan:
    """Compute the plan of the selected loss for the tokens of a step.

    Args:
        entropy_NT: full-vocabulary entropy under pi_old, nats.
        mask_NT: response tokens.
        step: None treats the rows as the whole step.
    """
    step = whole_step(mask_NT) if step is None else step
    whole = _plan(settings, entropy_NT, mask_NT, vocabulary=vocabulary, step=step)
    if step.token_budget == 0:
        return whole
    return apply_budget(
        whole,
        mask_NT,
        budget=step.token_budget,
        truncate_last=settings.truncate_last,
        num_sequences=step.num_sequences,
        updates=step.updates,
        seed=step.seed,
    )


def _plan(
    settings: LossSettings,
    entropy_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    vocabulary: int,
    step: StepTotals,
) -> Plan:
    ranges = {"clip_low": settings.clip_low, "clip_high": settings.clip_high}
    match settings.kind:
        case PolicyLoss.ESPO:
            return espo.plan(entropy_NT, mask_NT, settings, vocabulary=vocabulary)
        case PolicyLoss.GSPO:
            return gspo.plan(mask_NT, **ranges)
        case PolicyLoss.GRPO:
            return grpo.plan(mask_NT, **ranges)
        case PolicyLoss.DR_GRPO:
            return dr_grpo.plan(mask_NT, max_new_tokens=step.max_new_tokens, **ranges)
        case PolicyLoss.DAPO:
            return dapo.plan(
                mask_NT, num_sequences=step.num_sequences, num_tokens=step.num_tokens, **ranges
            )
        case PolicyLoss.CISPO:
            return cispo.plan(
                mask_NT,
                num_sequences=step.num_sequences,
                num_tokens=step.num_tokens,
                clip_high=settings.clip_high,
            )


def ratio_mode(settings: LossSettings) -> RatioForm:
    """Return how ratios are formed: ESPO's setting, CISPO's detached weight, else gspo_token."""
    match settings.kind:
        case PolicyLoss.ESPO:
            return settings.ratio
        case PolicyLoss.CISPO:
            return DETACHED
        case _:
            return RatioMode.GSPO_TOKEN


def scales_by_std(settings: LossSettings) -> bool:
    """Return whether advantages are divided by the group's standard deviation (not in Dr. GRPO)."""
    return settings.kind is not PolicyLoss.DR_GRPO
