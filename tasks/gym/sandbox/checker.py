"""The process that runs the tests; the program under test is on the other side of a socket.

A task is a list of tests, or a function with cases to call it on. Tests are ordinary Python. A name
that they use but do not define is looked up in the program: functions and classes are replaced by
proxies, data is copied. Built-ins and standard modules are never looked up in the program, so that
it cannot redefine `len` or `math` for its own tests.

Tests that contain code run in a process that checks one program only (`serve`). Cases, and tests
that are literals (`asserts`), are data: none of their code is executed, nothing of a program is
kept, and one process checks many programs in turn (`serve_many`).

Limitations: a test that calls a method of the program's own class (`Stack().is_empty()`) trusts the
result; a test that uses a standard function without importing it uses the program's function.
"""

import builtins
import importlib
import math
import random
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

from tasks.gym.sandbox.asserts import (
    MODULES,
    LiteralTest,
    names_under_test,
    read_literal,
    used_and_bound,
)
from tasks.gym.sandbox.comparison import same_value
from tasks.gym.sandbox.wire import WireError, decode, encode, receive, send

_NO_ERRORS = (StopIteration, StopAsyncIteration)
"""These end a loop without an error: `all(map(f, cases))` would be true."""


class CandidateExit(BaseException):
    """The program's process ended or sent an invalid reply; tests cannot catch it as Exception."""


class UnsupportedTest(BaseException):
    """A test needs what the sandbox does not support; the program is not at fault."""


class CandidateError(Exception):
    """The program raised an exception that is not a built-in one."""


class Program:
    """A client of the process of the program under test."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.raised: Exception | None = None
        """The last error that came from the program."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the reply; an exception of the program is raised here."""
        try:
            send(self._link, request)
            reply = receive(self._link)
        except WireError as error:
            raise CandidateExit(str(error)) from error
        if not isinstance(reply, dict):
            raise CandidateExit("invalid reply")
        if "error" in reply:
            self.raised = _builtin_error(str(reply["error"]), str(reply.get("message", "")))
            raise self.raised
        return reply

    def lookup(self, name: str) -> tuple[bool, Any]:
        """Return whether the program defines a name, and its value.

        A value that raises while it is sent (an iterator) counts as undefined.
        """
        try:
            reply = self.ask({"lookup": name})
        except Exception:  # noqa: BLE001 - the boundary: raised by the program
            return False, None
        return "missing" not in reply, self.decoded(reply, lambda n: Remote(self, n, name))

    def decoded(self, reply: dict[str, Any], make_proxy: Callable[[int], "Opaque"]) -> Any:
        """Decode a reply's value; objects that are not data become proxies."""
        try:
            return decode(reply.get("value"), lambda number, _: make_proxy(number))
        except WireError as error:
            raise CandidateExit(str(error)) from error

    def encoded(self, value: object) -> Any:
        """Encode an argument; proxies become handles."""
        return encode(value, _number_of)


class Opaque:
    """Proxy of a result that is not data. It has a truth value and equals nothing else."""

    __slots__ = ("_number", "_program")

    def __init__(self, program: Program, number: int) -> None:
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_number", number)

    def __bool__(self) -> bool:
        return self._program.ask({"bool": self._number}).get("value") is True


class Remote(Opaque):
    """Proxy of a function, class or object that the test itself names.

    Results of functions are data or `Opaque`, so that a program cannot return an object of its own
    to `f(x).startswith("a")`. Only a name with a capital first letter (`Stack()`) is called as a
    class and returns objects with attributes.
    """

    __slots__ = ("_name",)

    def __init__(self, program: Program, number: int, name: str) -> None:
        super().__init__(program, number)
        object.__setattr__(self, "_name", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self._program
        reply = program.ask(
            {
                "call": self._number,
                "args": program.encoded(list(args)),
                "kwargs": program.encoded(kwargs),
            }
        )
        for index, after in dict(reply.get("after") or {}).items():
            new = program.decoded({"value": after}, lambda n: Opaque(program, n))
            _update(args[int(index)], new)
        is_class = self._name[:1].isupper()
        return program.decoded(
            reply, lambda n: Remote(program, n, "") if is_class else Opaque(program, n)
        )

    def __getattr__(self, name: str) -> Any:
        program = self._program
        reply = program.ask({"getattr": self._number, "name": name})
        return program.decoded(reply, lambda n: Remote(program, n, name))

    def __setattr__(self, name: str, value: object) -> None:
        encoded = self._program.encoded(value)
        self._program.ask({"setattr": self._number, "name": name, "to": encoded})


class _Reports:
    """Sends reports to the caller, each with the CPU time used so far.

    The program waits for its next request meanwhile, so that the count is exact.
    """

    def __init__(self, parent: socket.socket, candidate: int) -> None:
        self._parent = parent
        self._clock = (~candidate << 3) | 2  # CPUCLOCK_SCHED of another process
        self._start_s = time.process_time()

    def send(self, **report: object) -> None:
        try:
            cpu_s = time.process_time() - self._start_s + time.clock_gettime(self._clock)
        except OSError:  # not Linux, or the process has been reaped
            cpu_s = 0.0
        send(self._parent, {**report, "cpu_s": cpu_s})


def serve_many(control: socket.socket) -> None:
    """Check one program after the other until the zygote closes the socket.

    Args:
        control: sends the CPU seconds for the checks of one program, the id of the candidate's
            process, and the two sockets of `serve`.
    """
    while True:
        message, handles, _, _ = socket.recv_fds(control, 5, 2)
        if len(handles) != 2:
            return
        limit_s = math.ceil(time.process_time()) + message[0]
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
        # With the kind given, no system call is needed to find it out.
        parent, link = (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, handle) for handle in handles
        )
        with parent, link:
            try:
                serve(parent, link, int.from_bytes(message[1:], "big"))
            except WireError:  # the caller has ended this program
                continue


