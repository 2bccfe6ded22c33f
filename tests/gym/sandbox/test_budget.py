"""Time limits count what a program computes and sleeps, not the load of the machine."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from data_schemas.rl_settings import CodeReward
from tasks.gym.code_tests import Case, CodeTests, score_program
from tasks.gym.sandbox import budget as budget_module
from tasks.gym.sandbox.budget import Budget, UsageMonitor
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.runner import Sandbox
from tests.gym.sandbox.process_tree import below

COMPUTES = """
import time
def f(cpu_s):
    end = time.process_time() + cpu_s
    while time.process_time() < end: pass
    return 1
"""
SLEEPS = """
import threading, time
def f(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        threading.Event().wait(0.05)
        for _ in range(200_000): pass
    return 1
"""
READS = "\nif __name__ == '__main__': print(f(float(input())))\n"


def gold(mode: str, *seconds: float) -> CodeTests:
    if mode == "asserts":
        return CodeTests(tests=tuple(f"assert f({one}) == 1" for one in seconds))
    if mode == "function":
        calls = tuple(Case(args=(one,), expected=1) for one in seconds)
        return CodeTests(mode="function", function="f", cases=calls)
    cases = tuple(Case(stdin=f"{one}\n", expected="1") for one in seconds)
    return CodeTests(mode="stdio", cases=cases)


@pytest.fixture
def sandbox():
    opened: list[Sandbox] = []

    def start(**limits: float) -> Sandbox:
        opened.append(Sandbox(Limits(**limits), size=1))  # pyright: ignore[reportArgumentType]
        opened[0].run("", ["assert True"])
        return opened[0]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def burners():
    command = [sys.executable, "-c", "while True: pass"]
    # A session of its own each: Linux shares a processor among sessions, not processes.
    count = 4 * (os.cpu_count() or 1)
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    yield
    for process in processes:
        process.kill()
        process.wait()


def signal_after(delay_s: float, number: int, choose: Callable[[], set[int]]) -> None:
    def send() -> None:
        for process in choose():
            os.kill(process, number)

    threading.Timer(delay_s, send).start()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["asserts", "stdio"])
def test_a_right_program_on_a_loaded_machine_is_right(sandbox, burners: None, mode: str) -> None:
    one = sandbox(cpu_s=1, run_cpu_s=1, idle_s=0.3, total_s=1.5)
    started = time.monotonic()
    verdict = score_program(gold(mode, 0.3, 0.3), COMPUTES + READS, one)

    assert "correct" == verdict.reason, verdict
    assert time.monotonic() - started > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["asserts", "stdio"])
def test_a_program_that_is_stopped_for_a_while_is_right(sandbox, mode: str) -> None:
    one = sandbox(cpu_s=1, run_cpu_s=1, idle_s=0.3, total_s=0.9)
    [session] = one._all
    before, stopped = below(session.process.pid), set[int]()

    def running() -> set[int]:
        stopped.update(below(session.process.pid) - before)
        return stopped

    signal_after(0.2, signal.SIGSTOP, running)
    signal_after(1.7, signal.SIGCONT, lambda: stopped)
    started = time.monotonic()
    verdict = score_program(gold(mode, 0.5), COMPUTES + READS, one)

    assert "correct" == verdict.reason, verdict
    assert time.monotonic() - started > 1.5
    assert stopped


@pytest.mark.parametrize("mode", ["asserts", "stdio"])
def test_a_program_the_machine_never_runs_has_no_verdict(sandbox, mode: str) -> None:
    one = sandbox(cpu_s=1, run_cpu_s=1, idle_s=0.3, total_s=0.9, wall_s=1.5)
    [session] = one._all
    before = below(session.process.pid)
    executor = set[int]()

    def running() -> set[int]:
        found = below(session.process.pid) - before
        # The executor goes on, which has to report.
        executor.update({min(found)} if mode == "stdio" else ())
        return found - executor

    signal_after(0.2, signal.SIGSTOP, running)
    verdict = score_program(gold(mode, 0.5), COMPUTES + READS, one)

    assert (None, "starved") == (verdict.score, verdict.reason), verdict


@pytest.mark.parametrize("mode", ["asserts", "stdio"])
def test_a_nearly_idle_program_has_one_budget_for_all_its_tests(sandbox, mode: str) -> None:
    one = sandbox(cpu_s=2, idle_s=0.5, total_s=1.5)
    verdict = score_program(gold(mode, *[0.6] * 12), SLEEPS + READS, one)

    # Two tests of 0.6 s fit into 1.5 s, all twelve take 7.2 s.
    assert (True, "timeout") == (0 < 12 * (verdict.score or 0) <= 3, verdict.reason), verdict


INTERVALS_S = [0.005, 1000.0]
"""Between samples: shorter and longer than any test takes."""
FAILS_LATE = COMPUTES.replace("return 1", "return 1 if cpu_s < 0.5 else 2")
RAISES_LATE = (
    "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass\n1 / 0"
)


@pytest.mark.slow
@pytest.mark.parametrize("interval_s", INTERVALS_S)
@pytest.mark.parametrize(
    ("mode", "source", "seconds", "outcome"),
    [
        ("asserts", COMPUTES, [0.1], (1.0, "correct")),
        ("function", COMPUTES, [0.6], (0.0, "timeout")),
        ("asserts", COMPUTES, [0.1, 0.6], (1 / 2, "timeout")),
        ("function", COMPUTES, [0.1, 0.6], (1 / 2, "timeout")),
        ("stdio", COMPUTES, [0.1, 0.6, 0.01], (1 / 3, "timeout")),
        ("function", COMPUTES, [0.15] * 9, (2 / 9, "timeout")),
        ("stdio", COMPUTES, [0.15] * 9, (2 / 9, "timeout")),
        ("asserts", FAILS_LATE, [0.1, 0.6], (1 / 2, "timeout")),
        ("stdio", FAILS_LATE, [0.1, 0.6], (1 / 2, "timeout")),
        ("asserts", RAISES_LATE, [0.1], (0.0, "timeout")),
        ("function", RAISES_LATE, [0.1], (0.0, "timeout")),
    ],
)
def test_a_verdict_does_not_depend_on_when_the_program_is_sampled(
    sandbox, monkeypatch, interval_s: float, mode: str, source: str, seconds, outcome
) -> None:
    monkeypatch.setattr(budget_module, "SAMPLE_INTERVAL_S", interval_s)
    one = sandbox(cpu_s=5, run_cpu_s=5, total_s=0.4)
    verdict = score_program(gold(mode, *seconds), source + READS, one)

    assert (pytest.approx(outcome[0]), outcome[1]) == (verdict.score, verdict.reason), verdict


@pytest.mark.slow
@pytest.mark.parametrize("interval_s", INTERVALS_S)
@pytest.mark.parametrize("mode", ["asserts", "function", "stdio"])
def test_with_an_early_stop_a_late_result_is_a_timeout_too(
    sandbox, monkeypatch, interval_s: float, mode: str
) -> None:
    monkeypatch.setattr(budget_module, "SAMPLE_INTERVAL_S", interval_s)
    one = sandbox(cpu_s=5, run_cpu_s=5, total_s=0.4)
    task = gold(mode, 0.1, 0.6, 0.01)
    verdict = score_program(task, COMPUTES + READS, one, CodeReward.ALL_TESTS)

    assert (0.0, "timeout") == (verdict.score, verdict.reason), verdict


def test_a_run_that_ends_on_the_limit_is_within_it() -> None:
    budget = Budget(Limits(total_s=1.0))
    UsageMonitor(os.getpid(), budget).charge(0.25)

    assert (True, False) == (budget.covers(0.75), budget.covers(0.7500001))
    assert not budget.is_spent


def test_a_budget_is_spent_by_own_time_and_late_by_the_clock() -> None:
    budget = Budget(Limits(total_s=1.0, wall_s=0.05))
    monitor = UsageMonitor(os.getpid(), budget)
    monitor.charge(0.6)
    is_spent = budget.is_spent
    monitor.charge(0.6)
    time.sleep(0.06)

    assert (False, True, True) == (is_spent, budget.is_spent, budget.is_late)
    assert 0 < budget.remaining_s <= 0.01


def test_where_threads_cannot_be_seen_only_the_clock_ends_a_program() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    mine, theirs = socket.socketpair()
    with mine, theirs:
        why = UsageMonitor(process.pid, Budget(Limits(idle_s=0.1, total_s=0.1, wall_s=0.6))).wait(
            mine
        )

    assert "starved" == why
