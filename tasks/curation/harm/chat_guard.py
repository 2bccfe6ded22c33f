"""A guard model that replies in text whether the last turn of a chat is safe.

Its chat template holds its policy, so that it is sent the chat and nothing else. It may reply in
the form of Llama Guard (arXiv 2312.06674: `safe`, or `unsafe` and the categories in the next
line) or of Qwen3Guard (arXiv 2510.14276: `Safety: Unsafe`, `Categories: ...`). Differs:
Qwen3Guard leaves to its user what becomes of `Controversial`; here it is harmful.
"""

import re
from collections.abc import Callable, Sequence

from data_schemas.rows import Message, Role
from tasks.curation.harm.protocol import Rating
from tasks.gym.judging.chat_client import ChatReply
from tasks.gym.judging.endpoint import FailedPrompt
from tasks.gym.protocol import answer_part

Ask = Callable[[Sequence[Sequence[Message]]], Sequence[ChatReply | FailedPrompt | str | None]]
"""Reply to every chat; None if there is no reply and no cause of it."""
_FIRST_LINE = re.compile(r"(?:safety:\s*)?(safe|unsafe|controversial)", re.IGNORECASE)
_SHOWN = 120


class ChatGuard:
    """A Guard on a text model."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def rate(self, chats: Sequence[Sequence[Message]]) -> list[Rating]:
        """Ask once about every chat."""
        replies = self._ask([in_turns(chat) for chat in chats])
        return [_rating(reply) for reply in replies]


def in_turns(chat: Sequence[Message]) -> tuple[Message, ...]:
    """Write a chat as alternating turns of user and assistant, which templates of guards require.

    What a system prompt or a tool says becomes part of the user's turn, so that it is rated too.
    """
    turns: list[Message] = []
    for message in chat:
        role = Role.ASSISTANT if message.role is Role.ASSISTANT else Role.USER
        if turns and turns[-1].role is role:
            content = f"{turns.pop().content}\n{message.content}"
        else:
            content = message.content
        turns.append(Message(role=role, content=content))
    return tuple(turns)


def _rating(reply: ChatReply | FailedPrompt | str | None) -> Rating:
    if reply is None:
        return Rating(None, "the guard model gave no reply")
    if isinstance(reply, FailedPrompt):
        return Rating(None, f"{reply.loss}: {reply.cause}")
    text = reply if isinstance(reply, str) else reply.text
    answer = answer_part(text) or ""  # a rating thought of in passing is none
    verdict = " ".join(answer.split())[:_SHOWN]
    lines = answer.splitlines()
    match = _FIRST_LINE.fullmatch(lines[0].strip()) if lines else None
    if match is None:
        return Rating(None, f"the guard model says neither safe nor unsafe: {verdict!r}")
    return Rating(match[1].lower() != "safe", verdict)
