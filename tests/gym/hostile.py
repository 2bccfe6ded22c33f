"""Verifiers that do what none should, importable by a worker; Problem.answer says when."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.errors import SettingsError
from tasks.gym.workers import WorkerPool, limited


def honest(problem: Problem, response: str) -> Verdict:
    """Score the share of letters a."""
    return scored(response.count("a") / max(1, len(response)), "share", response)


def slow(problem: Problem, response: str) -> Verdict:
    """Take as many milliseconds as the response says."""
    time.sleep(float(response) / 1000)
    return scored(0.5, "slow", response)


def waits_for_a_file(problem: Problem, response: str) -> Verdict:
    """Say that it has begun, and end when the file exists that the response names."""
    Path(f"{response}.begun").touch()
    while not Path(response).exists():
        time.sleep(0.01)
    return scored(0.5, "waited")


def raises(problem: Problem, response: str) -> Verdict:
    raise ZeroDivisionError("boom")


def breaks_on_bombs(problem: Problem, response: str) -> Verdict:
    """Be brought down by some responses, in the way they name."""
    match response:
        case "raise":
            raise IndexError("list index out of range")
        case "hang":
            while True:
                pass
        case "die":
            os._exit(3)
        case "disk":
            raise OSError(28, "No space left on device")
        case _:
            return scored(0.5, "scored")


def leaves(problem: Problem, response: str) -> Verdict:
    sys.exit(0)


def hangs(problem: Problem, response: str) -> Verdict:
    while True:
        pass


def computes(cpu_s: float) -> int:
    """Use so much CPU time and return the process."""
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass
    return os.getpid()


def nested(outer_s: float, inner_s: float) -> int:
    """Use 0.6 CPU s within one limit, the second third of it within another as well."""
    with limited(outer_s):
        computes(0.2)
        with limited(inner_s):
            computes(0.2)
        return computes(0.2)


def waits_inside(problem: Problem, response: str) -> Verdict:
    WorkerPool(1).run(time.sleep, (60,), 0.1)
    return scored(1.0, "never")


def eats_memory(problem: Problem, response: str) -> Verdict:
    return scored(1.0, "full", str(len(bytearray(64 * 2**30))))


def forks(problem: Problem, response: str) -> Verdict:
    """Leave a child that goes on as if it were the worker, and one that stays."""
    if os.fork() == 0 and os.fork() == 0:
        Path(problem.answer).write_text(str(os.getpid()))
        time.sleep(60)
    while not Path(problem.answer).exists():
        time.sleep(0.01)
    return scored(1.0, "forked")


def forks_and_dies(problem: Problem, response: str) -> Verdict:
    """Die while a child keeps the pipe open."""
    if os.fork() == 0:
        time.sleep(60)
    os._exit(3)


def prints_a_gigabyte(problem: Problem, response: str) -> Verdict:
    line = b"x" * 2**20
    for _ in range(1024):
        os.write(1, line)
    return scored(1.0, "printed")


def kills_its_worker(problem: Problem, response: str) -> Verdict:
    os.kill(os.getpid(), signal.SIGKILL)
    return scored(1.0, "never")


def gives_nonsense(problem: Problem, response: str) -> Verdict:
    return 1.0  # pyright: ignore[reportReturnType]


def needs_the_user(problem: Problem, response: str) -> Verdict:
    raise SettingsError("install it")


def always_right(problem: Problem, response: str) -> Verdict:
    return scored(1.0, "generous")


def longest(problem: Problem, responses: Sequence[str]) -> list[Verdict]:
    """Score 1 for the longest of a group."""
    best = max(len(response) for response in responses)
    return [scored(float(len(response) == best), "compared") for response in responses]


def too_few(problem: Problem, responses: Sequence[str]) -> list[Verdict]:
    return [scored(1.0, "only one")]


def loaded() -> list[str]:
    """Name what this process has imported."""
    return sorted(sys.modules)


def dies_once(note: str) -> None:
    """End the worker, unless that has happened before."""
    if not Path(note).exists():
        Path(note).touch()
        os._exit(1)
