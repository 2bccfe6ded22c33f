"""Truncated importance sampling: a token weighs the ratio of trainer and rollout engine, capped.

Source: Ionides, "Truncated Importance Sampling" (JCGS 17, 2008); of trainer and rollout engine, Yao
et al., https://fengyao.notion.site/off-policy-rl (2025). Token level, cap about 2 (one report
found 1.5 more stable). The gate adds it to steps whose mismatch is above
`engines.mismatch.correct_above`, unless a term that is listed weighs by the ratio; one that is
listed acts on every step.
"""

from typing import ClassVar

from pydantic import Field

from tasks.algorithms.terms.protocol import EngineGap, StepEffect, StepSignal, Term
from tasks.algorithms.terms.ratios import ratios, share_of


class TIS(Term):
    """Truncated importance sampling."""

    engine_gap: ClassVar[EngineGap] = EngineGap.WEIGHS

    cap: float = Field(default=2.0, gt=1.0, description="largest weight")

    def weigh(self, step: StepSignal) -> StepEffect:
        """Weigh by the ratio, at most `cap`."""
        ratio_NT = ratios(step)
        return StepEffect(
            weights_NT=ratio_NT.clamp(max=self.cap),
            metrics={"correction/truncated_share": share_of(ratio_NT > self.cap, step)},
        )
