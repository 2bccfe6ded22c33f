"""The contract of judges, and the record of their calls."""

from collections.abc import Sequence
from typing import Protocol

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Message


class JudgeCalls(FrozenModel):
    """Calls of a judge so far; a ledger charges the difference of two snapshots."""

    asked: int = Field(default=0, ge=0, description="prompts handed over, cached ones not counted")
    failed: int = Field(default=0, ge=0, description="of these, prompts that got no text")
    retried: int = Field(default=0, ge=0, description="further attempts at a prompt already asked")
    cached: int = Field(default=0, ge=0, description="prompts answered from memory")

    def since(self, earlier: "JudgeCalls") -> "JudgeCalls":
        """Return the calls made after `earlier`, a snapshot of the same judge."""
        return JudgeCalls(
            asked=self.asked - earlier.asked,
            failed=self.failed - earlier.failed,
            retried=self.retried - earlier.retried,
            cached=self.cached - earlier.cached,
        )


class Judge(Protocol):
    """Any text model that answers a chat.

    Contract: one reply per prompt, in order; None if the judge returned no text (down, too slow,
    refused), without raising; safe to use from several threads.
    """

    @property
    def name(self) -> str:
        """Return the name of the model, which is recorded with every verdict."""
        ...

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far."""
        ...

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Answer every prompt with greedy decoding."""
        ...
