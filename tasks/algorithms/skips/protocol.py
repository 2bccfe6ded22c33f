"""What a rule of skips is: its settings, how likely it rolls a prompt out, and what that weighs.

Built-in rules are entries of tasks/algorithms/names.py. `skip: {mode: my_skip.py:Name}` names one
of a user's own.

A rule that weighs keeps the expected gradient of the prompts that were offered. An offered prompt i
with the gradient g_i is kept with probability k_i and then weighs 1 / k_i (Horvitz and Thompson
1952). Prompts are offered until r of them are kept, so that their number N is random: the mean over
the kept groups times (r - 1) / (N - 1) has the expectation of the mean over all that are offered
(Haldane 1945, inverse sampling), where r / N would be too large.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from data_schemas.machine_settings import Settings


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known of a prompt before its next group."""

    zero_variance: float
    """Predicted probability that the group has zero variance; 0 without a record."""
    flat_groups: int = 0
    """Its newest groups in a row that were all right or all wrong."""


class Skip(Settings, ABC):
    """A rule: its fields, which all have defaults, are the keys beside `skip.mode`.

    Contract: both methods are pure.
    """

    weighs: ClassVar[bool] = False
    """Kept groups make up for skipped ones. A rule without weights moves the shares of domains."""

    @property
    def is_idle(self) -> bool:
        """Whether it keeps every prompt, so that nothing needs to be predicted."""
        return False

    @abstractmethod
    def keep_probability(self, prospect: Prospect) -> float:
        """Return the probability, 0 to 1, with which a prompt is rolled out."""

    def weight(self, probability: float) -> float:
        """Return the weight of a group that was kept with a probability above 0."""
        return 1.0


def inverse_sampling(kept: int, skipped: int) -> float:
    """Return the factor of the weights of a draw that ended with its last kept prompt.

    Args:
        kept: prompts, 1 or more. A single one has 1 / N, which is too large: nothing that is made
            of N alone would have the right expectation.
        skipped: prompts that were offered and not kept.
    """
    offered = kept + skipped
    return (kept - 1) / (offered - 1) if kept > 1 else 1.0 / offered
