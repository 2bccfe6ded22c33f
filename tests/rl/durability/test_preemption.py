import os
import signal
import threading
import time

import pytest

from tasks.errors import Preempted
from tasks.rl.durability.preemption import PATIENCE_S, listen_for_sigterm
from tasks.rl.run import train


def test_a_step_that_takes_too_long_is_abandoned_and_done_again(phase_in, scorer, tmp_path):
    slow = scorer()
    gather = slow.gather

    def hanging():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60.0)

    with listen_for_sigterm(0.5) as stop:
        steps = train(phase_in(tmp_path, steps=2), slow, stop)
        next(steps)
        slow.gather = hanging
        with pytest.raises(Preempted, match="was abandoned"):
            next(steps)
    assert ["000001"] == [path.name for path in (tmp_path / "committed").iterdir()]

    slow.gather, slow.waiting = gather, []
    assert [2] == [r.report.step for r in train(phase_in(tmp_path, steps=2), slow)]


def test_an_abandoned_step_stops_a_library_that_swallows_errors(monkeypatch):
    monkeypatch.setattr("tasks.rl.durability.preemption._AGAIN_S", 0.01)
    swallowed = 0
    with listen_for_sigterm(0.02) as stop, stop.abandon_late_step():
        os.kill(os.getpid(), signal.SIGTERM)
        while swallowed < 3:
            try:
                time.sleep(10.0)
            except Preempted:
                swallowed += 1
    assert 3 == swallowed


def test_nothing_is_abandoned_before_sigterm_or_after_the_block():
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM)
    with listen_for_sigterm(0.01) as stop:
        with stop.abandon_late_step():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        assert stop.requested.is_set()
    assert before == (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM))


def test_the_upload_gets_what_the_step_left_of_the_grace_period():
    with listen_for_sigterm(100.0) as stop:
        assert PATIENCE_S == stop.seconds_left()
        os.kill(os.getpid(), signal.SIGTERM)
        assert 94.0 < stop.seconds_left() <= 95.0


def test_told_before_the_first_step_it_does_not_begin(phase_in, scorer, tmp_path):
    with listen_for_sigterm(30.0) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Preempted, match="before step 1"):
            next(train(phase_in(tmp_path), scorer(), stop))


def test_another_thread_than_the_main_one_cannot_listen_and_works_all_the_same():
    requested = []

    def work():
        with listen_for_sigterm(1.0) as stop, stop.abandon_late_step():
            requested.append(stop.requested.is_set())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [False] == requested
