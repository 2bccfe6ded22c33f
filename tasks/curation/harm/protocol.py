"""The contract of what rates content as harmful."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from data_schemas.rows import Message


@dataclass(frozen=True, slots=True)
class Rating:
    """What a guard says of one chat."""

    harmful: bool | None
    """None if it could not be rated, which nobody may take for harmless."""
    detail: str
    """Score and label, or why there is no rating."""


class Guard(Protocol):
    """Rates chats.

    Contract: one rating per chat, in order, without raising for a chat that it cannot rate; the
    same chats give the same ratings.
    """

    def rate(self, chats: Sequence[Sequence[Message]]) -> list[Rating]:
        """Rate every chat, whose last turn is a prompt or a response."""
        ...
