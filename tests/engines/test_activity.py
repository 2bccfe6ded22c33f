"""Whether processes compute, on numbers; with processes: rollout_vllm/test_own_process.py."""

from collections import namedtuple

import psutil
import pytest

from tasks.engines import activity
from tasks.engines.activity import Activity, ProcessCpuTime, Watch

Times = namedtuple("Times", "user system")


class Process:
    """What is read of a psutil.Process."""

    def __init__(self, pid):
        self.pid, self.used_s, self.state = pid, 0.0, psutil.STATUS_SLEEPING

    def cpu_times(self):
        if self.state == "gone":
            raise psutil.NoSuchProcess(self.pid)
        return Times(self.used_s, 0.0)

    def status(self):
        return self.state


@pytest.fixture
def processes():
    return [Process(7), Process(8)]


@pytest.fixture
def watch(monkeypatch, processes):
    monkeypatch.setattr(activity, "STILL_LOOKS", 2)
    return Watch(processes)


def test_a_process_that_computes_moves_and_one_that_waits_does_not():
    alone = Activity()
    alone._cpu_s -= 1.0  # as if it had computed for a second
    assert alone.moved()

    alone._cpu_s += 1e9  # whatever this process computes meanwhile is less
    assert not alone.moved()


def test_a_transfer_to_a_disk_is_work(monkeypatch, tmp_path):
    counts = tmp_path / "io"
    counts.write_text("rchar: 9\nread_bytes: 1\nwrite_bytes: 1\n")
    monkeypatch.setattr(activity, "_IO", counts)
    monkeypatch.setattr(activity, "WORK_S", 1e9)
    alone = Activity()
    assert not alone.moved()

    counts.write_text("rchar: 99\nread_bytes: 1\nwrite_bytes: 4097\n")
    assert alone.moved()


def test_what_a_started_process_computes_is_work(processes):
    computing = ProcessCpuTime(processes)
    assert not computing.moved(processes)

    processes[1].used_s = 0.5
    assert computing.moved(processes)
    assert not computing.moved(processes)


def test_a_process_that_ends_takes_nothing_away_from_the_work_of_another(processes):
    processes[0].used_s = 100.0
    computing = ProcessCpuTime(processes)

    processes[0].state, processes[1].used_s = "gone", 0.5
    assert computing.moved(processes)


def test_processes_that_compute_nothing_for_all_looks_hang(watch, processes):
    assert [False, True] == [watch.hangs(), watch.hangs()]

    processes[0].used_s += 1.0
    assert [False, False, True] == [watch.hangs(), watch.hangs(), watch.hangs()]


def test_a_stopped_process_hangs_the_one_that_polls_for_it(watch, processes):
    processes[1].state, found = psutil.STATUS_STOPPED, []
    for _ in range(2):
        processes[0].used_s += 1.0
        found.append(watch.hangs())

    assert [False, True] == found


def test_a_process_that_computes_does_not_hang(watch, processes):
    for _ in range(5):
        processes[0].used_s += 1.0
        assert not watch.hangs()
