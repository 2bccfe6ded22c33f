"""What Python unit tests say without being run: the names they test, and calls with plain data.

A test `assert f(data) == data` consists of literals only. It can be checked without executing any
of its code, so that one process can check such tests of many programs (`checker`).
"""

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MODULES = frozenset(
    {"bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools"}
    | {"heapq", "itertools", "math", "operator", "random", "re", "statistics", "string", "typing"}
)
"""Standard modules that tests may use without importing them."""
_BUILTINS = frozenset(dir(builtins))
_NOT_LITERAL = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """The test `assert function(*args, **kwargs) == expected`."""

    function: str
    args: list[Any]
    kwargs: dict[str, Any]
    expected: Any


def names_under_test(setup: str, tests: Sequence[str]) -> frozenset[str]:
    """Return the names that tests use and only a program can define.

    A built-in is included only if the tests use no other name and this one alone is called in every
    test: `assert sum(10, 15) == 6` tests a function called sum. Empty if the names are ambiguous.
    """
    used, bound = used_and_bound(setup, tests)
    tested = used - bound - MODULES - _BUILTINS
    if tested:
        return frozenset(tested)
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


def used_and_bound(setup: str, tests: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the names that tests read, and those that they bind themselves."""
    used, bound = set[str](), set[str]()
    for node in ast.walk(ast.parse("\n".join([setup, *tests]))):
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


def are_literal(setup: str, tests: Sequence[str]) -> bool:
    """True if every test is `assert f(data) == data` and there is no setup."""
    return not setup.strip() and all(read_literal(test) is not None for test in tests)


def read_literal(test: str) -> LiteralTest | None:
    """Return the call and the expected value of a test of literals; None for any other test.

    None also if the function has the name of a built-in or a standard module.
    """
    try:
        match ast.parse(test).body:
            case [
                ast.Assert(
                    test=ast.Compare(
                        left=ast.Call(func=ast.Name(id=name), args=args, keywords=keywords),
                        ops=[ast.Eq()],
                        comparators=[expected],
                    ),
                    msg=None,
                )
            ] if name not in _BUILTINS | MODULES:
                return LiteralTest(
                    function=name,
                    args=[_data(arg) for arg in args],
                    kwargs={_name(keyword): _data(keyword.value) for keyword in keywords},
                    expected=_data(expected),
                )
            case _:
                return None
    except _NOT_LITERAL:
        return None


def _data(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and node.value is ...:
        raise ValueError("not data")
    return ast.literal_eval(node)


def _name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("**")
    return keyword.arg
