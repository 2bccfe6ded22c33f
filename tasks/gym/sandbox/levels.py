"""Isolation levels of the sandbox, and the choice of one.

    bubblewrap  namespaces: no network, no process, no file of the host but system libraries,
                compilers and Python, a file system in memory; in addition the kernel level
    kernel      Landlock and a list of system calls: access to all other files is refused, no
                network, no second process, no signal to others, nothing written by a program; a
                folder for compilers below the temporary folder. There are no namespaces, so that
                an error in these lists would expose the host
    plain       a separate process with limits on CPU time, memory and file size, its tree killed
                and reaped. Programs can read this user's files, write files, use the network,
                start processes and signal them, including this one

The best level that works is used. Below `kernel` only if EACHPROMPT_SANDBOX=plain allows it;
EACHPROMPT_SANDBOX=bubblewrap refuses everything less than bubblewrap.
"""

import logging
from enum import StrEnum

from tasks.errors import SettingsError
from tasks.gym.sandbox.bubblewrap import bubblewrap
from tasks.gym.sandbox.calls import CallFilter, Calls
from tasks.gym.sandbox.confinement import landlock_version
from tasks.gym.sandbox.limits import Limits

_LOG = logging.getLogger(__name__)
VARIABLE = "EACHPROMPT_SANDBOX"


class Level(StrEnum):
    """Isolation levels, strongest first."""

    BUBBLEWRAP = "bubblewrap"
    KERNEL = "kernel"
    PLAIN = "plain"


_ORDER = list(Level)
_MISSING = {
    Level.KERNEL: "programs have no namespaces of their own; only Landlock and a list of system "
    "calls isolate them from the host (apt-get install bubblewrap gives them some)",
    Level.PLAIN: "programs can read your files, write files, use the network, start processes and "
    "signal yours; only CPU time, memory and file size are limited",
}


def available() -> Level:
    """Return the best level that works on this machine."""
    if bubblewrap(work_mib()):
        return Level.BUBBLEWRAP
    if landlock_version() and CallFilter(Calls.FUNCTIONS).works:
        return Level.KERNEL
    return Level.PLAIN


def choose(allowed: str, best: Level) -> Level:
    """Return the level to use: the best one, if the user allows it.

    Args:
        allowed: the lowest level allowed; empty for `kernel`.
        best: the best level that works here.

    Raises:
        SettingsError: there is no such level, or it does not work here.
    """
    if allowed and allowed not in _ORDER:
        raise SettingsError(f"{VARIABLE}={allowed}: use one of {', '.join(_ORDER)}.")
    least = Level(allowed or Level.KERNEL)
    if _ORDER.index(best) > _ORDER.index(least):
        raise SettingsError(
            f"Programs are run in a sandbox of level {least!s} or better, and only {best!s} works "
            f"here. Install bubblewrap (apt-get install --yes bubblewrap) and allow it its "
            f"namespaces, or set {VARIABLE}={best!s} and accept that {_MISSING[best]}."
        )
    if best in _MISSING:
        _LOG.warning("sandbox level %s: %s", best, _MISSING[best])
    return best


def work_mib() -> int:
    """Return the size of the folder that compilers write to."""
    return 4 * Limits().compile_file_mib
