"""New inputs of a code problem, mutated from those of its tests, and what solutions make of them.

Numbers keep their sign and values their type, so that an input stays in the form that the
problem describes; a solution that fails on one shows that it does not. Results with floats are
left out: right programs differ in their last digits. So are sets, whose order differs between
processes.
"""

import ast
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tasks.gym.code_tests import CodeTests
from tasks.gym.sandbox.comparison import same_text

MAX_TRIED = 12
"""Inputs that the solutions are run on."""
MAX_ADDED = 5
"""Tests added to a problem: every one is run on every response of RL."""
MAX_CHARACTERS = 2000
"""Longest text of an input or result."""
_PLAIN = (bool, int, str, type(None))
_DRIVER = """
import ast as _ast, sys as _sys
_found = {called}(*_ast.literal_eval(_sys.stdin.read()))
_sys.stdout.write(chr(10) + repr(_found))
"""


def program(gold: CodeTests, source: str) -> str:
    """Return a program that reads an input and prints the result, in its last line if it is called.

    An input of a called function is the tuple of its arguments as a literal.
    """
    if gold.mode == "stdio":
        return source
    owner, _, name = _called(gold).rpartition(".")
    called = f"{owner}().{name}" if owner else name
    return f"{source}\n{gold.setup}\n{_DRIVER.format(called=called)}"


def new_inputs(gold: CodeTests, key: str) -> list[str]:
    """Return mutated inputs, none of which is in a test; the same key gives the same ones."""
    draw = random.Random(key)
    inputs = list(_inputs(gold))
    texts = {_input_text(gold, one) for one in inputs}
    results: dict[str, None] = {}
    for _ in range(4 * MAX_TRIED if inputs else 0):
        text = _input_text(gold, _mutated(draw.choice(inputs), draw))
        if text not in texts and len(text) <= MAX_CHARACTERS and len(results) < MAX_TRIED:
            results[text] = None
    return list(results)


def new_tests(
    gold: CodeTests, key: str, outputs: Callable[[Sequence[str]], Sequence[Sequence[str | None]]]
) -> list[object]:
    """Return tests of new inputs, in the form of the gold's own.

    Args:
        gold: the tests that are there.
        key: of the draw.
        outputs: what each solution prints for the inputs, None where it fails.
    """
    inputs = new_inputs(gold, key)
    if not inputs:
        return []
    tests: list[object] = []
    for text, printed in zip(inputs, zip(*outputs(inputs), strict=True), strict=True):
        if None not in printed and len(tests) < MAX_ADDED:
            test = _test(gold, text, [str(one) for one in printed])
            tests += [] if test is None else [test]
    return tests


def _test(gold: CodeTests, text: str, printed: Sequence[str]) -> object | None:
    """Return the test of an input, None if the solutions do not agree on a plain result."""
    if gold.mode == "stdio":
        agree = all(same_text(printed[0], one) for one in printed) and printed[0].strip()
        return {"stdin": text, "expected": printed[0]} if agree else None
    try:
        results = [ast.literal_eval(one.rpartition("\n")[2]) for one in printed]
    except (ValueError, SyntaxError):
        return None
    result, literal = results[0], repr(results[0])
    agree = all(type(one) is type(result) and one == result for one in results)
    if not agree or not _is_plain(result) or len(literal) > MAX_CHARACTERS:
        return None
    arguments = ast.literal_eval(text)
    if gold.mode == "asserts":
        return f"assert {_called(gold)}({', '.join(map(repr, arguments))}) == {literal}"
    is_json = _in_json(result) == result and _in_json(list(arguments)) == list(arguments)
    return {"args": list(arguments), "expected": result} if is_json else None


def _in_json(value: object) -> object:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None


def _called(gold: CodeTests) -> str:
    """Return the function under test; '' if the assertions are not equalities of one function."""
    if gold.mode == "function":
        return gold.function
    names = {name for test in gold.tests if (name := _call(test)[0])}
    return names.pop() if len(names) == 1 else ""


def _inputs(gold: CodeTests) -> Iterator[Any]:
    """Yield the inputs of the tests: texts, or tuples of arguments."""
    if gold.mode == "stdio":
        yield from (case.stdin for case in gold.cases if case.stdin.strip())
    elif _called(gold):
        candidates = (
            [tuple(case.args) for case in gold.cases]
            if gold.mode == "function"
            else [arguments for test in gold.tests if (arguments := _call(test)[1])]
        )
        yield from (one for one in candidates if one and _is_plain(one))


def _call(test: str) -> tuple[str, tuple[Any, ...]]:
    """Read `assert f(1, 'a') == value`: the name and the arguments; '' and none of another form."""
    try:
        (statement,) = ast.parse(test).body
    except (SyntaxError, ValueError):
        return "", ()
    match statement:
        case ast.Assert(
            test=ast.Compare(
                left=ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]), ops=[ast.Eq()]
            )
        ):
            try:
                return name, tuple(ast.literal_eval(one) for one in arguments)
            except ValueError:
                return name, ()
        case _:
            return "", ()


def _input_text(gold: CodeTests, value: object) -> str:
    return str(value) if gold.mode == "stdio" else repr(value)


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(one) for pair in value.items() for one in pair)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _mutated(value: Any, draw: random.Random) -> Any:
    """Return a value of the same type with one change."""
    match value:
        case bool():
            return not value
        case int():
            moved = draw.choice((value + 1, value - 1, 2 * value, value // 2))
            return moved if _sign(moved) == _sign(value) else value
        case str():
            return _other_text(value, draw)
        case list() | tuple():
            return _other_row(value, draw)
        case dict() if value:
            key = draw.choice(list(value))
            return value | {key: _mutated(value[key], draw)}
        case _:
            return value


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _other_row(row: list[Any] | tuple[Any, ...], draw: random.Random) -> Any:
    """Change one element; or, of a list, leave one out."""
    result = list(row)
    place = draw.randrange(len(result)) if result else 0
    if isinstance(row, list) and result and draw.random() < 0.3:
        return [*result[:place], *result[place + 1 :]]
    result[place : place + 1] = [_mutated(one, draw) for one in result[place : place + 1]]
    return type(row)(result)


def _other_text(text: str, draw: random.Random) -> str:
    """Change a number in a text if there is one, or else repeat, drop or move a character."""
    parts = text.split(" ")
    numbers = [place for place, part in enumerate(parts) if part.strip().isdecimal()]
    if numbers:
        place = draw.choice(numbers)
        number = parts[place].strip()
        parts[place] = parts[place].replace(number, str(_mutated(int(number), draw)))
        return " ".join(parts)
    place = draw.randrange(len(text)) if text else 0
    one = text[place : place + 1]
    return draw.choice(
        (
            text[:place] + one + text[place:],
            text[:place] + text[place + 1 :],
            text[place:] + text[:place],
        )
    )
