"""IcePop: a token weighs the ratio of trainer and rollout engine, and nothing outside of a band.

Source: Ring-1T; GLM-5 has the band [0.5, 5].
"""

from typing import ClassVar

from pydantic import Field

from tasks.algorithms.terms.protocol import EngineGap, StepEffect, StepSignal, Term
from tasks.algorithms.terms.ratios import ratios, share_of


class IcePop(Term):
    """The ratio inside of a band, else 0."""

    engine_gap: ClassVar[EngineGap] = EngineGap.WEIGHS

    floor: float = Field(default=0.5, gt=0.0, le=1.0, description="tokens below weigh 0; GLM-5 0.5")
    cap: float = Field(default=5.0, gt=1.0, description="tokens above weigh 0; GLM-5 5")

    def weigh(self, step: StepSignal) -> StepEffect:
        """Weigh by the ratio, and tokens outside of the band by 0."""
        ratio_NT = ratios(step)
        outside_NT = ((ratio_NT < self.floor) | (ratio_NT > self.cap)) & step.kept_NT
        return StepEffect(
            weights_NT=ratio_NT.masked_fill(outside_NT, 0.0),
            metrics={"correction/masked_share": share_of(outside_NT, step)},
        )
