"""Dr. GRPO's advantages (arXiv 2503.20783)."""

from typing import ClassVar

import torch

from tasks.algorithms.advantages.grouped import group_advantages
from tasks.algorithms.advantages.protocol import Advantage


class CentredAdvantage(Advantage):
    """Subtract the mean of the group and divide by nothing."""

    reads_floor: ClassVar[bool] = False

    def estimate(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Centre every problem's rewards."""
        return group_advantages(
            scores_PG, penalties_PG, valid_PG, std_floor=std_floor, scale_by_std=False
        )
