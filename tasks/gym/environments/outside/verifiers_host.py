"""Environments of the library `verifiers` (Prime Intellect), unmodified.

    python -m tasks.gym.environments.outside.verifiers_host NAME ARGUMENTS

Runs in an interpreter that has the library and the environment, and plays what its version does:
until 0.3 `verifiers.MultiTurnEnv` and what derives from it, in 0.4 tasksets of the v1 interface
(`verifiers_tasksets`). A `MultiTurnEnv` is asked for its rows; its own `rollout` runs with a client
that hands every prompt out and waits for the turn, and its own rubric scores the episode.

An environment that changes what was said before is refused: the policy continues from its tokens.
"""

import asyncio
import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from tasks.gym.environments.outside.hosting import Host, serve
from tasks.gym.environments.outside.verifiers_episode import (
    Ask,
    VerifiersEpisode,
    code_version,
    finish_reason,
    tool_calls,
)

_TASKSETS = "a taskset of the v1 interface is played with verifiers 0.4"


class VerifiersHost:
    """One environment of the library."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        vf = importlib.import_module("verifiers")
        try:
            module = importlib.import_module(name.replace("-", "_").split("/")[-1])
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise TypeError(f"{name} is not imported: {detail}; {_TASKSETS}") from error
        if not hasattr(module, "load_environment"):
            raise TypeError(f"{name} has no load_environment; {_TASKSETS}")
        self._env = vf.load_environment(name, **arguments)
        if not isinstance(self._env, vf.MultiTurnEnv):
            kind = type(self._env).__name__
            raise TypeError(f"{name} is a {kind}, not a MultiTurnEnv; {_TASKSETS}")
        self._loop = asyncio.new_event_loop()
        self.version = code_version(module, name)

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List rows of the environment's data set with the prompt that the policy is shown."""
        rows = [dict(row) for row in self._env.get_dataset(request["limit"])]
        results = []
        for row in rows:
            task = json.loads(json.dumps(row, default=str))
            episode = self.begin(task)
            results.append({"task": task, "messages": episode.prompt, "tools": episode.tools})
            episode.close()
        return results

    def begin(self, task: Mapping[str, Any]) -> VerifiersEpisode:
        """Open an episode of a row."""
        return VerifiersEpisode(self._loop, lambda ask: self._play(task, ask))

    async def _play(self, row: Mapping[str, Any], ask: Ask) -> float | None:
        """Play an episode; return its reward.

        Raises:
            RuntimeError: the episode has failed.
        """
        state = await self._env.rollout(dict(row), _policy_client()(ask), "policy")
        error = state.get("error")
        if error is not None:
            raise RuntimeError(f"{type(error).__name__}: {error.__cause__ or error}")
        await self._env.rubric.score_rollout(state)
        return state["reward"]


def open_host(name: str, arguments: Mapping[str, Any]) -> Host:
    """Return the host of an environment."""
    if hasattr(importlib.import_module("verifiers"), "MultiTurnEnv"):
        return VerifiersHost(name, arguments)
    tasksets = importlib.import_module("tasks.gym.environments.outside.verifiers_tasksets")
    return tasksets.TasksetHost(name, arguments)


def _policy_client() -> Any:
    """Return a class of clients of the library that ask a function for the next turn."""
    clients = importlib.import_module("verifiers.clients")
    types = importlib.import_module("verifiers.types")

    class PolicyClient(clients.Client):
        def __init__(self, ask: Ask) -> None:
            super().__init__(ask)
            self._turns = 0

        async def get_response(
            self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **_: Any
        ) -> Any:
            schemas = [tool.model_dump(exclude_none=True) for tool in tools or ()]
            turn = await self.client(prompt, schemas)
            self._turns += 1
            calls = tool_calls(turn, types.ToolCall, self._turns) if tools else []
            message = types.ResponseMessage(
                content=turn.text,
                tool_calls=calls or None,
                finish_reason=finish_reason(turn, calls),
                is_truncated=turn.truncated,
            )
            return types.Response(id=str(self._turns), created=0, model=model, message=message)

    # The other methods translate to and from a provider, of which there is none here.
    PolicyClient.__abstractmethods__ = frozenset()
    return PolicyClient


if __name__ == "__main__":
    serve(lambda: open_host(sys.argv[1], json.loads(sys.argv[2])))
