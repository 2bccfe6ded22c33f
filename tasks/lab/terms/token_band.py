"""A band for the ratios of single tokens: a response with any token outside weighs 0.

As in SkyRL ([1e-4, 100]), beside a geometric band.
Measured: with [0.99, 1.01] for the geometric mean, no difference is shown (-1.1 points
[-2.9, +0.7] at equal steps, study `masks`).
"""

from typing import ClassVar

from pydantic import Field

from tasks.algorithms.terms.protocol import EngineGap, StepEffect, StepSignal, Term
from tasks.algorithms.terms.ratios import ratios, without_responses


class TokenBand(Term):
    """Leave out responses by any of their tokens."""

    engine_gap: ClassVar[EngineGap] = EngineGap.MASKS

    low: float = Field(default=1e-4, ge=0.0, le=1.0, description="smallest ratio; SkyRL 1e-4")
    high: float = Field(default=100.0, ge=1.0, description="largest ratio; SkyRL 100")

    def weigh(self, step: StepSignal) -> StepEffect:
        """Weigh all tokens of a response with a token outside of the band by 0."""
        ratio_NT = ratios(step)
        outside_N = ((ratio_NT < self.low) | (ratio_NT > self.high)).any(dim=1)
        share = int(outside_N.sum()) / max(1, len(outside_N))
        return StepEffect(
            weights_NT=without_responses(outside_N, step),
            metrics={"correction/outside_token_band": share},
        )
