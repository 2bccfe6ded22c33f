"""Tasksets of the v1 interface of `verifiers`, unmodified; what `verifiers_host` plays of 0.4.

The arguments are the library's own block `[env]`: `{"taskset": {...}, "agent": {...}}`, both
optional. An episode is the library's, too: its environment runs, the program of its one seat asks
for turns over HTTP from the library's interception server, whose client waits for the policy's
turn, and its own rewards score the trace. Tools are the task's servers, started by the library.

Without other arguments the program is the library's chat loop (the harness `null`), in this
interpreter and not in a process per episode. One that carries out what the policy writes is refused
outside of a container. So are environments of several seats; whatever branches or shortens the
conversation is refused as it happens, because the policy continues from its tokens.
"""

import asyncio
import importlib
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tasks.gym.environments.outside.verifiers_episode import (
    Ask,
    VerifiersEpisode,
    code_version,
    finish_reason,
    tool_calls,
)

_CHAT = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
_MODEL = "policy"


class TasksetHost:
    """One taskset of the library, with the environment that plays it."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        loaders = importlib.import_module("verifiers.v1.utils.loaders")
        seats_of = importlib.import_module("verifiers.v1.configs.agent").agent_config_fields
        module = loaders.import_taskset(name)
        if hasattr(module, "load_environment"):
            raise TypeError(f"{name} is made for verifiers until 0.3; install 0.2.1")
        env = {**arguments, "taskset": {**arguments.get("taskset", {}), "id": name}}
        seat, *others = seats_of(loaders.resolve_env_config(env))
        if others:
            raise TypeError(f"{name} has the seats {', '.join((seat, *others))}; one is played")
        env[seat] = {**_CHAT, **arguments.get(seat, {})}
        config = loaders.resolve_env_config(env)
        agent = seats_of(config)[seat]
        runs_code = loaders.harness_class(agent.harness.id).EXECUTES_CODE
        if runs_code and agent.runtime.type == "subprocess":
            raise TypeError(
                f"the harness {agent.harness.id!r} runs what the policy writes on this machine; "
                f"give it a container: arguments.{seat}.runtime.type"
            )
        self._env = loaders.load_environment(config)
        self._tasks: Iterator[Any] = iter(self._env.taskset)
        self._read: list[Any] = []
        self._policy = _policy_client()
        self._loop = asyncio.new_event_loop()
        # Never left: tools and servers end with this process.
        self._serving = self._env.serving()
        self._loop.run_until_complete(self._serving.__aenter__())
        self.version = code_version(module, name)

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the first tasks, with the prompt and the tools that the policy is shown."""
        results = []
        for place in range(request["limit"]):
            task = self._find(place)
            if task is None:
                break
            episode = self._open(task)
            row = {"place": place, "data": _data_of(task)}
            results.append({"task": row, "messages": episode.prompt, "tools": episode.tools})
            episode.close()
        return results

    def begin(self, task: Mapping[str, Any]) -> VerifiersEpisode:
        """Open an episode of a task.

        Raises:
            ValueError: the taskset has another task at its place.
        """
        match = self._find(task["place"])
        if match is None or task["data"] != _data_of(match):
            raise ValueError(f"the taskset has another task at {task['place']}")
        return self._open(match)

    def _find(self, place: int) -> Any | None:
        """Read tasks up to a place; None behind the last."""
        while len(self._read) <= place:
            task = next(self._tasks, None)
            if task is None:
                return None
            self._read.append(task)
        return self._read[place]

    def _open(self, task: Any) -> VerifiersEpisode:
        return VerifiersEpisode(self._loop, lambda ask: self._play(task, ask))

    async def _play(self, task: Any, ask: Ask) -> float:
        """Play an episode; return its reward.

        Raises:
            RuntimeError: the episode has failed.
        """
        config = importlib.import_module("verifiers.v1.configs.client").TrainClientConfig
        context = importlib.import_module("verifiers.v1.clients").ModelContext
        names: list[str] = []

        def minted(trace: Any) -> None:
            names.append(trace.id)
            self._policy.asks[trace.id] = ask

        try:
            episode = await self._env.run_episode(
                task, context(model=_MODEL, client=config()), on_trace=minted
            )
        finally:
            for name in names:
                del self._policy.asks[name]
        errors = [error for part in (episode, *episode.traces) for error in part.errors]
        if errors or not episode.ok:
            raise RuntimeError("; ".join(f"{error.type}: {error.message}" for error in errors))
        (trace,) = episode.traces
        return trace.reward


