"""Collect verdicts as they arrive and count their reasons."""

import threading
from collections import Counter
from typing import TYPE_CHECKING

from data_schemas.rollouts import ResponseScore
from data_schemas.verdicts import Verdict

if TYPE_CHECKING:
    pass


class Counters:
    """Thread-safe counts of verdicts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, verdict: Verdict) -> None:
        """Count one verdict under its reason."""
        with self._lock:
            self._counts["verdicts"] += 1
            self._counts["abstained"] += verdict.abstained
            self._counts["response_faults"] += verdict.by_response_fault
            self._counts["timeouts"] += "verifier_timeout:" in verdict.reason
            prefix = "abstained:" if verdict.abstained else ""
            self._counts[f"reason/{prefix}{verdict.reason}"] += 1

    def counts(self) -> dict[str, int]:
        """Return the counts so far, sorted by name."""
        with self._lock:
            always = dict.fromkeys(("verdicts", "abstained", "response_faults", "timeouts"), 0)
            return {**always, **dict(sorted(self._counts.items()))}


class Batch:
    """Verdicts that a caller waits for; the first error ends the wait."""

    def __init__(self, counters: Counters) -> None:
        self._tally = counters
        self._changed = threading.Condition()
        self._expected = 0
        self._scored: dict[tuple[str, int], ResponseScore] = {}
        self._error: Exception | None = None

    def expect(self, count: int) -> None:
        """Add to the number of verdicts to wait for."""
        with self._changed:
            self._expected += count

    def settle(self, key: tuple[str, int], scored: ResponseScore) -> None:
        """Add a verdict."""
        self._tally.add(scored.verdict)
        with self._changed:
            self._scored[key] = scored
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """End the wait with an error; only the first error is kept."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def raise_error(self) -> None:
        """Raise the error, if there is one."""
        if self._error is not None:
            raise self._error

    def wait(self) -> dict[tuple[str, int], ResponseScore]:
        """Wait for all verdicts, or raise the error."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._error is not None or len(self._scored) == self._expected
            )
            self.raise_error()
            return self._scored
