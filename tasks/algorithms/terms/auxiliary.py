"""What the trainer adds to the loss, because only it has the logits; defaults are Ring-lite's.

Source: Ring-lite (arXiv 2506.14731) eq. 2; the losses of routers are in router_losses.py. Each
acts on every token, whether or not it has an advantage.
"""

from typing import ClassVar

from pydantic import Field

from tasks.algorithms.terms.protocol import (
    Auxiliary,
    StepEffect,
    StepSignal,
    Term,
    regularised,
)


class TrainerTerm(Term):
    """A weight that the trainer applies."""

    acts_on_all: ClassVar[bool] = True

    weight: float

    def weigh(self, step: StepSignal) -> StepEffect:
        """Book the tokens without an advantage."""
        return regularised(step)


class Entropy(TrainerTerm):
    """A bonus for the entropy of the policy."""

    weight: float = Field(default=5e-4, gt=0.0, description="per nat; Ring-lite 5e-4")

    @property
    def auxiliary(self) -> Auxiliary:
        """The bonus."""
        return Auxiliary(entropy=self.weight)


class Balance(TrainerTerm):
    """A loss of routers that load experts unequally."""

    needs_router: ClassVar[bool] = True

    weight: float = Field(default=1e-5, gt=0.0, description="of the load; Ring-lite 1e-5")

    @property
    def auxiliary(self) -> Auxiliary:
        """The loss of the load."""
        return Auxiliary(balance=self.weight)


class RouterZ(TrainerTerm):
    """A loss of routers with large logits."""

    needs_router: ClassVar[bool] = True

    weight: float = Field(default=1e-7, gt=0.0, description="of the logits; Ring-lite 1e-7")

    @property
    def auxiliary(self) -> Auxiliary:
        """The loss of the logits."""
        return Auxiliary(router_z=self.weight)
