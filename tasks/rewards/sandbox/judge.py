"""The process that runs the tests; the program under test is on the other side of a socket.

A task is a list of tests, or a function with cases to call it on. Tests are ordinary Python. A name
they use but do not define is looked up in the program: functions and classes become stand-ins, data
stays data. Built-ins and standard modules are never looked up there, so that a program cannot
redefine `len` or `math` for its own test.

Left: a test that asks an object of the program's own class for a verdict (`Stack().is_empty()`)
gets that object's word; one that uses a standard function without importing it gets the program's.
"""

import ast
import builtins
import importlib
import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from tasks.rewards.sandbox.comparison import same_value
from tasks.rewards.sandbox.wire import WireError, decode, encode, receive, send

MODULES = frozenset(
    {"bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools"}
    | {"heapq", "itertools", "math", "operator", "random", "re", "statistics", "string", "typing"}
)


_BUILTINS = frozenset(dir(builtins))
_NO_ERRORS = (StopIteration, StopAsyncIteration)
"""They end a loop without an error: `all(map(f, cases))` would be true."""


class ProgramGone(BaseException):
    """The program's process ended or talks nonsense. No test may catch it as an Exception."""


class CannotPass(BaseException):
    """A test hands over what cannot cross the socket: the test's limit, not the program's fault."""


class ProgramFailed(Exception):
    """The program raised something that is no built-in exception."""


class Program:
    """The program under test, seen from here."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.raised: Exception | None = None
        """The last error that came from the program."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the reply; an error in the program is raised here."""
        try:
            send(self._link, request)
            reply = receive(self._link)
        except WireError as error:
            raise ProgramGone(str(error)) from error
        if not isinstance(reply, dict):
            raise ProgramGone("no reply")
        if "error" in reply:
            self.raised = _builtin_error(str(reply["error"]), str(reply.get("message", "")))
            raise self.raised
        return reply

    def lookup(self, name: str) -> tuple[bool, Any]:
        """Return whether the program defines a name, and its value."""
        reply = self.ask({"lookup": name})
        return "missing" not in reply, self.decoded(reply, lambda n: Remote(self, n, name))

    def decoded(self, reply: dict[str, Any], stand_in: Callable[[int], "Opaque"]) -> Any:
        """Decode a reply's value; what is not data becomes a stand-in."""
        try:
            return decode(reply.get("value"), lambda number, _: stand_in(number))
        except WireError as error:
            raise ProgramGone(str(error)) from error

    def encoded(self, value: object) -> Any:
        """Encode an argument; stand-ins become the handles they stand for."""
        return encode(value, _number_of)


class Opaque:
    """A result that is not data: true or false, equal to nothing. Its `__eq__` is not asked."""

    __slots__ = ("_number", "_program")

    def __init__(self, program: Program, number: int) -> None:
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_number", number)

    def __bool__(self) -> bool:
        return self._program.ask({"bool": self._number}).get("value") is True


class Remote(Opaque):
    """A function, class or object that the test itself names.

    Results of functions are data or `Opaque`, so that a program cannot answer
    `f(x).startswith("a")` with an object of its own. Only a name that begins like a class
    (`Stack()`) makes objects with attributes.
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
    """The socket to the caller; every report carries the CPU time used so far.

    The program waits while a report is made, so that the count is exact.
    """

    def __init__(self, parent: socket.socket, candidate: int) -> None:
        self._parent = parent
        self._clock = (~candidate << 3) | 2  # CPUCLOCK_SCHED of another process

    def send(self, **report: object) -> None:
        try:
            cpu_s = time.process_time() + time.clock_gettime(self._clock)
        except OSError:  # no such clock: not Linux, or the process is gone
            cpu_s = 0.0
        send(self._parent, {**report, "cpu_s": cpu_s})


def serve(parent: socket.socket, link: socket.socket, candidate: int) -> None:
    """Run the tests the parent sends and report each; the last report says how it ended.

    Args:
        candidate: the process of the program.
    """
    task = receive(parent)
    random.seed(0)
    program, reports = Program(link), _Reports(parent, candidate)
    try:
        program.ask({"load": task["source"]})
    except Exception as error:  # noqa: BLE001 - the boundary: the program raised it
        reports.send(end="load", why=_why(error))
        return
    except ProgramGone as error:
        reports.send(end="gone", why=_why(error))
        return
    try:
        if "function" in task:
            _call_cases(task, program, reports)
        else:
            _run_tests(task, program, reports)
    except CannotPass as error:
        reports.send(end="unsupported", why=_why(error))
    except ProgramGone as error:
        reports.send(end="gone", why=_why(error))
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
        if why and task["early"]:
            return


def _call_cases(task: dict[str, Any], program: Program, reports: _Reports) -> None:
    owner, _, name = task["function"].rpartition(".")
    reports.send(ready=True)
    for case in task["cases"]:
        why = _failure(lambda case=case: _call_case(program, owner, name, case), program)
        reports.send(passed=not why, why=why)
        if why and task["early"]:
            return


def _call_case(program: Program, owner: str, name: str, case: dict[str, Any]) -> None:
    found, function = program.lookup(owner or name)
    if not found or not isinstance(function, Remote):
        raise ProgramFailed(f"no function {owner or name}")
    if owner:
        function = getattr(function(), name)
    value = function(*case["args"])
    if not same_value(case["expected"], value):
        raise AssertionError(f"{value!r:.60} instead of {case['expected']!r:.60}")


def _failure(act: Callable[[], object], program: Program) -> str:
    """Do it and return why it failed; empty if it did not."""
    try:
        act()
    except (ProgramGone, CannotPass):
        raise
    except BaseException as error:  # the boundary: a test may raise anything
        if isinstance(error, ImportError) and error is not program.raised:
            raise CannotPass(str(error)) from error
        return _why(error)
    return ""


def asked_names(setup: str, tests: Sequence[str]) -> frozenset[str]:
    """Return the names that tests use and only a program can define.

    A built-in is one of them if the tests use no other name and this one alone is called in every
    test: `assert sum(10, 15) == 6` tests a function called sum. Empty: it cannot be said which.
    """
    used, bound = _names(ast.parse("\n".join([setup, *tests])))
    asked = used - bound - MODULES - _BUILTINS
    if asked:
        return frozenset(asked)
    called = [
        {
            node.func.id
            for node in ast.walk(ast.parse(test))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        for test in tests
    ]
    common = set[str].intersection(*called) & _BUILTINS - bound if called else set[str]()
    return frozenset(common if len(common) == 1 else ())


def _names(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names that are read, and those that are bound here."""
    used, bound = set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name.partition(".")[0])
            case _:
                pass
    return used, bound


def _namespace(setup: str, tests: list[str], program: Program) -> dict[str, Any]:
    """Prepare the tests' globals: real modules, and what only the program can have defined."""
    used, bound = _names(ast.parse("\n".join([setup, *tests])))
    names: dict[str, Any] = {"__name__": "tests"}
    for name in (used - bound) & MODULES:
        names[name] = importlib.import_module(name)
    for name in sorted(asked_names(setup, tests)):
        found, value = program.lookup(name)
        if found:
            names[name] = value
    return names


def _number_of(value: object) -> int:
    if isinstance(value, Opaque):
        return object.__getattribute__(value, "_number")
    raise CannotPass(f"an argument of type {type(value).__name__}")


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
        except TypeError:  # UnicodeDecodeError and its kin take more than a message
            pass
    return ProgramFailed(f"{name}: {message}")


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"
