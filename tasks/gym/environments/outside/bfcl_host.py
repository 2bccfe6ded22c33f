"""BFCL's multi-turn tasks, judged by the state of its simulators and by its own checker.

    python -m tasks.gym.environments.outside.bfcl_host NAME ARGUMENTS

Runs in an interpreter that has `bfcl-eval` (Apache-2.0), whose classes carry the calls out. Calls
of the policy reach them as Python that is written here from parsed names and literals; nothing the
policy wrote is evaluated. A turn without a call ends the user's turn, and the next user message
answers it. More than MAXIMUM_STEP_LIMIT turns with calls in one of them end the episode, as there.

Refused by name: rows whose functions are shown later (`missed_function`), classes without a
simulator, and rows whose own solution the checker refuses.
"""

import importlib
import itertools
import json
import keyword
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tasks.gym.environments.outside.hosting import Step, Turn, serve

SIMULATED = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
)
"""Classes whose state is in memory: web search needs the network, memories need files."""
_UNKNOWN = "function_that_was_not_offered()"


class BfclHost:
    """BFCL's simulators and checker."""

    def __init__(self) -> None:
        evaluation = "bfcl_eval.eval_checker.multi_turn_eval"
        self._utils = importlib.import_module(f"{evaluation}.multi_turn_utils")
        self._checker = importlib.import_module(f"{evaluation}.multi_turn_checker")
        constants = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        prompts = importlib.import_module("bfcl_eval.constants.default_prompts")
        self.step_limit: int = prompts.MAXIMUM_STEP_LIMIT
        folder = Path(str(self._utils.__file__)).parents[2] / "data" / "multi_turn_func_doc"
        files = constants.MULTI_TURN_FUNC_DOC_FILE_MAPPING
        self._functions = {name: _documented(folder / files[name]) for name in SIMULATED}
        self._numbers = itertools.count()
        self.version = f"bfcl-eval {metadata.version('bfcl-eval')}"

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the row as a task, or why it cannot be played."""
        row = request["row"]
        names = ("id", "question", "initial_config", "involved_classes", "ground_truth")
        task = {name: row[name] for name in names}
        return [
            {
                "task": task,
                "messages": task["question"][0],
                "tools": self._offered(task),
                "refused": self._refusal(row, task),
            }
        ]

    def begin(self, task: Mapping[str, Any]) -> "_Dialogue":
        """Open a dialogue."""
        names = {function["name"] for function in self._offered(task)}
        return _Dialogue(self, task, names, f"policy{next(self._numbers)}")

    def execute(self, task: Mapping[str, Any], calls: Sequence[str], player: str) -> list[str]:
        """Carry calls out on the simulators of a player."""
        results, _ = self._utils.execute_multi_turn_func_call(
            list(calls),
            task["initial_config"],
            task["involved_classes"],
            player,
            task["id"],
            long_context="long_context" in task["id"],
        )
        return results

    def check(self, task: Mapping[str, Any], turns: Sequence[Sequence[Sequence[str]]]) -> bool:
        """Let BFCL's checker execute the calls and the solution, and compare their states."""
        player = f"check{next(self._numbers)}"
        category = task["id"].rsplit("_", 1)[0]
        result = self._checker.multi_turn_checker(
            [[list(step) for step in turn] for turn in turns],
            task["ground_truth"],
            dict(task),
            category,
            player,
        )
        self.forget(player)
        return bool(result["valid"])

    def forget(self, player: str) -> None:
        """Drop the simulators of a player, which BFCL keeps as globals of a module."""
        namespace = vars(self._utils)
        for name in [name for name in namespace if name.startswith(f"{player}_")]:
            del namespace[name]

    def _offered(self, task: Mapping[str, Any]) -> list[dict[str, Any]]:
        classes = [name for name in task["involved_classes"] if name in self._functions]
        return [function for name in classes for function in self._functions[name]]

    def _refusal(self, row: Mapping[str, Any], task: Mapping[str, Any]) -> str:
        if row.get("missed_function"):
            return "missed_function"
        if not set(task["involved_classes"]) <= set(SIMULATED):
            return "no_simulator"
        if not all(task["question"]) or len(task["question"]) != len(task["ground_truth"]):
            return "bad_turns"
        solved = self.check(task, [[calls] if calls else [] for calls in task["ground_truth"]])
        return "" if solved else "gold_fails"


class _Dialogue:
    """One episode: the user's turns, each with the policy's steps."""

    def __init__(
        self, host: BfclHost, task: Mapping[str, Any], names: set[str], player: str
    ) -> None:
        self._host, self._task, self._names, self._player = host, task, names, player
        self._calls: list[list[list[str]]] = [[]]

    def step(self, turn: Turn) -> Step:
        calls = [self._write(call) for call in turn.calls or ()]
        if calls:
            results = self._host.execute(self._task, calls, self._player)
            self._calls[-1].append(calls)
            if len(self._calls[-1]) > self._host.step_limit:
                return Step(done=True, reward=0.0)
            return Step([{"role": "tool", "content": result} for result in results])
        questions = self._task["question"]
        if len(self._calls) == len(questions):
            return Step(done=True, reward=float(self._host.check(self._task, self._calls)))
        self._calls.append([])
        return Step(questions[len(self._calls) - 1])

    def close(self) -> None:
        self._host.forget(self._player)

    def _write(self, call: Mapping[str, Any]) -> str:
        """Write a call in Python; of what is no name and no literal, nothing is kept."""
        names = list(call["parameters"])
        if call["name"] not in self._names or not all(map(_is_name, names)):
            return _UNKNOWN
        arguments = ", ".join(f"{name}={call['parameters'][name]!r}" for name in names)
        return f"{call['name']}({arguments})"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _documented(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


if __name__ == "__main__":
    serve(BfclHost)
