"""Environments with the interface of OpenEnv (Meta): reset, step and state of a server.

    python -m tasks.gym.environments.outside.openenv_host NAME ARGUMENTS ADDRESS

Runs in an interpreter that has `websockets`; the environment runs in its server. An episode is a
session of its own over `/ws`: over HTTP, `/step` knows nothing of `/reset`. A server has room for
one session unless it says more (`max_concurrent_envs`); what does not fit is played again later.

A task is a seed of `reset`. A turn that is a JSON object is the action; if the action has one
required text field, any other turn is that field's value. A turn that is neither ends the episode.
An action that the server refuses is answered with its message. The reward is the sum of all steps'.
"""

import contextlib
import hashlib
import importlib
import json
import sys
import urllib.request
from collections.abc import Mapping
from typing import Any

from tasks.gym.environments.outside.hosting import FullError, Step, Turn, serve

_FULL = "CAPACITY_REACHED"
_REFUSED = ("VALIDATION_ERROR", "INVALID_JSON")
TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 10.0


class OpenEnvHost:
    """The environment of one server."""

    def __init__(self, name: str, arguments: Mapping[str, Any], address: str) -> None:
        self._name, self._arguments, self._address = name, dict(arguments), address.rstrip("/")
        about, schema = self._get("metadata"), self._get("schema")["action"]
        self._schema = schema
        digest = hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()
        self.version = f"{about.get('name')} {about.get('version')}, actions {digest[:12]}"
        # Every action has `metadata`, which is not for the policy.
        fields = {k: v for k, v in schema.get("properties", {}).items() if k != "metadata"}
        required = [name for name in schema.get("required", ()) if name in fields]
        texts = [name for name in required if fields[name].get("type") == "string"]
        self._text_field = texts[0] if len(required) == len(texts) == 1 else ""
        self._fields = fields

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List seeds with what the environment shows first."""
        results = []
        for seed in range(request["limit"]):
            episode = _Session(self, {"seed": seed})
            task = {"seed": seed, "opening": episode.opening}
            form = {"name": self._name, "action": self._fields}
            messages = [{"role": "user", "content": episode.opening}]
            results.append(
                {"task": task, "messages": messages, "tools": [] if self._text_field else [form]}
            )
            episode.close()
        return results

    def begin(self, task: Mapping[str, Any]) -> "_Session":
        """Open a session and reset it to a seed."""
        episode = _Session(self, task)
        if episode.opening != task["opening"]:
            episode.close()
            raise ValueError("the seed does not show what it showed before")
        return episode

    def connect(self) -> Any:
        """Open a connection of its own."""
        client = importlib.import_module("websockets.sync.client")
        address = self._address.replace("http", "ws", 1) + "/ws"
        return client.connect(address, open_timeout=TIMEOUT_S, max_size=2**22, proxy=None)

    def reset_arguments(self, seed: int) -> dict[str, Any]:
        """Return what `reset` is called with."""
        return {**self._arguments, "seed": seed}

    def action(self, turn: Turn) -> dict[str, Any] | None:
        """Read the action of a turn; None if there is none."""
        try:
            value = json.loads(turn.text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        return {self._text_field: turn.text} if self._text_field and turn.text else None

    def _get(self, name: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._address}/{name}", timeout=TIMEOUT_S) as reply:
            return json.load(reply)


class _Session:
    """One episode."""

    def __init__(self, host: OpenEnvHost, task: Mapping[str, Any]) -> None:
        self._host = host
        self._socket = host.connect()
        self._reward = 0.0
        try:
            first = self._ask("reset", host.reset_arguments(task["seed"]))
            self.opening = _text(first["observation"])
        except Exception:
            self.close()
            raise

    def step(self, turn: Turn) -> Step:
        action = self._host.action(turn)
        if action is None:
            return Step(done=True, reward=self._reward)
        result = self._ask("step", action)
        if "refused" in result:
            return Step([{"role": "tool", "content": f"error: {result['refused']}"}])
        self._reward += float(result.get("reward") or 0.0)
        if result.get("done"):
            return Step(done=True, reward=self._reward)
        return Step([{"role": "tool", "content": _text(result["observation"])}])

    def close(self) -> None:
        """End the session, and wait until the server has: then it has room for another one."""
        with contextlib.suppress(Exception):  # the server may be gone, and the session with it
            self._socket.send(json.dumps({"type": "close"}))
            # It closes without a word; one that answers does not know the message.
            self._socket.recv(timeout=CLOSE_TIMEOUT_S)
        self._socket.close()

    def _ask(self, kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
        # A server without room says so and closes: what it has said is still there to be read.
        with contextlib.suppress(Exception):
            self._socket.send(json.dumps({"type": kind, "data": content}))
        reply = json.loads(self._socket.recv(timeout=TIMEOUT_S))
        if reply["type"] != "error":
            return reply["data"]
        if kind == "step" and reply["data"].get("code") in _REFUSED:
            return {"refused": reply["data"].get("message", "")[:200]}
        error = FullError if reply["data"].get("code") == _FULL else RuntimeError
        raise error(f"{reply['data'].get('code')}: {reply['data'].get('message')}")


def _text(observation: Mapping[str, Any]) -> str:
    """Show an observation: its only text, or all of it as JSON."""
    fields = {k: v for k, v in observation.items() if k not in ("metadata", "done", "reward")}
    if len(fields) == 1 and isinstance(only := next(iter(fields.values())), str):
        return only
    return json.dumps(fields, ensure_ascii=False)


if __name__ == "__main__":
    serve(lambda: OpenEnvHost(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]))
