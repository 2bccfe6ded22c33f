"""RLOO's advantages (arXiv 2402.14740)."""

from typing import ClassVar

import torch

from tasks.algorithms.advantages.grouped import group_advantages
from tasks.algorithms.advantages.protocol import Advantage


class RLOO(Advantage):
    """Subtract the mean of the other responses.

    The unbiased form of `centred`, which it exceeds by G / (G - 1). A response without others to
    compare it with gets 0.
    """

    reads_floor: ClassVar[bool] = False
    ignores_size: ClassVar[bool] = True

    def estimate(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Compare every response with the others of its group."""
        whole_PG = group_advantages(
            scores_PG, penalties_PG, valid_PG, std_floor=std_floor, scale_by_std=False
        )
        num_P1 = valid_PG.sum(dim=1, keepdim=True)
        return whole_PG * num_P1 / (num_P1 - 1).clamp(min=1)
