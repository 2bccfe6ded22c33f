"""The estimator that the policy loss was published with."""

from typing import ClassVar

import torch

from tasks.algorithms.advantages.protocol import Advantage


class LossAdvantage(Advantage):
    """Stands for `Loss.advantage` (losses/protocol.py), which table.py puts in its place."""

    follows_loss: ClassVar[bool] = True

    def estimate(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Never called."""
        raise AssertionError("the loss names the estimator")
