"""Environments of the library `verifiers` (Prime Intellect), unmodified.

    python -m tasks.gym.environments.outside.verifiers_host NAME ARGUMENTS

Runs in an interpreter that has the library and the environment. `load_environment(NAME)` is asked
for its rows; its own `rollout` runs with a client that hands every prompt out and waits for the
turn, and its own rubric scores the episode. Made for `verifiers.MultiTurnEnv` and what derives from
it, and run with 0.2.1. The v1 interface, the only one of 0.4, is refused: there a program asks for
the turns, over HTTP and in a runtime, and rewards may read what it left there.

An environment that changes what was said before is refused: the policy continues from its tokens.
"""

import asyncio
import hashlib
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tasks.gym.environments.outside.hosting import Step, Turn, serve

_INSTALL = "install verifiers 0.2.1, and an environment that is made for it"


class VerifiersHost:
    """One environment of the library."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        vf = importlib.import_module("verifiers")
        if not hasattr(vf, "MultiTurnEnv"):
            raise TypeError(f"this version of verifiers has its v1 interface only; {_INSTALL}")
        self._env = vf.load_environment(name, **arguments)
        if not isinstance(self._env, vf.MultiTurnEnv):
            kind = type(self._env).__name__
            raise TypeError(f"{name} is a {kind}, not a MultiTurnEnv; {_INSTALL}")
        self._loop = asyncio.new_event_loop()
        module = Path(str(importlib.import_module(name.replace("-", "_").split("/")[-1]).__file__))
        code = sorted(module.parent.rglob("*.py")) if module.stem == "__init__" else [module]
        digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in code)).hexdigest()
        self.version = f"verifiers {metadata.version('verifiers')}, {name} {digest[:12]}"

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List rows of the environment's data set with the prompt that the policy is shown."""
        rows = [dict(row) for row in self._env.get_dataset(request["limit"])]
        results = []
        for row in rows:
            task = json.loads(json.dumps(row, default=str))
            episode = _Episode(self._env, self._loop, task)
            results.append({"task": task, "messages": episode.prompt, "tools": episode.tools})
            episode.close()
        return results

    def begin(self, task: Mapping[str, Any]) -> "_Episode":
        """Open an episode of a row."""
        return _Episode(self._env, self._loop, task)


class _Episode:
    """A rollout of the environment, between two turns."""

    def __init__(self, env: Any, loop: asyncio.AbstractEventLoop, row: Mapping[str, Any]) -> None:
        self._env, self._loop = env, loop
        self._prompts: asyncio.Queue[Any] = asyncio.Queue()
        self._turns: asyncio.Queue[Turn] = asyncio.Queue()
        self.tools: list[dict[str, Any]] = []
        self.prompt: list[dict[str, Any]] = []
        client = _policy_client()(self._answer)
        self._rollout = loop.create_task(env.rollout(dict(row), client, "policy"))
        first = loop.run_until_complete(self._next_prompt())
        if first is None:
            raise RuntimeError("the episode ends before the first turn")
        self.prompt = first

    def step(self, turn: Turn) -> Step:
        before = self.prompt
        self._turns.put_nowait(turn)
        after = self._loop.run_until_complete(self._next_prompt())
        if after is None:
            return Step(done=True, reward=self._loop.run_until_complete(self._score()))
        if after[: len(before)] != before or after[len(before)]["role"] != "assistant":
            raise ValueError("the environment changes what was said before")
        self.prompt = after
        return Step([_message(message) for message in after[len(before) + 1 :]])

    def close(self) -> None:
        self._rollout.cancel()

    async def _answer(self, prompt: Sequence[Any], tools: Sequence[Any] | None) -> Turn:
        """Hand a prompt out and wait for the turn; called by the rollout."""
        self.tools = [tool.model_dump(exclude_none=True) for tool in tools or ()]
        self._prompts.put_nowait([message.model_dump(exclude_none=True) for message in prompt])
        return await self._turns.get()

    async def _next_prompt(self) -> list[dict[str, Any]] | None:
        """Wait for the next prompt; None at the end of the rollout."""
        prompt = asyncio.ensure_future(self._prompts.get())
        await asyncio.wait({prompt, self._rollout}, return_when=asyncio.FIRST_COMPLETED)
        if prompt.done():
            return prompt.result()
        prompt.cancel()
        error = self._rollout.result().get("error")
        if error is not None:
            raise RuntimeError(f"{type(error).__name__}: {error.__cause__ or error}")
        return None

    async def _score(self) -> float | None:
        state = self._rollout.result()
        await self._env.rubric.score_rollout(state)
        return state["reward"]


def _message(message: Mapping[str, Any]) -> dict[str, str]:
    content = message["content"]
    if not isinstance(content, str):
        if any(part.get("type") != "text" for part in content):
            raise ValueError("the environment says more than text")
        content = "".join(part["text"] for part in content)
    return {"role": message["role"], "content": content}


def _policy_client() -> Any:
    """Return a class of clients of the library that ask a function for the next turn."""
    clients = importlib.import_module("verifiers.clients")
    types = importlib.import_module("verifiers.types")

    class PolicyClient(clients.Client):
        def __init__(self, answer: Any) -> None:
            super().__init__(answer)
            self._turns = 0

        async def get_response(
            self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **_: Any
        ) -> Any:
            turn = await self.client(prompt, tools)
            self._turns += 1
            calls = [
                types.ToolCall(
                    id=f"call_{self._turns}_{place}",
                    name=call["name"],
                    arguments=json.dumps(call["parameters"]),
                )
                for place, call in enumerate(turn.calls or ())
                if tools
            ]
            message = types.ResponseMessage(
                content=turn.text,
                tool_calls=calls or None,
                finish_reason="tool_calls" if calls else "stop",
                is_truncated=False,
            )
            return types.Response(id=str(self._turns), created=0, model=model, message=message)

    # The other methods translate to and from a provider, of which there is none here.
    PolicyClient.__abstractmethods__ = frozenset()
    return PolicyClient


if __name__ == "__main__":
    serve(lambda: VerifiersHost(sys.argv[1], json.loads(sys.argv[2])))
