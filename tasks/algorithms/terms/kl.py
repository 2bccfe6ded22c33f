"""KL penalty per token against a reference policy.

Source: Schulman's k3, exp(d) - 1 - d with d = log ref - log pi; in the objective of GRPO
and of Ring-lite eq. 2, where it is weighted like the token's surrogate.
Differs: k3 is multiplied by the importance ratio pi / pi_old. Its mean over samples of
pi_old is then KL(pi || ref), with the gradient of KL(pi || ref); without the ratio the
gradient is that of KL(ref || pi). On-policy both have the same value.
Letters: N sequences, T tokens.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field

from tasks.algorithms.losses.surrogate import MAX_LOG_RATIO
from tasks.algorithms.terms.protocol import (
    StepEffect,
    StepSignal,
    Term,
    UpdateEffect,
    UpdateSignal,
    mean_over,
    regularised,
)

REFERENCE = "reference_logprobs"
"""Column: log-probabilities of the reference."""

MAX_GAP = 60.0
"""Largest d of a value, nats: e^60 times the largest ratio, e^10, is a number in fp32."""


class KL(Term):
    """KL to the phase's start model, beside the policy loss."""

    acts_on_all: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = True

    weight: float = Field(default=1e-3, gt=0.0, description="beta, per nat; Ring-lite 1e-3")

    def weigh(self, step: StepSignal) -> StepEffect:
        """Hold the reference for the updates; book the tokens without an advantage."""
        # A step without sequences has no pass of the reference, and no update that reads it.
        held = {} if step.reference_NT is None else {REFERENCE: step.reference_NT}
        return StepEffect(held=held, uses=regularised(step).uses)

    def adjust(self, update: UpdateSignal) -> UpdateEffect:
        """Subtract the penalty of every sequence."""
        drift_N = kl_penalty(
            update.logprobs_NT, update.old_NT, update.columns[REFERENCE], update.weights_NT
        )
        return UpdateEffect(
            penalty_N=self.weight * drift_N,
            counts={"kl": float(drift_N.detach().sum()) / update.num_sequences},
        )

    def report(self, updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """KL to the start model, without its weight."""
        return {"policy/kl": mean_over(updates, "kl")}


def k3(logprobs_NT: torch.Tensor, reference_NT: torch.Tensor) -> torch.Tensor:
    """Estimate KL(pi || ref) at every sampled token; never negative."""
    gap_NT = (reference_NT - logprobs_NT).clamp(max=MAX_GAP)
    return torch.expm1(gap_NT) - gap_NT


def kl_penalty(
    logprobs_NT: torch.Tensor,
    old_logprobs_NT: torch.Tensor,
    reference_NT: torch.Tensor,
    weights_NT: torch.Tensor,
) -> torch.Tensor:
    """Weighted KL of every sequence [N], to be added to its loss times beta.

    The gradient by a log-probability is ratio * (log pi - log ref), whatever the distance.

    Args:
        logprobs_NT: under the policy in training, with gradient.
        old_logprobs_NT: under the policy that generated the tokens.
        reference_NT: under the reference, at the same temperature.
        weights_NT: the plan's token weights; tokens of weight 0 are ignored.
    """
    outside_NT = weights_NT <= 0
    moving_NT = logprobs_NT.masked_fill(outside_NT, 0.0)
    still_NT = moving_NT.detach()
    reference_NT = reference_NT.masked_fill(outside_NT, 0.0)
    log_ratio_NT = still_NT - old_logprobs_NT.masked_fill(outside_NT, 0.0)
    ratio_NT = log_ratio_NT.clamp(max=MAX_LOG_RATIO).exp()
    # In closed form: of ratio * k3 the exponentials cancel. If a clamp takes the derivative of one
    # factor away and leaves that of the other, the token is pushed further off.
    slope_NT = ratio_NT * (still_NT - reference_NT)
    value_NT = ratio_NT * k3(still_NT, reference_NT) + slope_NT * (moving_NT - still_NT)
    return (weights_NT * value_NT).sum(dim=1)
