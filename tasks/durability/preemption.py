"""How a training run uses the grace period after SIGTERM.

The first part of the grace period is for finishing and committing the step in flight. A step that
takes longer is abandoned and repeated later from the last committed step. The rest is for uploading
the committed state.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tasks.errors import PreemptionError

GRACE_S = 30.0
"""The default of Kubernetes."""
STEP_SHARE = 0.6
"""Share of the grace period for the step in flight."""
UPLOAD_SHARE = 0.95
"""Share of the grace period by which uploads must end; the rest is for reporting to Flyte."""
PATIENCE_S = 600.0
"""Time for the last upload of a run that ends with an error, without SIGTERM."""
_AGAIN_S = 5.0
"""A library may swallow the error, so it is raised repeatedly until the step has ended."""


class Termination:
    """Whether SIGTERM was received, and the time left. Created by `listen_for_sigterm`."""

    def __init__(self, grace_s: float) -> None:
        self.requested = threading.Event()
        self._grace_s = grace_s
        self._since = 0.0
        self._abandoning = False

    def notify(self) -> None:
        """Record SIGTERM; of several, the first one counts."""
        if not self.requested.is_set():
            self._since = time.monotonic()
            self.requested.set()
            self._arm()

    def seconds_left(self) -> float:
        """How long the last upload may take, in seconds."""
        if not self.requested.is_set():
            return PATIENCE_S
        return max(0.0, UPLOAD_SHARE * self._grace_s - (time.monotonic() - self._since))

    @contextmanager
    def abandon_late_step(self) -> Iterator[None]:
        """Raise PreemptionError in the block when the time for the step in flight has expired."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGALRM, self._abandon)
        self._abandoning = True
        try:
            # SIGTERM came before the block: its handler had no step to abandon.
            if self.requested.is_set():
                self._arm()
            yield
        finally:
            self._abandoning = False
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, previous)

    def _arm(self) -> None:
        if self._abandoning:
            remaining_s = STEP_SHARE * self._grace_s - (time.monotonic() - self._since)
            # 0 would disarm the timer, where the time has run out already.
            signal.setitimer(signal.ITIMER_REAL, max(0.001, remaining_s), _AGAIN_S)

    def _abandon(self, _: int, __: FrameType | None) -> None:
        if self._abandoning:
            raise PreemptionError(
                f"stopped by SIGTERM; the step in flight took more than {STEP_SHARE:.0%} of "
                f"{self._grace_s:.0f} s and was abandoned; the last committed step is safe"
            )


@contextmanager
def listen_for_sigterm(grace_s: float) -> Iterator[Termination]:
    """Handle SIGTERM while the block runs; must be called in the main thread.

    Args:
        grace_s: seconds between SIGTERM and SIGKILL.
    """
    stop = Termination(grace_s)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: stop.notify())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, previous)
