"""SIGTERM: how long a phase has, and what it does with that time.

The first part of the grace period is for finishing and committing the step in flight. A step that
takes longer is abandoned: it is done again from the committed step before it. The rest is for
uploading what was committed.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tasks.errors import Preempted

GRACE_S = 30.0
"""Kubernetes' own default, where nobody says otherwise."""
STEP_SHARE = 0.6
"""Of the grace period, for the step in flight."""
UPLOAD_SHARE = 0.95
"""Of the grace period, until an upload must have ended; the rest is for telling Flyte."""
PATIENCE_S = 600.0
"""For the last upload of a phase that ends by an error and was not told to stop."""
_AGAIN_S = 5.0
"""A library may have swallowed the error, so it is raised until the step has ended."""


class Termination:
    """Whether SIGTERM has come, and the time that is left then. Made by `listening`."""

    def __init__(self, grace_s: float) -> None:
        self.told = threading.Event()
        self._grace_s = grace_s
        self._since = 0.0
        self._abandoning = False

    def tell(self) -> None:
        """SIGTERM came; of several, the first one counts."""
        if not self.told.is_set():
            self._since = time.monotonic()
            self.told.set()
            self._arm()

    def seconds_left(self) -> float:
        """How long the last upload may take, in seconds."""
        if not self.told.is_set():
            return PATIENCE_S
        return max(0.0, UPLOAD_SHARE * self._grace_s - (time.monotonic() - self._since))

    @contextmanager
    def abandoning(self) -> Iterator[None]:
        """Raise Preempted in the block when the time for the step in flight is over."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGALRM, self._abandon)
        self._abandoning = True
        try:
            if self.told.is_set():
                self._arm()
            yield
        finally:
            self._abandoning = False
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, previous)

    def _arm(self) -> None:
        if self._abandoning:
            left = STEP_SHARE * self._grace_s - (time.monotonic() - self._since)
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left), _AGAIN_S)

    def _abandon(self, _: int, __: FrameType | None) -> None:
        if self._abandoning:
            raise Preempted(
                f"stopped by SIGTERM; the step in flight took more than {STEP_SHARE:.0%} of "
                f"{self._grace_s:.0f} s and was abandoned, the committed one before it is safe"
            )


@contextmanager
def listening(grace_s: float) -> Iterator[Termination]:
    """Listen for SIGTERM while the block runs; only the main thread can.

    Args:
        grace_s: seconds between SIGTERM and SIGKILL.
    """
    stop = Termination(grace_s)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: stop.tell())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, previous)
