"""Checks of Python tests: the same verdict with and without executing them, and one process."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tasks.gym.sandbox.levels import Level, available
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.runner import Sandbox
from tasks.gym.sandbox.toolchains import Language, build
from tasks.gym.sandbox.wire import WireError, receive, send
from tests.gym.sandbox.process_tree import below


@pytest.fixture(scope="module")
def sandbox():
    one = Sandbox(Limits(cpu_s=1, memory_mib=256))
    yield one
    one.close()


VALUES = [
    "1", "True", "1.0", "[1]", "(1,)", "{1}", "{1: [2]}", "None", "float('nan')", "'a'",
    "iter([1])", "object()", "[object()]", "int", "-0.0", "10**5000", "1 / 0", "b'a'",
    "Equal()", "[Equal()]",
]  # fmt: skip
EQUAL = "class Equal:\n    __eq__ = lambda *_: True\n    __hash__ = lambda _: 0\n"
EXPECTED = ["1", "[1]", "(1,)", "{1}", "{1: [2]}", "None", "'a'", "0.0", "b'a'", "[]"]


def test_literal_tests_have_the_verdicts_of_tests_that_are_executed(sandbox: Sandbox) -> None:
    tests = [f"assert f({place}) == {one}" for place in range(len(VALUES)) for one in EXPECTED]
    tests += ["assert f(1, 2) == 1", "assert f(x=0) == 1", "assert f(y=0) == 1", "assert g(1) == 2"]
    source = f"{EQUAL}def f(x): return [{', '.join(f'lambda: {v}' for v in VALUES)}][x]()"
    literal = sandbox.run(source, tests)
    executed = sandbox.run(source, tests, setup="import math")

    assert len(tests) == len(literal.passed)
    assert 0 < sum(literal.passed) < len(tests)
    assert (executed.end, executed.passed) == (literal.end, literal.passed)


def checker_of(sandbox: Sandbox) -> set[int]:
    [session] = sandbox._all
    return below(session.process.pid)


@pytest.mark.slow
def test_one_checker_is_kept_until_it_is_killed_or_a_program_runs_by_itself() -> None:
    if available() is Level.PLAIN:
        pytest.skip("without a filter of system calls no checker is kept")
    one = Sandbox(Limits(cpu_s=1, idle_s=0.3), size=1)
    right, endless = "def f(x): return x", "def f(x):\n    while True: pass"
    seen: list[set[int]] = []
    for source in (right, "def f(x): return x + 1", right, endless, right):
        one.run(source, ["assert f(1) == 1"])
        seen.append(checker_of(one))
    one.execute(build(Language.PYTHON, "print(1)", limits=one.limits), [""], lambda *_: "")
    alone = checker_of(one)
    one.close()

    assert seen[0] == seen[1] == seen[2]
    assert 1 == len(seen[0] - alone)
    assert 1 == len(seen[4] - alone)
    assert alone < seen[0]


@pytest.mark.slow
def test_a_kept_checker_has_the_cpu_time_of_one_program_for_each() -> None:
    ours, theirs = socket.socketpair()
    used_s = 1.2
    code = (
        "import socket, sys, time\n"
        "from tasks.gym.sandbox.checker import serve_many\n"
        f"while time.process_time() < {used_s}: pass\n"
        "serve_many(socket.socket(fileno=int(sys.argv[1])))\n"
    )
    arguments = [sys.executable, "-c", code, str(theirs.fileno())]
    with ours, subprocess.Popen(arguments, pass_fds=[theirs.fileno()]) as checker:
        theirs.close()
        # Its time before this program does not count.
        ended = checked(ours, "1")
        # Numbers with equal hashes: a set of n of them takes n * n / 2 comparisons.
        equal_hashes = [number * (2**61 - 1) for number in range(1, 50_000)]
        with pytest.raises(WireError):
            checked(ours, {"set": [{"int": hex(number)} for number in equal_hashes]})
        returned = checker.wait(60)

    assert {"passed": True, "why": ""}.items() <= ended.items()
    assert -signal.SIGXCPU == returned


def checked(control: socket.socket, value: object) -> dict[str, object]:
    """Let a checker compare the value of `f()` with 1, within a CPU second; return its report."""
    (parent, parent_there), (link, link_there) = socket.socketpair(), socket.socketpair()
    with parent, link:
        message = bytes([1]) + os.getpid().to_bytes(4, "big")
        with parent_there, link_there:
            handles = [parent_there.fileno(), link_there.fileno()]
            socket.send_fds(control, [message], handles)
        task = {"source": "", "setup": "", "tests": ["assert f() == '1'"], "literal": True}
        send(parent, {**task, "fail_fast": False})
        assert {"load": ""} == receive(link)
        send(link, {})
        assert {"lookup": "f"} == receive(link)
        send(link, {"value": {"handle": [0, "function"]}})
        assert receive(parent)["ready"]
        assert 0 == receive(link)["call"]
        send(link, {"value": value})
        report = receive(parent)
        receive(parent)
        return report
