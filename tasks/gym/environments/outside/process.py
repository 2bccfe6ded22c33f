"""A process that hosts an environment: one request at a time, each within limits.

Isolation: the environment is code that its user has installed, trusted like any dependency; what
the policy makes it do is not. It runs in an interpreter and process group of its own, without the
variables of ours (so without credentials), in an empty folder. It may read files and use the
network, which many environments need; one that runs the policy's programs has to confine them
itself. What it says is JSON, never unpickled. One that hangs, floods or dies is killed with what it
has started, and the next request starts a fresh one.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.errors import EngineError

TIMEOUT_S = 60.0
"""Wall-clock seconds for one turn; turns that are played again have as much each."""
START_TIMEOUT_S = 600.0
"""To import the library and to load the environment, which may build its data set."""
MAX_REPLY_BYTES = 4 * 2**20
MAX_TURN_BYTES = 2**18
"""Largest size of a reply to many turns, or with many tasks, for each of them: 20,000 characters in
JSON."""
_PASSED_ON = ("PATH", "LANG", "HF_HOME", "HF_HUB_OFFLINE")
_ROOT = Path(__file__).parents[4]


class EnvironmentFailure(EngineError):
    """An environment raised, hung, flooded or died: its episode has no verdict."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class HostProcess:
    """Starts when first asked, and again after it was killed.

    Args:
        command: the interpreter and its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def ask(self, request: Mapping[str, Any], num_turns: int = 1) -> dict[str, Any]:
        """Send a request and return the reply.

        Args:
            request: can be written as JSON.
            num_turns: that may have to be played, or tasks that may be listed.

        Raises:
            EnvironmentFailure: there is no reply in time, it is too long, or it names an error.
        """
        fresh = self._process is None
        process = self._process or self._start()
        limit_s = TIMEOUT_S * num_turns + (START_TIMEOUT_S if fresh else 0.0)
        try:
            end = time.monotonic() + limit_s
            _write_line(process, json.dumps(request).encode() + b"\n", end)
            reply = json.loads(
                _read_line(process, end, max(MAX_REPLY_BYTES, MAX_TURN_BYTES * num_turns))
            )
        except (OSError, ValueError, EnvironmentFailure) as error:
            self.close()
            if isinstance(error, EnvironmentFailure):
                raise
            raise EnvironmentFailure("environment_died", str(error)) from error
        if not isinstance(reply, dict):
            raise EnvironmentFailure("environment_raised", "the reply is no object")
        if "error" in reply:
            raise EnvironmentFailure("environment_raised", f"{reply['error']}: {reply['detail']}")
        return reply

    def close(self) -> None:
        """Kill the process with everything it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _start(self) -> subprocess.Popen[bytes]:
        self._folder = tempfile.TemporaryDirectory(prefix="environment-")
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        own = {"HOME": self._folder.name, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0"}
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._folder.name,
                env=environment | own,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentFailure("environment_died", str(error)) from error
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        return self._process


def _write_line(process: subprocess.Popen[bytes], line: bytes, end: float) -> None:
    """Send one request.

    Raises:
        EnvironmentFailure: the process does not read it in time.
        OSError: the process has ended.
    """
    assert process.stdin is not None
    handle = process.stdin.fileno()
    rest = memoryview(line)
    while rest:
        _, ready, _ = select.select([], [handle], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise EnvironmentFailure("environment_hung", "the request is not read")
        rest = rest[os.write(handle, rest) :]


def _read_line(process: subprocess.Popen[bytes], end: float, max_bytes: int) -> bytes:
    """Read one reply.

    Raises:
        EnvironmentFailure: it does not end in time, or within its bytes.
    """
    assert process.stdout is not None
    handle = process.stdout.fileno()
    line = bytearray()
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([handle], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise EnvironmentFailure("environment_hung", "no answer in time")
        part = os.read(handle, 2**16)
        if not part:
            raise EnvironmentFailure("environment_died", "the process ended")
        line += part
        if len(line) > max_bytes:
            raise EnvironmentFailure("environment_flooded", f"over {max_bytes} bytes")
    return bytes(line)
