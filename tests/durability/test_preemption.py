import os
import signal
import threading
import time

import pytest

from tasks.durability.preemption import PATIENCE_S, STEP_SHARE, UPLOAD_SHARE, listen_for_sigterm
from tasks.errors import PreemptionError
from tasks.rl.phase import train

HOUR_S = 3600.0
"""A grace period that no machine is too slow for."""


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
        with pytest.raises(PreemptionError, match="was abandoned"):
            next(steps)
    assert ["000001"] == [path.name for path in (tmp_path / "committed").iterdir()]

    slow.gather, slow.waiting = gather, []
    assert [2] == [r.report.step for r in train(phase_in(tmp_path, steps=2), slow)]


def test_an_abandoned_step_is_signalled_again_while_a_library_swallows_the_error():
    with listen_for_sigterm(HOUR_S) as stop, stop.abandon_late_step():
        signal.raise_signal(signal.SIGTERM)
        left, again = signal.getitimer(signal.ITIMER_REAL)
        for _ in range(3):
            with pytest.raises(PreemptionError, match="was abandoned"):
                expire()

    assert 0.5 * HOUR_S < left <= STEP_SHARE * HOUR_S
    assert 0.0 < again < HOUR_S / 100


def expire() -> None:
    """Let the time for the step be over."""
    signal.raise_signal(signal.SIGALRM)


def test_no_time_runs_before_sigterm_or_after_the_block():
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM)
    with listen_for_sigterm(HOUR_S) as stop:
        with stop.abandon_late_step():
            _, again = signal.getitimer(signal.ITIMER_REAL)  # of pytest-timeout, which has none
            assert 0.0 == again
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested.is_set()
        assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
    assert before == (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM))


def test_the_upload_gets_what_the_step_left_of_the_grace_period():
    with listen_for_sigterm(HOUR_S) as stop:
        assert PATIENCE_S == stop.seconds_left()
        signal.raise_signal(signal.SIGTERM)
        assert 0.9 * HOUR_S < stop.seconds_left() <= UPLOAD_SHARE * HOUR_S


def test_a_phase_preempted_before_the_first_step_does_not_begin(phase_in, scorer, tmp_path):
    with listen_for_sigterm(30.0) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(PreemptionError, match="before step 1"):
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
