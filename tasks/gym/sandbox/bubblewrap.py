"""The bubblewrap command that the zygote runs under: separate namespaces and file system.

Visible are system libraries, compilers, the interpreter with its standard library, and the modules
of the sandbox, all read-only; no network, no other process, no environment. /tmp is a small file
system in memory. There is no /proc.
"""

import functools
import logging
import shutil
import subprocess
from pathlib import Path

from tasks.gym.sandbox import (
    asserts,
    calls,
    candidate,
    checker,
    comparison,
    confinement,
    executor,
    threads,
    toolchains,
    wire,
    zygote,
)

_LOG = logging.getLogger(__name__)
_MODULES = (
    *(asserts, calls, candidate, checker, comparison, confinement, threads, wire, executor),
    zygote,
)
_LINKS = ("/lib", "/lib32", "/lib64", "/bin")
WORK = "/tmp/work"


@functools.cache
def bubblewrap(work_mib: int) -> tuple[str, ...]:
    """Return the command's prefix; empty if it is not installed or does not work here.

    A trial decides: containers and hardened kernels often refuse namespaces.
    """
    command = shutil.which("bwrap")
    if command is None:
        return ()
    here = Path(__file__).parent
    sources = [folder / "__init__.py" for folder in (here, here.parent, here.parents[1])]
    sources += [Path(str(module.__file__)) for module in _MODULES]
    # Not --die-with-parent: the parent is the thread that started it. Its socket ends it.
    prefix = [command, "--unshare-all", "--new-session", "--cap-drop", "ALL"]
    # First, so that paths below the host's /tmp can be mounted in it.
    prefix += ["--dev", "/dev", "--size", str(work_mib * 2**20), "--tmpfs", "/tmp"]
    for path in toolchains.readable_paths():
        if path in _LINKS and Path(path).is_symlink():
            prefix += ["--symlink", str(Path(path).readlink()), path]
        elif not path.startswith("/dev/"):
            prefix += ["--ro-bind", path, path]
    for path in toolchains.masked_paths():
        prefix += ["--tmpfs", path]
    for path in sources:
        prefix += ["--ro-bind", str(path), str(path)]
    prefix += ["--dir", WORK, "--chdir", "/tmp", "--"]
    trial = subprocess.run(
        [*prefix, *toolchains.python_command(), "-c", ""], capture_output=True, env={}, timeout=60
    )
    if trial.returncode:
        _LOG.warning("bubblewrap does not work here: %s", trial.stderr.decode()[-200:].strip())
        return ()
    return tuple(prefix)
