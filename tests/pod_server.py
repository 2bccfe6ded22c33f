"""Start pods of a cluster in tests: fork a process that has imported the shipped code.

    python -m tests.pod_server MODULE...

Reads one JSON object per line: `args`, `environment`, `folder` and `log` start a pod, and the
answer is its process id; `wait` names one, and the answer is its exit code. A pod has an
environment, a working directory and a temporary directory of its own, but no image and no file
system.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class PodServer:
    """The process that starts pods, seen from the one that asks for them."""

    def __init__(self, code: Path, environment: Mapping[str, str], modules: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.pod_server", *modules],
            cwd=code,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self, args: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
    ) -> int:
        """Start a pod and return its process id."""
        order = {"args": args, "environment": dict(environment)}
        return self._tell(order | {"folder": str(folder), "log": str(log)})

    def wait(self, pid: int) -> int:
        """Return the exit code of a pod when it has ended."""
        return self._tell({"wait": pid})

    def _tell(self, order: Mapping[str, object]) -> int:
        """Tell the process one thing, and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def run_pod(order: dict[str, Any]) -> None:
    """Run flytekit's entry point as the command of a container does; does not return."""
    from flytekit.bin.entrypoint import _pass_through

    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    tempfile.tempdir = None  # read anew from TMPDIR
    sys.argv = order["args"]
    _pass_through(args=order["args"])


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries write there as well
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                run_pod(order)
        answers.write(f"{answer}\n")
        answers.flush()


if __name__ == "__main__":
    main()
