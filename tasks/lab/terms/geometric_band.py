"""A band for the geometric mean ratio of trainer and rollout engine: responses outside weigh 0.

As in verl ([0.999, 1.001]), NeMo-RL, slime and SkyRL ([0.99, 1.01]). One outlier of e^2 among 1,000
tokens stays inside: a token band (token_band.py) finds it.
Measured: verl's band leaves out half of the tokens of stale rollouts, and no difference is shown
(-1.7 points [-3.6, +0.3] at equal tokens, study `masks`).
"""

from typing import ClassVar

from pydantic import Field

from tasks.algorithms.terms.protocol import EngineGap, StepEffect, StepSignal, Term
from tasks.algorithms.terms.ratios import log_ratios, without_responses


class GeometricBand(Term):
    """Leave out responses by their geometric mean ratio."""

    engine_gap: ClassVar[EngineGap] = EngineGap.MASKS

    low: float = Field(default=0.99, ge=0.0, le=1.0, description="SkyRL 0.99; verl 0.999")
    high: float = Field(default=1.01, ge=1.0, description="SkyRL 1.01; verl 1.001")

    def weigh(self, step: StepSignal) -> StepEffect:
        """Weigh all tokens of a response outside of the band by 0; one without a token is 1."""
        sums_N, counts_N = log_ratios(step).sum(dim=1), step.kept_NT.sum(dim=1)
        mean_N = (sums_N / counts_N.clamp(min=1)).exp()
        outside_N = (mean_N < self.low) | (mean_N > self.high)
        share = int(outside_N.sum()) / max(1, len(outside_N))
        return StepEffect(
            weights_NT=without_responses(outside_N, step),
            metrics={"correction/outside_geometric_band": share},
        )
