"""What a term is: its settings, what it needs, and how it acts on the tokens of a step.

A step folds over the terms that `terms` of the settings lists, in their order: each sees what those
before it have left. Built-in ones are entries of tasks/algorithms/names.py;
`kind: my_term.py:Name` is one of a user's own. A term acts twice. `weigh` sees the whole step
before its first update; `adjust` sees every micro-batch of an update, under the policy in training.
Either may stay as it is.

No term is what is part of a log-probability: the sets that truncated sampling drew from are what
both engines renormalise over (kept_sets.py).

Letters: N sequences, T tokens.
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

import torch

from data_schemas.ledgers import TokenUse
from data_schemas.machine_settings import Settings
from tasks.algorithms.losses.protocol import StepTotals, TokenPlan


class EngineGap(IntEnum):
    """What a term does with the difference between trainer and rollout engine; each includes less.

    The two highest act on every step, which the gate so counts as corrected.
    """

    UNUSED = 0
    JUDGES = 1
    """Compares the policy in training with the rollout engine."""
    MASKS = 2
    """Leaves out what the engines disagree on before the first update."""
    WEIGHS = 3
    """Weighs by the ratio of both: the gate adds no weights of its own."""


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """Weights of what the trainer adds to the loss, because only it has the logits; 0 = off."""

    entropy: float = 0.0
    """Bonus per nat."""
    balance: float = 0.0
    """Coefficient of the loss that balances the load of the experts."""
    router_z: float = 0.0
    """Coefficient of the z-loss on the logits of the routers."""

    def __add__(self, other: "Auxiliary") -> "Auxiliary":
        return Auxiliary(
            self.entropy + other.entropy,
            self.balance + other.balance,
            self.router_z + other.router_z,
        )


@dataclass(frozen=True, slots=True)
class StepSignal:
    """The tokens of a step before its first update, as the terms so far left them; all [N, T]."""

    response_NT: torch.Tensor
    """Response tokens, bool."""
    old_NT: torch.Tensor
    """Log-probabilities of the policy before the step, nats."""
    rollout_prompt_NT: torch.Tensor
    """The same behind the prompts that the responses were drawn with."""
    rollout_NT: torch.Tensor
    """The rollout engine's."""
    entropy_NT: torch.Tensor
    """Full-vocabulary entropy of the policy before the step, nats; not a number where the settings
    skip the trainer's pass."""
    reference_NT: torch.Tensor | None
    """Log-probabilities of the phase's start model, where a term needs them."""
    zero_variance_N: torch.Tensor
    """bool: of a group whose rewards are equal, which is trained all the same."""
    correct_N: torch.Tensor
    """bool: solved its problem."""
    totals: StepTotals
    advantages_NT: torch.Tensor
    plan: TokenPlan
    """Groups, clip ranges and weights of the loss."""
    weights_NT: torch.Tensor
    """Factor of the advantages."""
    kept_NT: torch.Tensor
    """Response tokens that are in the step, bool; the others are in no part of the loss."""
    held: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """What the updates read, by column."""
    uses: Mapping[TokenUse, torch.Tensor] = field(default_factory=dict)
    """Tokens by what a term uses them for, beside what weights and `kept_NT` say."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepEffect:
    """How a term acts on a step; what it does not name stays as it is."""

    weights_NT: torch.Tensor | None = None
    """Factor of the advantages, at least 0. The ledger books what has weight 0 as masked; it stays
    in every divisor, because a mask must not raise the weight of the rest."""
    advantages_NT: torch.Tensor | None = None
    plan: TokenPlan | None = None
    kept_NT: torch.Tensor | None = None
    """Tokens that stay in the step, bool; the ledger books the others as cut."""
    held: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """[N, T, ...] tensors that `adjust` finds among the columns, by a name of the term's own."""
    uses: Mapping[TokenUse, torch.Tensor] = field(default_factory=dict)
    """bool; a token has the first use that it is given."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateSignal:
    """A micro-batch of an update, as the terms so far left it; all [N, T]."""

    logprobs_NT: torch.Tensor
    """Under the policy in training, with gradient."""
    ratio_NT: torch.Tensor
    """The same, with what terms have added: the ratio's numerator."""
    old_NT: torch.Tensor
    """Under the policy before the step."""
    advantages_NT: torch.Tensor
    """Times the weights."""
    weights_NT: torch.Tensor
    """The plan's; padding has weight 0, and anything in the other tensors."""
    columns: Mapping[str, torch.Tensor]
    """With what terms hold, and what the trainer has added."""
    num_sequences: float
    """Sequences that the update divides by; counts are divided by it to be shares."""


@dataclass(frozen=True, slots=True)
class UpdateEffect:
    """How a term acts on a micro-batch; what it does not name stays as it is."""

    advantages_NT: torch.Tensor | None = None
    log_ratio_NT: torch.Tensor | None = None
    """Added to the log-ratio before it is clipped, nats."""
    penalty_N: torch.Tensor | None = None
    """Subtracted from the objective of every sequence, with gradient."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Those of the micro-batches of an update add up."""
    clipped: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """bool: how many of these tokens the loss clips is counted under the name."""


class Term(Settings, ABC):
    """A term: its fields are its settings, the keys beside `kind`; all have defaults.

    Contract: all methods are pure. `adjust` may see any rows of the step, in any order and split.
    """

    acts_on_all: ClassVar[bool] = False
    """Responses without an advantage matter to it, so that they stay in the batch."""
    engine_gap: ClassVar[EngineGap] = EngineGap.UNUSED
    needs_entropy: ClassVar[bool] = False
    """It reads the entropies of every token, which only the trainer's own pass knows."""
    needs_reference: ClassVar[bool] = False
    """It reads the log-probabilities of the phase's start model, which is then held as well."""
    needs_router: ClassVar[bool] = False
    """It acts on routers, which a dense model lacks."""
    needs_router_scores: ClassVar[bool] = False
    """It reads how the router scores replayed experts (algorithms/router_shift.py)."""
    trains_zero_variance: ClassVar[bool] = False
    """It gives tokens of groups with equal rewards advantages of their own, so that these groups
    are trained. Such terms are listed first: a teacher and all other terms see what they give."""
    off_policy: ClassVar[bool] = False
    """It changes nothing where every update starts from the old policy."""

    @property
    def auxiliary(self) -> Auxiliary:
        """What the trainer adds to the loss for it."""
        return Auxiliary()

    def weigh(self, step: StepSignal) -> StepEffect:
        """Act on the tokens of a step, once, before its first update."""
        return StepEffect()

    def adjust(self, update: UpdateSignal) -> UpdateEffect:
        """Act on a micro-batch of every update."""
        return UpdateEffect()

    def report(self, updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Make metrics of a step of what its updates counted, `tokens` among it; may be none."""
        return {}


def mean_over(updates: Sequence[Mapping[str, float]], name: str) -> float:
    """Return the mean of a count over the updates of a step; 0 without an update."""
    return sum(one.get(name, 0.0) for one in updates) / max(1, len(updates))


def regularised(step: StepSignal) -> StepEffect:
    """Book the tokens that have no advantage, and on which a term acts all the same."""
    return StepEffect(uses={TokenUse.REGULARISED: step.kept_NT & (step.advantages_NT == 0)})
