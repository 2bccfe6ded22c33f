"""An episode that a library's own coroutine plays, one turn of the policy at a time."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from tasks.gym.environments.outside.hosting import Step, Turn

Ask = Callable[[Sequence[Any], Sequence[Mapping[str, Any]]], Awaitable[Turn]]
"""Hands a prompt and the tools out; returns the policy's turn."""


class VerifiersEpisode:
    """Begins at its first prompt.

    Args:
        loop: runs while a turn is answered, and at no other time.
        play: plays the episode with the function that asks the policy; returns the reward.

    Raises:
        RuntimeError: it ends before the first turn.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        play: Callable[[Ask], Coroutine[Any, Any, float | None]],
    ) -> None:
        self._loop = loop
        self._prompts: asyncio.Queue[Any] = asyncio.Queue()
        self._turns: asyncio.Queue[Turn] = asyncio.Queue()
        self._played = loop.create_task(play(self._ask))
        self.tools: list[Mapping[str, Any]] = []
        first = loop.run_until_complete(self._next_prompt())
        if first is None:
            raise RuntimeError("the episode ends before the first turn")
        self.prompt = first

    def step(self, turn: Turn) -> Step:
        """Answer a turn.

        Raises:
            ValueError: what was said before is not what is said now.
        """
        before = self.prompt
        self._turns.put_nowait(turn)
        after = self._loop.run_until_complete(self._next_prompt())
        if after is None:
            return Step(done=True, reward=self._played.result())
        if after[: len(before)] != before or after[len(before)]["role"] != "assistant":
            raise ValueError("the environment changes what was said before")
        self.prompt = after
        return Step([_message(message) for message in after[len(before) + 1 :]])

    def close(self) -> None:
        """End what plays it."""
        self._played.cancel()
        self._loop.run_until_complete(asyncio.wait({self._played}))

    async def _ask(self, prompt: Sequence[Any], tools: Sequence[Mapping[str, Any]]) -> Turn:
        self.tools = list(tools)
        self._prompts.put_nowait([message.model_dump(exclude_none=True) for message in prompt])
        return await self._turns.get()

    async def _next_prompt(self) -> list[dict[str, Any]] | None:
        """Wait for the next prompt; None at the end of the episode."""
        prompt = asyncio.ensure_future(self._prompts.get())
        await asyncio.wait({prompt, self._played}, return_when=asyncio.FIRST_COMPLETED)
        if prompt.done():
            return prompt.result()
        prompt.cancel()
        self._played.result()
        return None


def finish_reason(turn: Turn, calls: Sequence[Any]) -> str:
    """Return what a server says of the end of a turn."""
    return "length" if turn.truncated else "tool_calls" if calls else "stop"


def tool_calls(turn: Turn, kind: Any, number: int) -> list[Any]:
    """Return the calls of a turn as a library's own; `number` makes their names unique."""
    return [
        kind(
            id=f"call_{number}_{place}",
            name=call["name"],
            arguments=json.dumps(call["parameters"]),
        )
        for place, call in enumerate(turn.calls or ())
    ]


def code_version(module: ModuleType, name: str) -> str:
    """Name the library's version, and the code of an environment by its digest."""
    path = Path(str(module.__file__))
    code = sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]
    digest = hashlib.sha256(b"\0".join(one.read_bytes() for one in code)).hexdigest()
    return f"verifiers {metadata.version('verifiers')}, {name} {digest[:12]}"


def _message(message: Mapping[str, Any]) -> dict[str, str]:
    content = message["content"]
    if not isinstance(content, str):
        if any(part.get("type") != "text" for part in content):
            raise ValueError("the environment says more than text")
        content = "".join(part["text"] for part in content)
    return {"role": message["role"], "content": content}
