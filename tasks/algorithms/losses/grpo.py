"""GRPO: one ratio per token, mean over the tokens of a sequence, then over sequences."""

import torch

from tasks.algorithms.losses.surrogate import Plan


def plan(mask_NT: torch.Tensor, *, clip_low: float, clip_high: float) -> Plan:
    """Make every token its own group; tokens of a sequence weigh the same."""
    inside_NT = mask_NT.float()
    return Plan(
        groups_NT=torch.arange(mask_NT.shape[1]).expand(mask_NT.shape).contiguous(),
        weights_NT=inside_NT / inside_NT.sum(dim=1, keepdim=True).clamp(min=1.0),
        clip_low_NT=clip_low * inside_NT,
        clip_high_NT=clip_high * inside_NT,
    )
