"""Parts of a work that are computed by other processes; their engine here is a toy."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import psutil
import pytest
import torch

from tasks.engines.part_workers import PartWorkers, Twin
from tasks.engines.shared_tensors import SharedTensors, move_into
from tasks.errors import DataError, EngineError
from tests.part_cores import pids, start


class Toy:
    """Multiplies by its weights, and knows in which process."""

    def __init__(self) -> None:
        self.weights = {"a": torch.zeros(3), "b": torch.zeros((), dtype=torch.int64)}

    def products(self, part: torch.Tensor) -> Iterator[tuple[int, list[float]]]:
        for row in part:
            yield os.getpid(), (row * self.weights["a"]).tolist()

    def refuse(self, part: torch.Tensor) -> Iterator[None]:
        raise DataError(f"part {part.tolist()} is wrong")
        yield

    def kill(self, part: torch.Tensor) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield


def open_toy(files: Sequence[int]) -> Toy:
    toy = Toy()
    move_into(SharedTensors(toy.weights, files[0]), toy.weights, fill=False)
    return toy


PARTS = [(torch.arange(6.0).view(2, 3) + number,) for number in range(5)]


@pytest.fixture(scope="module")
def toy():
    made = Toy()
    made.weights["a"].copy_(torch.tensor([1.0, 2.0, 3.0]))
    return made


@pytest.fixture(scope="module")
def twin(toy):
    shared = SharedTensors(toy.weights)
    move_into(shared, toy.weights, fill=True)
    return Twin(open_toy, (shared,))


@pytest.fixture(scope="module")
def workers():
    made = PartWorkers(2, imports=["tests.engines.test_part_workers"])
    start(made)
    yield made
    made.close()


def results(workers, toy, twin, method="products"):
    """Rows of every part in order, and the processes that computed."""
    rows, computing = {}, set()
    for number, (pid, row) in workers.each(
        lambda: twin, method, getattr(toy, method), PARTS, nbytes=1
    ):
        rows.setdefault(number, []).append(row)
        computing.add(pid)
    return [rows[number] for number in range(len(PARTS))], computing


def test_workers_compute_with_the_weights_of_their_parent_as_they_are_now(toy, twin, workers):
    alone, here = results(PartWorkers(1), toy, twin)
    theirs, computing = results(workers, toy, twin)
    toy.weights["a"].mul_(2.0)
    doubled, _ = results(workers, toy, twin)

    assert {os.getpid()} == here
    assert set(pids(workers)) == computing
    assert alone == theirs
    assert [[[2 * one for one in row] for row in part] for part in alone] == doubled


def test_a_dead_worker_is_named_and_replaced(toy, twin, workers):
    start(workers)
    before = pids(workers)
    with pytest.raises(EngineError, match=r"worker process \d+ ended with signal 9") as raised:
        results(workers, toy, twin, "kill")

    assert str(raised.value).split()[2] in map(str, before)
    assert 5 == len(results(workers, toy, twin)[0])  # here, until new ones are ready
    start(workers)
    assert not set(before) & results(workers, toy, twin)[1]
    assert not [pid for pid in before if is_running(pid)]


def test_what_a_part_raises_is_raised_here_and_the_next_work_is_done(toy, twin, workers):
    with pytest.raises(DataError, match=r"part \[\[.*\]\] is wrong"):
        results(workers, toy, twin, "refuse")

    assert len(PARTS) == len(results(workers, toy, twin)[0])


def test_little_work_starts_nobody(toy, twin):
    tried = PartWorkers(4)
    results(tried, toy, twin)

    assert [] == pids(tried)


PARENT = """
import sys, threading, time
from tests.engines.test_part_workers import PARTS, open_sleeper
from tests.part_cores import pids, start
from tasks.engines.part_workers import PartWorkers, Twin
workers = PartWorkers(2, imports=["tests.engines.test_part_workers"])
start(workers)
print(*pids(workers), flush=True)
list(workers.each(lambda: Twin(open_sleeper, ()), "sleep", None, PARTS[:2], nbytes=1))
"""


class Sleeper:
    """Is busy for longer than any test."""

    def sleep(self, part: torch.Tensor) -> Iterator[None]:
        time.sleep(3600)
        yield


def open_sleeper(_: Sequence[int]) -> Sleeper:
    return Sleeper()


@pytest.mark.slow
def test_workers_in_the_middle_of_a_part_end_with_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert 2 == len(pids)
    assert all(map(is_running, pids))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    while any(map(is_running, pids)):
        time.sleep(0.1)


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
