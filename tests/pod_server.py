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
import sys
import tempfile
from typing import Any


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
