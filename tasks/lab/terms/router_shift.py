"""RSPO: a token whose experts the router has come to score otherwise moves the policy less.

Source: arXiv 2510.23027. The policy ratio is multiplied by gamma = exp(-mean |log s - log s_old|)
over the replayed experts, without gradient and at least 0.8, before it is clipped and aggregated
(algorithms/router_shift.py). For a negative advantage the lower clip is reached earlier. It costs a
forward pass before the updates.
Measured: no difference is shown (-0.4 points [-2.3, +1.3] at equal tokens, study `masks`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from tasks.algorithms.router_shift import SHIFT
from tasks.algorithms.terms.protocol import Term, UpdateEffect, UpdateSignal


class RouterShift(Term):
    """Multiply policy ratios by the shift of the router's scores."""

    needs_router: ClassVar[bool] = True
    needs_router_scores: ClassVar[bool] = True
    off_policy: ClassVar[bool] = True

    least: float = Field(
        default=0.8, gt=0.0, lt=1.0, description="least factor of a policy ratio; theirs 0.8"
    )

    def adjust(self, update: UpdateSignal) -> UpdateEffect:
        """Add log gamma to the log-ratio."""
        shift_NT = update.columns[SHIFT].clamp(min=math.log(self.least))
        trained_NT = (update.weights_NT > 0) & (update.advantages_NT != 0)
        return UpdateEffect(
            log_ratio_NT=shift_NT,
            counts={"router_shift": float(shift_NT.exp()[trained_NT].sum())},
            # A factor below 1 reaches the lower clip earlier than the upper one.
            clipped={"clipped_falling_tokens": update.advantages_NT < 0},
        )

    def report(self, updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Mean factor of the ratios, and the share of tokens that it clips at A < 0."""
        if not updates:
            return {}
        tokens = max(1.0, sum(one["tokens"] for one in updates))
        falling = sum(one["clipped_falling_tokens"] for one in updates)
        return {
            "policy/router_shift": sum(one["router_shift"] for one in updates) / tokens,
            "policy/clip_share_falling": falling / tokens,
        }
