"""What a policy loss is: its settings, what it needs of a step, and the objective it maximises.

Built-in losses are entries of tasks/algorithms/names.py. `loss.kind: my_loss.py:Name` names one of
a user's own, of the clipped family (surrogate.py) or of any other. Everything around it stays:
advantages, and the terms that act beside it (algorithms/terms).
Letters: N sequences, T tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from data_schemas.machine_settings import Settings


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """Groups, weights and clip ranges of a step; all [N, T], zero outside the mask."""

    groups_NT: torch.Tensor
    """int64 group number within the sequence."""
    weights_NT: torch.Tensor
    """Token weights >= 0; for a mean over the sequence they sum to 1 per sequence."""
    clip_low_NT: torch.Tensor
    clip_high_NT: torch.Tensor

    def columns(self) -> dict[str, torch.Tensor]:
        """Return the plan as columns of a TokenBatch."""
        return {
            "groups": self.groups_NT,
            "weights": self.weights_NT,
            "clip_low": self.clip_low_NT,
            "clip_high": self.clip_high_NT,
        }


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Totals of the whole step that a plan needs; rows without gradient are included."""

    num_sequences: int
    num_tokens: int
    """Response tokens."""
    max_new_tokens: int
    """Longest response that may be sampled; Dr. GRPO's constant."""
    updates: tuple[torch.Tensor, ...]
    """Rows of every update, over all ranks."""
    seed: int
    """Different for every step."""
    responses_per_update: float
    """Responses that an update is generated from, over all ranks."""


@dataclass(frozen=True, slots=True)
class StepTokens:
    """The tokens of a step under pi_old, before its first update."""

    entropy_NT: torch.Tensor
    """Full-vocabulary entropy, nats."""
    mask_NT: torch.Tensor
    """Response tokens, bool."""
    vocabulary: int
    totals: StepTotals


class Loss(Settings, ABC):
    """A policy loss: its fields are its settings, the keys beside `loss.kind`; all have defaults.

    Contract: both methods are pure. `objective` may see any rows of the step, in any order and
    split; a token of weight 0 changes nothing.
    """

    needs_entropy: ClassVar[bool] = False
    """The plan reads the entropies of every token, which only the trainer's own pass knows."""
    acts_on_all: ClassVar[bool] = False
    """Responses without an advantage have a gradient, too, so that they stay in the batch."""
    token_advantages: ClassVar[bool] = True
    """Advantages may differ between the tokens of a response."""
    advantage: ClassVar[str] = "grpo"
    """The estimator that it was published with: a built-in name, or a reference."""
    off_policy: ClassVar[frozenset[str]] = frozenset()
    """Settings that change nothing where every update starts from the old policy."""

    @property
    def clip_range(self) -> tuple[float, float] | None:
        """How far below and above the old policy a token may move; None without such bounds."""
        return None

    @property
    def ignored(self) -> Mapping[str, str]:
        """Name settings of its own that others of its own make void, with the reason."""
        return {}

    @abstractmethod
    def plan(self, step: StepTokens) -> TokenPlan:
        """Weigh the tokens of a step, once, from pi_old."""

    @abstractmethod
    def objective(
        self,
        logprobs_NT: torch.Tensor,
        old_logprobs_NT: torch.Tensor,
        advantages_NT: torch.Tensor,
        plan: TokenPlan,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the objective of every sequence [N], with gradient, and the clipped tokens [N, T].

        Args:
            logprobs_NT: under the policy in training, with gradient.
            old_logprobs_NT: under pi_old.
            advantages_NT: times the importance weights against mismatch.
            plan: rows of what `plan` returned, as the terms of the step left it.
        """


class PairLoss(Settings, ABC):
    """DPO with weights of tokens: its fields are its settings, which all have defaults.

    The weights are constants of an update: they have no gradient, and are the same for the policy
    and for the reference.
    """

    needs_states: ClassVar[bool] = False
    """The weights depend on hidden states of the policy, which the trainer has to show."""

    @abstractmethod
    def token_weights(self, mask_NT: torch.Tensor, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """Weigh the tokens of pairs that stand chosen then rejected.

        Args:
            mask_NT: response tokens, bool.
            states: for each sequence [R, H]: the last hidden state that predicts each response
                token; empty unless `needs_states`.

        Returns:
            Weights [N, T] >= 0 in float32, 0 outside the mask.
        """
