"""The verifier and the environment `environment`: episodes of other libraries' environments.

Gold: {"library": "verifiers", "environment": "wordle", "arguments": {}, "task": {...}, "version":
"...", "highest": 1.0}. The score is the environment's own reward of the episode, divided by
`highest`. Which interpreter has a library is said where the pipeline runs, not in the data:

    EACHPROMPT_ENVIRONMENTS=verifiers=PYTHON,bfcl=PYTHON,openenv=PYTHON,openenv:NAME=http://host:8000,shopping:NAME=/rows.jsonl

An environment that raises, hangs, floods, changes its mind about the same turns, or gives a reward
outside of [0, highest] is an abstention with that reason.
"""

import atexit
import functools
import json
import os
import shutil
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from data_schemas.rows import Message, Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.errors import SettingsError
from tasks.gym.environments.outside.process import (
    START_TIMEOUT_S,
    TIMEOUT_S,
    EnvironmentFailure,
    HostProcess,
)
from tasks.gym.protocol import Gold, answer_part, check_against_gold, is_cut, split_turns
from tasks.gym.tools.tool_calls import parse_calls

VARIABLE = "EACHPROMPT_ENVIRONMENTS"
LIBRARIES = ("bfcl", "openenv", "verifiers")
OWN = ("example", "shopping")
"""Run in our own interpreter."""
GENERATED = "generated"
"""The shop that needs no file."""
_NOT_PLAYED = {
    "harbor": "a task of Harbor starts in a container image, which is not in its folder, and its "
    "tests/test.sh runs in there; play it from a server with OpenEnv's interface, which has the "
    "images (tasks/gym/ENVIRONMENTS.md)",
}
MAX_TURNS = 100
LONGEST_S = START_TIMEOUT_S + MAX_TURNS * TIMEOUT_S
MAX_CHARACTERS = 20_000
"""Longest text of an answer; a longer one is a flood."""
MAX_KNOWN = 10_000
"""Answers that are kept, so that equal beginnings are played once."""


class OutsideTask(Gold):
    """An episode to be played."""

    library: str
    environment: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    task: dict[str, Any]
    version: str
    """Version of library and environment when the row was read."""
    highest: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class EnvironmentReply:
    """What an environment has said to a turn."""

    messages: tuple[Message, ...]
    done: bool
    reward: float | None


_MESSAGES = TypeAdapter(tuple[Message, ...])


@dataclass
class CachedHost:
    """A process and what it has answered so far."""

    process: HostProcess
    lock: threading.Lock = field(default_factory=threading.Lock)
    cache: "OrderedDict[str, EnvironmentReply | EnvironmentFailure]" = field(
        default_factory=OrderedDict
    )

    def play(self, gold: OutsideTask, turns: Sequence[str], *, cut: bool) -> EnvironmentReply:
        """Return what is said to the last turn, which the limit of tokens may have cut.

        Raises:
            EnvironmentFailure: the environment gives no answer that can be used.
        """
        replies = [_parse_turn(turn) for turn in turns]
        replies[-1]["truncated"] = cut
        histories = [[gold.version, gold.task, replies[: n + 1]] for n in range(len(replies))]
        keys = [json.dumps(part, sort_keys=True) for part in histories]
        with self.lock:
            if keys[-1] not in self.cache:
                try:
                    answers: Sequence[EnvironmentReply | EnvironmentFailure] = self._ask(
                        gold, replies
                    )
                except EnvironmentFailure as failure:
                    answers = [failure]
                    keys = keys[-1:]
                for key, answer in zip(keys, answers, strict=True):
                    if self.cache.setdefault(key, answer) != answer:
                        detail = "other answers to the same turns"
                        self.cache[keys[-1]] = EnvironmentFailure("not_deterministic", detail)
                        break
            result = self.cache[keys[-1]]
            while len(self.cache) > MAX_KNOWN:
                self.cache.popitem(last=False)
        if isinstance(result, EnvironmentFailure):
            raise result
        return result

    def _ask(
        self, gold: OutsideTask, replies: Sequence[Mapping[str, Any]]
    ) -> list[EnvironmentReply]:
        request = {"version": gold.version, "task": gold.task, "turns": replies}
        return [_answer(step) for step in self.process.ask(request, len(replies))["steps"]]


