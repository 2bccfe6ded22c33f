"""Workers that hang are killed, reaped and replaced; nothing outlives its parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import hostile
import pytest

from tasks.gym.scoring.responses import may_be_caused_by_response
from tasks.gym.workers import (
    WALL_FACTOR,
    WorkerFailure,
    WorkerPool,
    WorkerStarvation,
    WorkerTimeout,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def pool():
    one = WorkerPool(num_workers=1)
    yield one
    one.close()


def children() -> set[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for listing in tasks for pid in listing.read_text().split()}


def test_a_call_gives_its_result_and_the_worker_is_used_again(pool: WorkerPool) -> None:
    first = pool.run(os.getpid, (), 5.0)

    assert 8 == pool.run(pow, (2, 3), 5.0)
    assert first == pool.run(os.getpid, (), 5.0) != os.getpid()


def test_a_call_that_raises_names_the_error_and_keeps_the_worker(pool: WorkerPool) -> None:
    first = pool.run(os.getpid, (), 5.0)
    with pytest.raises(WorkerFailure, match="ZeroDivisionError"):
        pool.run(divmod, (1, 0), 5.0)

    assert first == pool.run(os.getpid, (), 5.0)


def test_an_error_of_this_machine_whatever_its_class_is_no_fault_of_a_response(
    pool: WorkerPool,
) -> None:
    (gone,) = pool.each(os.kill, [(2**22 + 1, 0)], [5.0])  # no process has so large a number
    (unread,) = pool.each(float, [("x",)], [5.0])

    assert ["ProcessLookupError", "ValueError"] == [gone.error, unread.error]
    assert not may_be_caused_by_response(gone)
    assert may_be_caused_by_response(unread)


def test_a_call_that_hangs_is_killed_reaped_and_replaced(pool: WorkerPool) -> None:
    first = pool.run(os.getpid, (), 5.0)
    with pytest.raises(WorkerTimeout, match="computes: the CPU time is used up") as error:
        pool.run(hostile.computes, (600.0,), 0.2)

    assert WorkerTimeout is error.type
    assert not Path(f"/proc/{first}").exists()
    assert first != pool.run(os.getpid, (), 5.0)


def test_a_call_that_waits_is_ended_on_the_clock_and_called_starved(pool: WorkerPool) -> None:
    started = time.monotonic()
    with pytest.raises(WorkerStarvation, match="sleep: the wall-clock time is used up"):
        pool.run(time.sleep, (600,), 0.05)

    assert WALL_FACTOR * 0.05 <= time.monotonic() - started


@pytest.fixture
def burners():
    command = [sys.executable, "-c", "while True: pass"]
    # A session of its own each: Linux shares a processor among sessions, not processes.
    count = 3 * (os.cpu_count() or 1)
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_loaded_machine_costs_a_call_no_result(pool: WorkerPool, burners: None) -> None:
    worker = pool.run(os.getpid, (), 5.0)
    started = time.monotonic()

    assert worker == pool.run(hostile.computes, (0.5,), 0.8)
    assert time.monotonic() - started > 0.8


def test_a_worker_that_is_stopped_for_a_while_keeps_its_call(pool: WorkerPool) -> None:
    worker = pool.run(os.getpid, (), 5.0)
    threading.Timer(0.1, os.kill, (worker, signal.SIGSTOP)).start()
    threading.Timer(1.1, os.kill, (worker, signal.SIGCONT)).start()
    started = time.monotonic()

    assert worker == pool.run(hostile.computes, (0.3,), 0.5)
    assert time.monotonic() - started > 1.0


def test_a_worker_that_stays_stopped_is_killed_and_called_starved(pool: WorkerPool) -> None:
    worker = pool.run(os.getpid, (), 5.0)
    with pytest.raises(WorkerStarvation):
        pool.run(os.kill, (worker, signal.SIGSTOP), 0.05)

    assert worker != pool.run(os.getpid, (), 5.0)


@pytest.mark.slow
@pytest.mark.parametrize(("outer_s", "inner_s"), [(0.5, 5.0), (5.0, 0.1)])
def test_a_limit_within_a_limit_lengthens_neither(
    pool: WorkerPool, outer_s: float, inner_s: float
) -> None:
    with pytest.raises(WorkerTimeout):
        pool.run(hostile.nested, (outer_s, inner_s), 5.0)

    assert os.getpid() != pool.run(hostile.nested, (2.0, 1.0), 5.0)


def test_a_worker_that_dies_is_reported_and_replaced(pool: WorkerPool) -> None:
    with pytest.raises(WorkerFailure, match="worker died in _exit"):
        pool.run(os._exit, (1,), 5.0)

    assert 8 == pool.run(pow, (2, 3), 5.0)


def test_a_call_from_a_thread_works_and_closing_leaves_no_process(pool: WorkerPool) -> None:
    before = children()
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(pool.run(pow, (2, 5), 5.0)))
    thread.start()
    thread.join()
    pool.close()

    assert [32] == results
    assert before >= children()


def test_a_series_of_calls_has_one_reply_each_in_order(pool: WorkerPool) -> None:
    calls = [(7, 2), (1, 0), (9, 4)]
    replies = list(pool.each(divmod, calls, [5.0] * 3))

    assert [(3, 1), None, (2, 1)] == [reply.value for reply in replies]
    assert ["", "ZeroDivisionError", ""] == [reply.error for reply in replies]
    assert 0 == pool.num_lost


def test_a_call_that_overruns_costs_the_calls_after_it_nothing(pool: WorkerPool) -> None:
    replies = list(pool.each(hostile.computes, [(0,), (60,), (0,)], [5.0, 0.3, 5.0]))

    assert ["", "timeout", ""] == [reply.failure for reply in replies]
    assert 1 == pool.num_lost


def test_a_call_pays_for_its_own_death_only(pool: WorkerPool, tmp_path: Path) -> None:
    # The first time the worker dies of it, as of something an earlier call left behind.
    once = tmp_path / "once"
    replies = list(
        pool.each(hostile.dies_once, [(str(once),), (str(once),), (str(once),)], [5.0] * 3)
    )

    assert ["", "", ""] == [reply.failure for reply in replies]
    assert 1 == pool.num_lost


def test_idle_and_busy_workers_end_when_the_parent_is_killed() -> None:
    script = (
        "import os, sys, time, threading\n"
        "from tasks.gym.workers import WorkerPool\n"
        "pool = WorkerPool(2)\n"
        "print(pool.run(os.getpid, (), 5.0), flush=True)\n"
        "threading.Thread(target=pool.run, args=(time.sleep, (60,), 0.1)).start()\n"
        "time.sleep(0.5); print('busy', flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        worker = int(parent.stdout.readline())
        parent.stdout.readline()
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not Path(f"/proc/{worker}").exists()
