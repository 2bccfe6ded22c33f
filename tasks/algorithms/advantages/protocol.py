"""What an advantage estimator is: its settings, what it needs, and how it turns rewards around.

Built-in estimators are entries of tasks/algorithms/names.py. `advantage: my_advantage.py:Name`
names one of a user's own; `advantage: {kind: my_advantage.py:Name, power: 2}` gives it settings.
Letters: P problems, G rollouts per problem.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from data_schemas.machine_settings import Settings


class Advantage(Settings, ABC):
    """An estimator: its fields, which all have defaults, are the keys beside `advantage.kind`.

    Contract: `estimate` is pure, and what it returns is finite; what is not valid gets 0 in any
    case. The built-in ones give exact zeros to equal rewards.
    """

    reads_floor: ClassVar[bool] = True
    """It divides by a spread that `zero_variance.std_floor` bounds from below."""
    divides_by_mean: ClassVar[bool] = False
    """Rewards below 0 would turn the advantages around, and a mean of about 0 blow them up."""
    ignores_size: ClassVar[bool] = False
    """What a response is expected to get does not depend on the size of its group, so that groups
    of different sizes can be in one step."""
    follows_loss: ClassVar[bool] = False
    """It stands for the estimator that the policy loss was published with."""

    @abstractmethod
    def estimate(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Return advantages [P, G], finite.

        Args:
            scores_PG: verdict scores; any finite value where not valid.
            penalties_PG: reward shaping; above 0 for short answers with `rewards.length_weight`.
            valid_PG: False where the verifier abstained.
            std_floor: smallest divisor, in reward units.
        """
