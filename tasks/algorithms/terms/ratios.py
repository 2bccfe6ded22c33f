"""Ratios of trainer and rollout engine in the probability of the same token.

Where they differ, weights and masks correct for it: TIS and IcePop here, bands for whole responses
in the laboratory (tasks/lab/terms). R3 removes most of the gap at its source; these correct the
rest. Weights are constants. They multiply the advantages, so the groups and clip ranges of the loss
remain those of pi_old. What is masked still counts in every divisor: a mask must not raise the
weight of the rest. Differs: no mask by the product of ratios (TRL's default), which leaves out long
responses first.
Letters: N sequences, T tokens.
"""

import torch

from tasks.algorithms.losses.surrogate import MAX_LOG_RATIO
from tasks.algorithms.terms.protocol import StepSignal


def log_ratios(step: StepSignal) -> torch.Tensor:
    """Return log(trainer / rollout engine) [N, T] before any update, nats; 0 outside `kept_NT`."""
    return (step.rollout_prompt_NT - step.rollout_NT).detach().masked_fill(~step.kept_NT, 0.0)


def ratios(step: StepSignal) -> torch.Tensor:
    """Return trainer / rollout engine [N, T]; 1 outside `kept_NT`."""
    return log_ratios(step).clamp(max=MAX_LOG_RATIO).exp()


def share_of(marks_NT: torch.Tensor, step: StepSignal) -> float:
    """Return the share of the step's tokens that are marked; 0 without tokens."""
    return int((marks_NT & step.kept_NT).sum()) / max(1, int(step.kept_NT.sum()))


def without_responses(outside_N: torch.Tensor, step: StepSignal) -> torch.Tensor:
    """Weigh the tokens [N, T] of some responses with 0, and all others with 1."""
    return torch.ones(step.kept_NT.shape).masked_fill(outside_N[:, None] & step.kept_NT, 0.0)
