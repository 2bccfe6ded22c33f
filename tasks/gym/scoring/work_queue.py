"""A bounded queue and the threads that process it in batches.

For the scoring service: `put` blocks while the queue is full. A thread takes its fair share of
the waiting jobs, so that a message to a worker process has many jobs when many wait and a single
one when few do.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

JobT = TypeVar("JobT")
_GRACE_S = 5.0


class WorkQueue(Generic[JobT]):
    """Threads that start with the first job and end with `close`.

    Args:
        work: receives one batch; must not raise.
        portion: maximum number of jobs in a batch.
        bound: maximum number of waiting jobs.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[JobT]], None],
        *,
        num_threads: int,
        portion: int = 1,
        bound: int,
    ) -> None:
        self._name = name
        self._work = work
        self._num_threads = num_threads
        self._portion = portion
        self._bound = bound
        self._waiting: deque[JobT] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._high_water = 0

    @property
    def high_water(self) -> int:
        """Return the largest number of jobs that waited at the same time."""
        return self._high_water

    def put(self, job: JobT) -> None:
        """Add a job; wait while the queue is full."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < self._bound or self._closed)
            self._waiting.append(job)
            self._high_water = max(self._high_water, len(self._waiting))
            if len(self._threads) < self._num_threads:
                thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Discard waiting jobs and stop the threads, without waiting long for a busy one."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_GRACE_S)

    def _serve(self) -> None:
        while portion := self._take():
            self._work(portion)

    def _take(self) -> list[JobT]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) > 0 or self._closed)
            share = -(-len(self._waiting) // (2 * self._num_threads))
            jobs = [self._waiting.popleft() for _ in range(min(share, self._portion))]
            self._changed.notify_all()
            return jobs
