"""Whether an endpoint lives, however long it takes for a reply.

A model may think for minutes, so a request that waits says nothing about the endpoint. What
shows that it lives is any HTTP response, of whatever status, to any request. If there was none
for `SILENCE_S` while a request waits, the endpoint gets a request that costs it nothing; without
a response to that one it counts as gone, and all requests in flight are cut. So a process that
is stopped or killed is noticed within the sum of the three constants below, whatever the
deadline of a request. A server that answers nothing else while it computes a reply for longer
than that counts as gone too.
"""

import threading
import time
from collections.abc import Callable

SILENCE_S = 30.0
"""Seconds without any response, while a request waits, before the endpoint is looked at."""
LOOK_S = 10.0
"""Longest time of a look; vLLM answers within it while its model computes."""
TICK_S = 1.0
"""Interval at which a waiting request asks whether the endpoint is gone."""


class Life:
    """When an endpoint last responded.

    Args:
        look: sends a request that costs nothing; True if there was any response.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._last = float("-inf")
        self.is_gone = False

    def note_response(self) -> None:
        """Note a response."""
        self._last, self.is_gone = time.monotonic(), False

    def has_gone(self, since: float) -> bool:
        """Return whether the endpoint is gone.

        Args:
            since: when the waiting request was sent first, of the monotonic clock.
        """
        with self._lock:  # the others wait for one look
            silent_s = time.monotonic() - max(self._last, since)
            if not self.is_gone and silent_s >= SILENCE_S:
                self._update()
            return self.is_gone

    def back(self) -> bool:
        """Look once more at an endpoint that was gone; True if it lives."""
        with self._lock:
            if self.is_gone:
                self._update()
            return not self.is_gone

    def cause(self) -> str:
        """Say what was not seen."""
        return f"no sign of life for {SILENCE_S:.0f} s: its process is stopped or gone"

    def _update(self) -> None:
        if self._look():
            self.note_response()
        else:
            self.is_gone = True
