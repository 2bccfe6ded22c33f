"""Workers that hang are killed, reaped and replaced; nothing outlives its parent."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import hostile
import pytest

from tasks.rewards.workers.pool import WorkerFailed, WorkerPool, WorkerTimeout

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
    with pytest.raises(WorkerFailed, match="ZeroDivisionError"):
        pool.run(divmod, (1, 0), 5.0)

    assert first == pool.run(os.getpid, (), 5.0)


def test_a_call_that_hangs_is_killed_reaped_and_replaced(pool: WorkerPool) -> None:
    first = pool.run(os.getpid, (), 5.0)
    started = time.monotonic()
    with pytest.raises(WorkerTimeout, match="sleep took longer than"):
        pool.run(time.sleep, (60,), 0.2)

    assert time.monotonic() - started < 5
    assert not Path(f"/proc/{first}").exists()
    assert first != pool.run(os.getpid, (), 5.0)


def test_a_worker_that_dies_is_reported_and_replaced(pool: WorkerPool) -> None:
    with pytest.raises(WorkerFailed, match="worker died in _exit"):
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
    assert 0 == pool.lost


def test_a_call_that_overruns_costs_the_calls_after_it_nothing(pool: WorkerPool) -> None:
    replies = list(pool.each(time.sleep, [(0,), (60,), (0,)], [5.0, 0.3, 5.0]))

    assert ["", "timeout", ""] == [reply.failure for reply in replies]
    assert 1 == pool.lost


def test_a_call_pays_for_its_own_death_only(pool: WorkerPool, tmp_path: Path) -> None:
    # The first time the worker dies of it, as of something an earlier call left behind.
    once = tmp_path / "once"
    replies = list(
        pool.each(hostile.dies_once, [(str(once),), (str(once),), (str(once),)], [5.0] * 3)
    )

    assert ["", "", ""] == [reply.failure for reply in replies]
    assert 1 == pool.lost


def test_idle_and_busy_workers_end_when_the_parent_is_killed() -> None:
    script = (
        "import os, sys, time, threading\n"
        "from tasks.rewards.workers.pool import WorkerPool\n"
        "pool = WorkerPool(2)\n"
        "print(pool.run(os.getpid, (), 5.0), flush=True)\n"
        "threading.Thread(target=pool.run, args=(time.sleep, (60,), 0.3)).start()\n"
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
    deadline = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not Path(f"/proc/{worker}").exists()
