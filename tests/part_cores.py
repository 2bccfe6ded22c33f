"""A number of cores that this process has, whatever the machine has."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tasks.cores import LIMIT
from tasks.engines import part_workers
from tasks.engines.part_workers import PartWorkers, workers_here


def start(workers: PartWorkers) -> None:
    """Start all workers now, and wait for them."""
    workers._spent_s = part_workers.START_S
    workers._start()
    while not all(workers._is_ready(one) for one in list(workers._workers)):
        time.sleep(0.05)


def pids(workers: PartWorkers) -> list[int]:
    """Process ids of the processes that were started."""
    return [one.process.pid for one in workers._workers]


@contextmanager
def cores(count: int) -> Iterator[PartWorkers]:
    """Let engines that are opened in the block have so many workers, which have started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(count)), raising=False)
        patch.setenv(LIMIT, str(count))
        workers_here.cache_clear()
        workers = workers_here()
        if count > 1:
            start(workers)
        try:
            yield workers
        finally:
            workers.close()
            workers_here.cache_clear()
