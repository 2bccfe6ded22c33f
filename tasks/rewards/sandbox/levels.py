"""How well programs are kept apart from this machine, and the refusal to go below that.

    bubblewrap  namespaces: no network, no process, no file of the host but system libraries,
                compilers and Python, a file system in memory; inside it, the kernel level
    kernel      Landlock and a list of system calls: the same files by refusal instead of absence,
                no network, no second process, no signal to others, nothing written by a program;
                a folder for compilers below the temporary folder. Lost: namespaces, so that a
                fault in the kernel's list would show the host
    plain       a process of its own with limits on CPU time, memory and file size, its tree killed
                and reaped. Lost: programs can read this user's files, write files, use the
                network, start processes and signal them, this one included

The best level that works is used. Below `kernel` only if EACHPROMPT_SANDBOX=plain allows it;
EACHPROMPT_SANDBOX=bubblewrap refuses everything less than bubblewrap.
"""

import logging
from enum import StrEnum

from tasks.errors import SettingsError
from tasks.rewards.sandbox.bubblewrap import bubblewrap
from tasks.rewards.sandbox.calls import CallFilter, Calls
from tasks.rewards.sandbox.confinement import landlock_version
from tasks.rewards.sandbox.limits import Limits

_LOG = logging.getLogger(__name__)
VARIABLE = "EACHPROMPT_SANDBOX"


class Level(StrEnum):
    """How well programs are kept apart, best first."""

    BUBBLEWRAP = "bubblewrap"
    KERNEL = "kernel"
    PLAIN = "plain"


_ORDER = list(Level)
_LOST = {
    Level.KERNEL: "programs have no namespaces of their own; Landlock and a list of system calls "
    "alone keep them from the host",
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
    """Return the level to use: the best there is, if what the user allows goes as low as that.

    Args:
        allowed: the least level that will do; empty for `kernel`.
        best: the best level that works here.

    Raises:
        SettingsError: no such level, or nothing as good works here.
    """
    if allowed and allowed not in _ORDER:
        raise SettingsError(f"{VARIABLE}={allowed}: use one of {', '.join(_ORDER)}.")
    least = Level(allowed or Level.KERNEL)
    if _ORDER.index(best) > _ORDER.index(least):
        raise SettingsError(
            f"Programs are run in a sandbox of level {least!s} or better, and only {best!s} works "
            f"here. Install bubblewrap (apt-get install --yes bubblewrap) and allow it its "
            f"namespaces, or set {VARIABLE}={best!s} and accept that {_LOST[best]}."
        )
    if best in _LOST:
        _LOG.warning("sandbox level %s: %s", best, _LOST[best])
    return best


def work_mib() -> int:
    """Return the size of the folder that compilers write to."""
    return 4 * Limits().compile_file_mib
