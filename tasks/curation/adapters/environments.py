"""Adapters for environments of other libraries, and for BFCL's multi-turn tasks.

A row of `environments` names an environment; every task that it offers becomes a problem:

    {"library": "verifiers", "environment": "wordle", "arguments": {}, "limit": 100,
     "domain": "tool_use", "language": "en", "instruction": "...", "highest": 1.0}

`instruction` is said before the environment's own system message; `highest` is its best reward.
"""

import json
import math
from collections.abc import Mapping
from itertools import filterfalse
from typing import Any

from data_schemas.rows import OUTSIDE, Domain, Message, Problem, Role
from tasks.curation.adapters.tools import CALL_FORMAT
from tasks.curation.cleaning.writing_systems import language_of
from tasks.curation.items import Item, task_name
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.environments.outside import play
from tasks.gym.environments.outside.process import EnvironmentFailure
from tasks.store.files import canonical_json

DEFAULT_LIMIT = 100
_ACTION_FORMAT = "Act by one JSON object. Its fields:\n"


def environments(row: RawRow) -> list[Item]:
    """Read an environment: a problem for every task that it offers.

    Raises:
        BadRow: it cannot be loaded, or offers nothing.
        SettingsError: EACHPROMPT_ENVIRONMENTS does not name the interpreter of its library.
    """
    library, name = row.text("library"), row.text("environment")
    arguments = row.optional("arguments") or {}
    if not isinstance(arguments, dict):
        raise BadRow("bad_arguments", f"'arguments' is {type(arguments).__name__}")
    limit = row.optional("limit", DEFAULT_LIMIT)
    if not isinstance(limit, int) or limit < 1:
        raise BadRow("bad_limit", f"'limit' is {limit!r}")
    highest = float(str(row.optional("highest", 1.0)))
    if not 0.0 < highest < math.inf:
        raise BadRow("bad_highest", f"'highest' is {highest}")
    version, tasks = _offer(library, name, arguments, {"limit": limit})
    gold = {
        "library": library,
        "environment": name,
        "arguments": arguments,
        "version": version,
        "highest": highest,
    }
    instruction = str(row.optional("instruction"))
    problems = [
        Problem(
            id=f"environments/{name}/{number}",
            domain=Domain(row.text("domain")),
            language=row.text("language"),
            messages=opening_of(task, instruction, library),
            verifier=OUTSIDE,
            answer=canonical_json({**gold, "task": task["task"]}).decode(),
            source="environments",
            source_row=row.source_row,
        )
        for number, task in enumerate(tasks)
    ]
    openings = [_opening_lines(problem) for problem in problems]
    # What every task of an environment says are its rules.
    rules = set(openings[0]).intersection(*openings[1:]) if openings[1:] else set()
    return [
        Item(problem, "\n".join([*filterfalse(rules.__contains__, lines), task_name(problem)]))
        for problem, lines in zip(problems, openings, strict=True)
    ]


def bfcl_multi_turn(row: RawRow) -> list[Item]:
    """Read a multi-turn row of BFCL, which its own simulators carry out and judge.

    Raises:
        BadRow: it cannot be executed; the reason says why.
        SettingsError: EACHPROMPT_ENVIRONMENTS does not name an interpreter with bfcl-eval.
    """
    key = row.text("id")
    for name in ("question", "involved_classes", "ground_truth"):
        row.items(name)
    version, (task,) = _offer("bfcl", "multi_turn", {}, {"row": dict(row.fields)})
    if task["refused"]:
        raise BadRow(task["refused"], "see tasks/gym/environments/outside/bfcl_host.py")
    messages = opening_of(task, "", "bfcl")
    gold = {"library": "bfcl", "environment": "multi_turn", "version": version}
    problem = Problem(
        id=f"bfcl_multi_turn/{key}",
        domain=Domain.TOOL_USE,
        language=language_of(messages[-1].content),
        messages=messages,
        verifier=OUTSIDE,
        answer=canonical_json({**gold, "task": task["task"]}).decode(),
        source="bfcl_multi_turn",
        source_row=row.source_row,
    )
    return [Item(problem, "\n".join(_opening_lines(problem)))]


def _offer(
    library: str, name: str, arguments: Mapping[str, Any], request: Mapping[str, Any]
) -> tuple[str, list[dict[str, Any]]]:
    try:
        version, tasks = play.offer(library, name, arguments, request)
    except EnvironmentFailure as failure:
        raise BadRow(failure.reason, failure.detail) from failure
    if not tasks:
        raise BadRow("no_tasks", f"{name} offers none")
    return version, tasks


def opening_of(task: Mapping[str, Any], instruction: str, library: str) -> tuple[Message, ...]:
    """Return the prompt of an offered task: its tools before what the environment says first."""
    messages = [Message(role=one["role"], content=one["content"]) for one in task["messages"]]
    system_texts = [message.content for message in messages if message.role is Role.SYSTEM]
    tools = [json.dumps(tool, ensure_ascii=False) for tool in task.get("tools") or ()]
    form = (_ACTION_FORMAT if library == "openenv" else CALL_FORMAT).strip()
    system = "\n".join(
        [*filter(None, [instruction, *system_texts]), *([form] if tools else []), *tools]
    )
    turns = [message for message in messages if message.role is not Role.SYSTEM]
    first = [Message(role=Role.SYSTEM, content=system)] if system else []
    return (*first, *turns)


def _opening_lines(problem: Problem) -> list[str]:
    """Return what is said first, without the system message."""
    return [message.content for message in problem.messages if message.role is not Role.SYSTEM]
