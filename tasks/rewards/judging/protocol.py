"""What a judge promises, and the record of how often it was asked."""

from collections.abc import Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Message


class JudgeCalls(BaseModel):
    """What a judge has done so far; a ledger charges the difference of two of these."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: int = Field(default=0, ge=0, description="prompts handed over, cached ones not counted")
    failed: int = Field(default=0, ge=0, description="of these, prompts that got no text")
    retried: int = Field(default=0, ge=0, description="further attempts at a prompt already asked")
    cached: int = Field(default=0, ge=0, description="prompts answered from memory")

    def since(self, earlier: "JudgeCalls") -> "JudgeCalls":
        """What was done after `earlier`, a snapshot of the same judge."""
        return JudgeCalls(
            asked=self.asked - earlier.asked,
            failed=self.failed - earlier.failed,
            retried=self.retried - earlier.retried,
            cached=self.cached - earlier.cached,
        )


class Judge(Protocol):
    """Any text model that answers a chat.

    Contract: one reply per prompt, in order; None where the judge gave no text (down, too slow,
    refused); it never raises for that; safe to use from several threads.
    """

    @property
    def name(self) -> str:
        """Which model judges: it belongs to every verdict's origin."""
        ...

    @property
    def calls(self) -> JudgeCalls:
        """What has been asked of it so far."""
        ...

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Answer every prompt, greedily."""
        ...
