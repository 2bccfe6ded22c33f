"""No hostile program passes, leaves anything, or prevents the next verdict."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tasks.gym.code_tests import Case, CodeTests, score_program
from tasks.gym.sandbox.levels import Level, available
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.runner import Sandbox
from tests.gym.sandbox.hostile import HARNESSES, HOSTILE, SECRETS, SOLUTIONS, Hostile
from tests.gym.sandbox.process_tree import processes
from tests.slices import sliced

pytestmark = pytest.mark.attack

LEVELS = [Level.BUBBLEWRAP, Level.KERNEL]
COMPILERS = {"python": "true", "cpp": "g++", "java": "javac"}
SMALL = Limits(cpu_s=1, run_cpu_s=1, idle_s=0.7, total_s=0.9, memory_mib=256, output_mib=1)


@pytest.fixture(scope="module", params=LEVELS)
def sandbox(request):
    if LEVELS.index(request.param) < [*Level].index(available()):
        pytest.skip(f"level {request.param!s} does not work here")
    OTHERS.update(processes())
    OTHER_FOLDERS.update(work_folders())
    one = Sandbox(SMALL, request.param)
    yield one
    one.close()


OTHERS: set[int] = set()
"""Processes that tests before these have left running."""
OTHER_FOLDERS: set[Path] = set()
"""Their folders."""


def gold(mode: str, language: str) -> CodeTests:
    if mode == "asserts":
        return CodeTests(tests=tuple(f"assert secret({x}) == {y}" for x, y in SECRETS.items()))
    cases = tuple(Case(stdin=f"{x}\n", expected=f"{y}\n") for x, y in SECRETS.items())
    return CodeTests.model_validate(
        {
            "mode": mode,
            "language": language,
            "cases": cases,
            "harness": HARNESSES[language] if mode == "harness" else "",
        }
    )


def named(program: object) -> str:
    assert isinstance(program, Hostile)
    return f"{program.language}, {program.mode}: {program.name}"


# A compilation or the whole of a time limit costs a second: those of each kind wait for the night.
COMPILED = ("opens a socket", "allocates 10 GB", "starts a program")
ENDLESS = (
    "loops for ever",
    "grows a list",
    "prints without end",
    "recurses",
    "starts threads for ever",
    "returns an endless iterator",
    "allocates 10 GB",
)


def is_daily(program: Hostile) -> bool:
    """True of what is quick, and of one or two programs of each other kind."""
    if program.language == "python":
        return program.name not in ENDLESS
    return program.name in COMPILED


@pytest.mark.parametrize("program", sliced(HOSTILE, is_daily), ids=named)
def test_no_hostile_program_passes_a_test(sandbox: Sandbox, program: Hostile) -> None:
    if not shutil.which(COMPILERS[program.language]):
        pytest.skip(f"{COMPILERS[program.language]} is not installed")
    if program.language != "python" and sandbox.level is Level.BUBBLEWRAP:
        pytest.skip("compiled programs are tried on the level that has less")
    verdict = score_program(gold(program.mode, program.language), program.source, sandbox)

    assert (0.0, True) == (verdict.score, verdict.reason in program.reasons), verdict


@pytest.mark.parametrize("language", sliced(COMPILERS, lambda one: one != "java"))
def test_a_right_program_passes_under_the_same_limits(sandbox: Sandbox, language: str) -> None:
    if not shutil.which(COMPILERS[language]):
        pytest.skip(f"{COMPILERS[language]} is not installed")
    verdict = score_program(gold("stdio", language), SOLUTIONS[language], sandbox)

    assert "correct" == verdict.reason, verdict


def test_afterwards_nothing_is_left_and_the_next_program_starts_no_process(
    sandbox: Sandbox,
) -> None:
    right = "def secret(x): return x**3 + x**2 + x + 5"
    score_program(gold("asserts", "python"), right, sandbox)
    kept = processes() - OTHERS
    verdict = score_program(gold("asserts", "python"), right, sandbox)

    assert "correct" == verdict.reason
    assert kept == processes() - OTHERS
    # The zygote and the kept checker; under bubblewrap also bubblewrap and its first process.
    assert 1 <= len(processes() - OTHERS) <= 4
    assert [] == [path for work in work_folders() for path in work.iterdir()]


@pytest.mark.slow
def test_a_temporary_folder_that_is_wiped_costs_no_right_program_its_verdict(
    sandbox: Sandbox,
) -> None:
    for language in ("python", "cpp"):
        if not shutil.which(COMPILERS[language]):
            continue
        for work in work_folders():
            shutil.rmtree(work)
        verdict = score_program(gold("stdio", language), SOLUTIONS[language], sandbox)

        assert "correct" == verdict.reason, verdict


def test_closing_removes_folders_and_processes(sandbox: Sandbox) -> None:
    sandbox.close()

    assert set() == processes() - OTHERS
    assert [] == work_folders()


def work_folders() -> list[Path]:
    mine = Path(tempfile.gettempdir()).glob(f"eachprompt-sandbox-{os.getpid()}-*")
    return [path for path in mine if path not in OTHER_FOLDERS]
