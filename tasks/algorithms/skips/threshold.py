"""Skip what is predicted to teach nothing (CompassMax, which gives no predictor)."""

from pydantic import Field

from tasks.algorithms.skips.protocol import Prospect, Skip


class SkipThreshold(Skip):
    """Skip every prompt above a probability, without weights.

    What is trained is so another mixture than what was asked for: domains and languages whose
    prompts are solved always or never lose their share.
    """

    above: float = Field(
        default=0.4,
        gt=0.0,
        le=1.0,
        description="skip a prompt if its record and its family's predict a zero-variance group "
        "with more than this probability; 1 = never",
    )

    @property
    def is_idle(self) -> bool:
        """No probability is above 1."""
        return self.above == 1.0

    def keep_probability(self, prospect: Prospect) -> float:
        """All or nothing."""
        return 0.0 if prospect.zero_variance > self.above else 1.0
