"""Other processes and servers, as tests start and end them."""

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer


def run_process(
    command: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    timeout: float | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return what it printed.

    Args:
        command: with its arguments.
        cwd: folder that it runs in; None is this one.
        variables: beside those of this process, or other ones.
        env: all its variables, in place of those of this process.
        input: what it reads.
        timeout: seconds.
        check: an AssertionError with the end of what it printed, unless it ends with 0.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**(os.environ if env is None else env), **(variables or {})},
        input=input,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Answer requests in a thread, which has ended where the block has."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