def _data_of(task: Any) -> dict[str, Any]:
    return task.data.model_dump(mode="json", exclude_defaults=True)


def _policy_client() -> Any:
    """Put the policy behind the library's interception server, and its chat loop into this process.

    Returns:
        the client; `asks` has the function that asks the policy, by the name of a trace.
    """
    client = importlib.import_module("verifiers.v1.clients.client")
    train = importlib.import_module("verifiers.v1.clients.train")
    server: Any = importlib.import_module("verifiers.v1.interception.server")
    types = importlib.import_module("verifiers.v1.types")
    null = importlib.import_module("verifiers.v1.harnesses.null.harness")
    launch = importlib.import_module("verifiers.v1.harnesses.utils.launch")
    runtimes = importlib.import_module("verifiers.v1.runtimes")

    class PolicyClient(client.Client):
        def __init__(self) -> None:
            self.asks: dict[str, Ask] = {}

        async def get_response(
            self, dialect: Any, body: Any, sampling: Any, session_id: Any = None, **_: Any
        ) -> Any:
            request = dialect.parse_request(body)
            tools = [
                {"name": one.name, "description": one.description, "parameters": one.parameters}
                for one in request.tools or ()
            ]
            turn = await self.asks[session_id](request.messages, tools)
            num_messages = len(request.messages)
            calls = tool_calls(turn, types.ToolCall, num_messages) if tools else []
            response = types.Response(
                id=str(num_messages),
                created=0,
                model=_MODEL,
                message=types.AssistantMessage(content=turn.text, tool_calls=calls or None),
                finish_reason=finish_reason(turn, calls),
            )
            response.raw = train.serialize_completion(response, _MODEL)
            return response

    async def ready(harness: Any, runtime: Any) -> None:
        """The loop needs nothing installed: the library depends on what it imports."""

    async def play(
        harness: Any,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: Any,
        data: Any,
        **_: Any,
    ) -> Any:
        system, prompt = harness.resolve_prompt(data)
        return await launch.launch_chat_program(
            *(launch.CHAT_PROGRAM_SOURCE, harness.config, ctx, trace, program),
            *(endpoint, secret, mcp_urls, system, prompt),
        )

    program = _ChatProgram(launch.CHAT_PROGRAM_SOURCE, runtimes.ProgramResult)
    policy = PolicyClient()
    server.resolve_client = lambda config: policy
    null.NullHarness.setup, null.NullHarness.launch = ready, play
    return policy


class _ChatProgram:
    """The library's chat program as a runtime sees it, run in this process."""

    def __init__(self, source: str, result: Any) -> None:
        self._program = ModuleType("chat_program")
        exec(compile(source, "chat_program", "exec"), vars(self._program))
        self._result = result

    async def write(self, path: str, data: bytes) -> None:
        Path(path).write_bytes(data)

    async def prepare_uv_script(self, source: str, *_: Any, **__: Any) -> list[str]:
        return []

    async def run_program(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Any:
        sys.argv = ["chat_program", *arguments]  # read before the program first waits
        try:
            await self._program.main()
        except (Exception, SystemExit):  # noqa: BLE001 - what its exit status would say
            return self._result(exit_code=1, stdout="", stderr=traceback.format_exc())
        return self._result(exit_code=0, stdout="", stderr="")