def serve(parent: socket.socket, link: socket.socket, candidate: int) -> None:
    """Run the tests that the caller sends and report each; the last report says how it ended.

    Args:
        candidate: id of the program's process.
    """
    task = receive(parent)
    random.seed(0)
    program, reports = Program(link), _Reports(parent, candidate)
    try:
        program.ask({"load": task["source"]})
    except Exception as error:  # noqa: BLE001 - the boundary: raised by the program
        reports.send(end="not_loaded", why=_why(error))
        return
    except CandidateExit as error:
        reports.send(end="crashed", why=_why(error))
        return
    try:
        if "function" in task:
            _call_cases(task, program, reports)
        elif task["literal"]:
            _check_literals(task, program, reports)
        else:
            _run_tests(task, program, reports)
    except UnsupportedTest as error:
        reports.send(end="unsupported", why=_why(error))
    except CandidateExit as error:
        reports.send(end="crashed", why=_why(error))
    else:
        reports.send(end="done")


def _run_tests(task: dict[str, Any], program: Program, reports: _Reports) -> None:
    names = _namespace(task["setup"], task["tests"], program)
    _failure(lambda: exec(compile(task["setup"], "<setup>", "exec"), names), program)
    reports.send(ready=True)
    for test in task["tests"]:
        code = compile(test, "<test>", "exec")
        why = _failure(lambda code=code: exec(code, names), program)
        reports.send(passed=not why, why=why)
        if why and task["fail_fast"]:
            return


def _check_literals(task: dict[str, Any], program: Program, reports: _Reports) -> None:
    """Do what `_run_tests` does for tests of literals, without executing them."""
    tests = [read_literal(test) for test in task["tests"]]
    names: dict[str, Any] = {}
    for name in sorted({test.function for test in tests if test}):
        exists, value = program.lookup(name)
        if exists:
            names[name] = value
    reports.send(ready=True)
    for test in tests:
        why = _failure(lambda test=test: _check_literal(test, names), program)
        reports.send(passed=not why, why=why)
        if why and task["fail_fast"]:
            return


def _check_literal(test: LiteralTest | None, names: dict[str, Any]) -> None:
    if test is None:
        raise UnsupportedTest("not a test of literals")
    if test.function not in names:
        raise NameError(f"name {test.function!r} is not defined")
    value = names[test.function](*test.args, **test.kwargs)
    if value != test.expected:
        raise AssertionError(f"{value!r:.60} instead of {test.expected!r:.60}")


def _call_cases(task: dict[str, Any], program: Program, reports: _Reports) -> None:
    owner, _, name = task["function"].rpartition(".")
    reports.send(ready=True)
    for case in task["cases"]:
        why = _failure(lambda case=case: _call_case(program, owner, name, case), program)
        reports.send(passed=not why, why=why)
        if why and task["fail_fast"]:
            return


def _call_case(program: Program, owner: str, name: str, case: dict[str, Any]) -> None:
    exists, function = program.lookup(owner or name)
    if not exists or not isinstance(function, Remote):
        raise CandidateError(f"no function {owner or name}")
    if owner:
        function = getattr(function(), name)
    value = function(*case["args"])
    if not same_value(case["expected"], value):
        raise AssertionError(f"{value!r:.60} instead of {case['expected']!r:.60}")


def _failure(act: Callable[[], object], program: Program) -> str:
    """Run an action and return why it failed; empty if it succeeded."""
    try:
        act()
    except (CandidateExit, UnsupportedTest):
        raise
    except BaseException as error:  # the boundary: a test may raise anything
        if isinstance(error, ImportError) and error is not program.raised:
            raise UnsupportedTest(str(error)) from error
        return _why(error)
    return ""


def _namespace(setup: str, tests: list[str], program: Program) -> dict[str, Any]:
    """Return the tests' globals: standard modules, and names that the program defines."""
    used, bound = used_and_bound(setup, tests)
    names: dict[str, Any] = {"__name__": "tests"}
    for name in (used - bound) & MODULES:
        names[name] = importlib.import_module(name)
    for name in sorted(names_under_test(setup, tests)):
        exists, value = program.lookup(name)
        if exists:
            names[name] = value
    return names


def _number_of(value: object) -> int:
    if isinstance(value, Opaque):
        return object.__getattribute__(value, "_number")
    raise UnsupportedTest(f"an argument of type {type(value).__name__}")


def _update(argument: Any, after: Any) -> None:
    if isinstance(argument, list) and isinstance(after, list):
        argument[:] = after
    elif isinstance(argument, dict | set) and type(argument) is type(after):
        argument.clear()
        argument.update(after)


def _builtin_error(name: str, message: str) -> Exception:
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and kind not in _NO_ERRORS:
        try:
            return kind(message)
        except TypeError:  # some, as UnicodeDecodeError, take more arguments
            pass
    return CandidateError(f"{name}: {message}")


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"