class Hosts:
    """One process per environment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[tuple[str, str, str], CachedHost] = {}

    def find(self, library: str, environment: str, arguments: Mapping[str, Any]) -> CachedHost:
        """Return the host of an environment; its process starts when first needed.

        Raises:
            SettingsError: nothing says which interpreter has the library, or it is none.
        """
        arguments_json = json.dumps(arguments, sort_keys=True)
        command = [_interpreter(library), "-m", f"{__package__}.{library}_host"]
        command += [environment, arguments_json]
        if library == "openenv":
            command.append(_place(f"openenv:{environment}", "the address of its server"))
        if library == "shopping" and environment != GENERATED:
            command.append(_place(f"shopping:{environment}", "the absolute path of its rows"))
        with self._lock:
            key = (library, environment, arguments_json)
            if key not in self._hosts:
                self._hosts[key] = CachedHost(HostProcess(command))
            return self._hosts[key]

    def close(self) -> None:
        """Kill all processes; they start again when needed."""
        with self._lock:
            hosts, self._hosts = self._hosts, {}
        for host in hosts.values():
            host.process.close()


@functools.cache
def shared_hosts() -> Hosts:
    """Return the hosts of this process."""
    hosts = Hosts()
    atexit.register(hosts.close)
    return hosts


def close() -> None:
    """Kill all processes; they start again when needed."""
    shared_hosts().close()


def offer(
    library: str, environment: str, arguments: Mapping[str, Any], request: Mapping[str, Any]
) -> tuple[str, list[dict[str, Any]]]:
    """Ask an environment for its tasks; return its version with them.

    Raises:
        SettingsError: nothing says which interpreter has the library.
        EnvironmentFailure: it gives none.
    """
    host = shared_hosts().find(library, environment, arguments)
    with host.lock:
        reply = host.process.ask({"offer": request}, num_turns=1 + int(request.get("limit", 0)))
    return reply["version"], reply["tasks"]


def observe(problem: Problem, turns: Sequence[str]) -> tuple[Message, ...] | None:
    """Answer the last turn; None ends the episode, also if the environment fails.

    Raises:
        SettingsError: nothing says which interpreter has the library.
    """
    if len(turns) >= MAX_TURNS:
        return None
    try:
        gold = OutsideTask.model_validate_json(problem.answer)
        answer = _play(gold, turns, cut=False)
    except (ValidationError, EnvironmentFailure):
        return None
    return None if answer.done else answer.messages


def verify(problem: Problem, response: str) -> Verdict:
    """Score the environment's reward of the episode; abstain where it has failed."""
    return check_against_gold(problem, response, OutsideTask, _check)


def _check(gold: OutsideTask, response: str) -> Verdict:
    turns = split_turns(response)
    if len(turns) > MAX_TURNS:
        return scored(0.0, "unfinished", f"{len(turns)} turns")
    try:
        answer = _play(gold, turns, cut=is_cut(response))
    except EnvironmentFailure as failure:
        return abstain(failure.reason, failure.detail)
    if not answer.done:
        return scored(0.0, "unfinished", f"{len(turns)} turns")
    reward = answer.reward
    if reward is None or not 0.0 <= reward <= gold.highest:
        return abstain("reward_out_of_range", f"{reward} is not in [0, {gold.highest}]")
    share = reward / gold.highest
    reason = "correct" if share >= 1.0 else "partial" if share > 0.0 else "wrong"
    return scored(share, reason, f"{len(turns)} turns, reward {reward:.4g}")


def _play(gold: OutsideTask, turns: Sequence[str], *, cut: bool) -> EnvironmentReply:
    host = shared_hosts().find(gold.library, gold.environment, gold.arguments)
    return host.play(gold, turns, cut=cut)


def _parse_turn(turn: str) -> dict[str, Any]:
    """Read a turn: the text after the thinking, and the calls that it consists of."""
    text = answer_part(turn) or ""
    calls = [
        {"name": call.name, "parameters": dict(call.parameters)} for call in parse_calls(text) or ()
    ]
    return {"text": text, "calls": calls or None, "truncated": False}


def _answer(step: Mapping[str, Any]) -> EnvironmentReply:
    try:
        messages = _MESSAGES.validate_python(step["messages"])
    except ValidationError as error:
        raise EnvironmentFailure("environment_raised", f"malformed answer: {error}") from error
    if sum(len(message.content) for message in messages) > MAX_CHARACTERS:
        raise EnvironmentFailure("environment_flooded", f"over {MAX_CHARACTERS} characters")
    return EnvironmentReply(messages, bool(step["done"]), step["reward"])


def _interpreter(library: str) -> str:
    if library in OWN:
        return sys.executable
    if library in _NOT_PLAYED:
        raise SettingsError(f"{library!r} is not played: {_NOT_PLAYED[library]}")
    if library not in LIBRARIES:
        raise SettingsError(f"{library!r} is not one of {', '.join((*OWN, *LIBRARIES))}")
    place = _place(library, "the interpreter that has it")
    program = shutil.which(place)
    if program is None:
        raise SettingsError(f"{VARIABLE} says {library}={place}, which is no program here")
    return str(Path(program).absolute())  # its process starts in a folder of its own


def _place(name: str, what: str) -> str:
    entries = [entry.strip() for entry in os.environ.get(VARIABLE, "").split(",")]
    for entry in entries:
        key, _, place = entry.partition("=")
        if key == name and place:
            return place
    raise SettingsError(f"{VARIABLE} does not say {name}=PLACE, {what}")
