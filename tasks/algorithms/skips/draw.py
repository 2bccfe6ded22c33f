"""Skip by a draw, and weigh what is kept (Horvitz and Thompson 1952).

A group with contrast adds a squared gradient v, one without adds none, so a prompt adds (1 - q) v
on average, where q is the predicted probability of zero variance. At equal cost the noise of the
weighted sum is least where prompts are kept in proportion to the root of that: sqrt(1 - q) (Neyman
1934) [I: no paper's].
"""

import math
from typing import ClassVar

from pydantic import Field

from tasks.algorithms.skips.protocol import Prospect, Skip


class SkipDraw(Skip):
    """Keep a prompt with probability sqrt(1 - q), and weigh its group by the inverse."""

    weighs: ClassVar[bool] = True

    cap: float = Field(
        default=5.0,
        ge=1.0,
        description="largest weight of a kept group; what it cuts is bias, and its groups are "
        "counted. 5 cuts where zero variance is more likely than 0.96 [our choice]",
    )

    def keep_probability(self, prospect: Prospect) -> float:
        """Return the root of the probability that the group has contrast."""
        return math.sqrt(min(1.0, max(0.0, 1.0 - prospect.zero_variance)))

    def weight(self, probability: float) -> float:
        """Return 1 / probability, at most `cap`."""
        return min(1.0 / probability, self.cap)
