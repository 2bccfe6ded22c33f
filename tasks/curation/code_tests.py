"""Check the tests of code problems: new inputs, answers of known solutions, unsound tests."""

import ast
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_schemas.rows import Outcome, Problem
from tasks.curation.overlap.fingerprints import Key
from tasks.curation.shards.columns import refusals
from tasks.curation.shards.mapping import write_arrow
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.steps import Refused
from tasks.errors import EngineError, JudgeError
from tasks.gym import code_tests
from tasks.gym.code_tests import CodeTests, passed_tests, program_in
from tasks.gym.protocol import THINK_CLOSE
from tasks.gym.sandbox.comparison import same_text
from tasks.gym.sandbox.runner import shared_sandbox
from tasks.gym.sandbox.session import Run
from tasks.gym.sandbox.toolchains import build
from tasks.platform.progress import progress
from tasks.store.files import canonical_json, write_bytes

# New inputs of a code problem, mutated from those of its tests, and what solutions make of them.
#
# Numbers keep their sign and values their type, so that an input stays in the form that the
# problem describes; a solution that fails on one shows that it does not. Results with floats are
# left out: right programs differ in their last digits. So are sets, whose order differs between
# processes.

MAX_TRIED = 12
"""Inputs that the solutions are run on."""
MAX_ADDED = 5
"""Tests added to a problem: every one is run on every response of RL."""
MAX_CHARACTERS = 2000
"""Of an input or result."""
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


# Run solutions of code problems in the sandbox that verifies responses.


def run(gold: CodeTests, source: str) -> list[bool] | None:
    """Return which tests a program passes; None if the sandbox could not run them all."""
    return passed_tests(gold, source, shared_sandbox())


def outputs(gold: CodeTests, source: str, inputs: Sequence[str]) -> list[str | None]:
    """Return what a program prints for each input; None where it fails."""
    results: list[str | None] = [None] * len(inputs)

    def keep(place: int, run: Run) -> str:
        if run.end == "done" and run.code == 0:
            results[place] = run.output
        return ""

    sandbox = shared_sandbox()
    try:
        executable = build(gold.language, program(gold, source), limits=sandbox.limits)
        sandbox.execute(executable, inputs, keep)
    except (JudgeError, EngineError):
        return [None] * len(inputs)
    return results


# Remove the tests of a code problem that no known solution passes; add tests on which they agree.
#
# A problem is looked at if its source publishes a solution (`reference` of the gold). The others
# are the demonstrations of the same prompt that passed all tests. Every solution runs twice: a
# test with two results is flaky, and is removed. A test that the prompt shows cannot be removed
# alone: then the problem is. Tests are added (`inputs`) only where two different solutions pass
# all that are left, because the output of one alone would turn its own mistakes into tests.
# Source: AlphaCode (arXiv 2203.07814), section 3.2.2, which mutates inputs and keeps those on
# which correct solutions agree. Differs: it asks for many solutions; here two are enough.

STAGE = "code_tests"
UNSOUND = "unsound_tests"
RUNS = 2

RunTests = Callable[[CodeTests, str], Sequence[bool] | None]
"""Which tests a program passes; None if that could not be found out."""
Outputs = Callable[[CodeTests, str, Sequence[str]], Sequence[str | None]]
"""What a solution prints for inputs, see `inputs.program`; None where it fails."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of the tests of one problem."""

    answer: str
    """The gold answer with the tests that are left and added."""
    fault: str = ""
    """Why the problem cannot be used; '' if it can."""
    counts: Counter[str] = field(default_factory=Counter)


def check_tests(
    problem: Problem, solutions: Sequence[str], run: RunTests, outputs: Outputs
) -> Checked:
    """Check the tests of a problem.

    Args:
        problem: with the verifier `code_tests`; without a reference, or with a harness, it stays.
        solutions: further programs, which passed all tests once.
        run: runs tests.
        outputs: runs programs on new inputs.
    """
    gold = CodeTests.model_validate_json(problem.answer)
    if not gold.reference or gold.mode == "harness":
        return Checked(problem.answer)
    programs = list(dict.fromkeys(one.strip() for one in (gold.reference, *solutions)))
    passed = [_results(gold, program, run) for program in programs]
    results = [one for one in passed if one is not None]
    if len(results) < len(passed):
        return Checked(problem.answer, counts=Counter(problems_not_run=1))
    places = range(len(gold.tests or gold.cases))
    flaky = {place for place in places if any(None is each[place] for each in results)}
    failed = {place for place in places if not any(each[place] for each in results)} - flaky
    removed = flaky | failed
    counts = Counter(problems=1, flaky_tests=len(flaky), failed_tests=len(failed))
    remaining = [place for place in places if place not in removed]
    in_prompt = [
        place for place in removed if gold.tests and gold.tests[place] in problem.prompt_text
    ]
    if not remaining or in_prompt:
        detail = (
            f"of {len(places)} tests, {len(failed)} are passed by none of {len(programs)} "
            f"solutions and {len(flaky)} are flaky"
        )
        return Checked(problem.answer, detail + "; the prompt shows them" * bool(in_prompt), counts)
    answer = _with_tests(problem.answer, remaining, [])
    sound = [
        program
        for program, each in zip(programs, results, strict=True)
        if all(each[place] for place in remaining)
    ]
    if len(sound) < 2:
        return Checked(answer, counts=counts + Counter(problems_with_one_solution=1))
    gold = CodeTests.model_validate_json(answer)
    added = new_tests(gold, problem.id, lambda texts: [outputs(gold, one, texts) for one in sound])
    counts += Counter(problems_with_new_tests=bool(added), new_tests=len(added))
    return Checked(_with_tests(problem.answer, remaining, added), counts=counts)


def _results(gold: CodeTests, program: str, run: RunTests) -> list[bool | None] | None:
    """Return which tests a program passes, None for a flaky one; None if they were not all run."""
    runs = [run(gold, program) for _ in range(RUNS)]
    num_tests = len(gold.tests or gold.cases)
    complete = [one for one in runs if one is not None and len(one) == num_tests]
    if len(complete) < RUNS:
        return None
    return [one if one == other else None for one, other in zip(*complete, strict=True)]


def _with_tests(answer: str, places: Sequence[int], added: Sequence[object]) -> str:
    """Return a gold answer with some of its tests and further ones; itself if nothing changes."""
    gold = json.loads(answer)
    name = "tests" if gold.get("tests") else "cases"
    tests = [*(gold[name][place] for place in places), *added]
    if tests == gold[name]:
        return answer
    return canonical_json(gold | {name: tests}).decode()


# Check the tests of the code problems that are left in the set, shard by shard.

# pyright: basic
# pyarrow ships no types.


VERIFIER = "code_tests"
FOUND, UNSOUND_ROWS, COUNTS = "unsound.arrow", "unsound.npy", "code_tests.json"
"""In the folder of a shard, before its answers are replaced."""

Responses = Mapping[tuple[int, int], Sequence[str]]
"""By the key of the prompt."""


def check_code_tests(shards: Shards, refused: Refused) -> dict[str, Counter[str]]:
    """Remove and add tests of code problems; quarantine problems without a sound test.

    A shard that was checked by an earlier attempt is not checked again.

    Returns:
        Counts of problems and tests by source; sources without such problems are missing.
    """
    rows_by_shard = {
        shard: rows for shard in range(len(shards)) if len(rows := _problems(shards, shard))
    }
    if not rows_by_shard:
        return {}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    responses = _responses(shards, rows_by_shard)
    try:
        for shard, rows in progress(rows_by_shard.items(), "checking tests"):
            if not shards.has_other_answers(shard):
                _check_shard(shards, shard, rows, responses)
            refused.append(shards.folder(shard) / FOUND)
            shards.alive[np.load(shards.folder(shard) / UNSOUND_ROWS)] = False
            for source, shard_counts in json.loads(
                (shards.folder(shard) / COUNTS).read_bytes()
            ).items():
                counts[source].update(shard_counts)
    finally:
        code_tests.close()
    return dict(counts)


def _check_shard(shards: Shards, shard: int, rows: NDArray[np.int64], responses: Responses) -> None:
    items = shards.items(rows)
    keys = shards.keys[rows, Key.PROMPT].tolist()

    def check(place: int) -> Checked:
        problem = items[place].record
        assert isinstance(problem, Problem)
        programs = list(_programs(problem, responses.get(tuple(keys[place]), ())))
        return check_tests(problem, programs, run, outputs)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(check, range(len(items))))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for item, one in zip(items, results, strict=True):
        counts[item.record.source].update(+one.counts)
    bad = [(int(row), one.fault) for row, one in zip(rows, results, strict=True) if one.fault]
    left_out = [(row, Outcome.QUARANTINED, UNSOUND, fault) for row, fault in bad]
    folder = shards.folder(shard)
    write_arrow(folder / FOUND, refusals(shards.refuse(STAGE, left_out)))
    np.save(folder / UNSOUND_ROWS, np.array([row for row, _ in bad], np.int64))
    write_bytes(folder / COUNTS, json.dumps(counts).encode())
    places = rows - shards.starts[shard]
    shards.replace_answers(
        shard, dict(zip(places.tolist(), (one.answer for one in results), strict=True))
    )


def _problems(shards: Shards, shard: int) -> NDArray[np.int64]:
    """Return the rows of the code problems of a shard that are left and have a reference."""
    batch, living = shards.batch(shard), shards.living(shard)
    living = living[shards.is_problem[shards.starts[shard] + living]]
    verifiers = batch.column("verifier").take(pa.array(living)).to_pylist()
    coded = living[[one == VERIFIER for one in verifiers]] if len(living) else living
    answers = batch.column("answer").take(pa.array(coded)).to_pylist()
    with_reference = [bool(json.loads(one).get("reference")) for one in answers]
    return coded[with_reference] + shards.starts[shard]


def _responses(shards: Shards, rows_by_shard: Mapping[int, NDArray[np.int64]]) -> Responses:
    """Return the verified responses to the prompts of problems."""
    prompts = shards.keys[np.concatenate(list(rows_by_shard.values())), Key.PROMPT, 0]
    is_shown = ~shards.is_problem & shards.is_verified & shards.alive
    rows = np.flatnonzero(is_shown & np.isin(shards.keys[:, Key.PROMPT, 0], prompts))
    results: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row, item in zip(rows, shards.items(rows), strict=True):
        results[tuple(shards.keys[row, Key.PROMPT].tolist())].append(item.response)
    return results


def _programs(problem: Problem, responses: Sequence[str]) -> Iterator[str]:
    gold = CodeTests.model_validate_json(problem.answer)
    for response in responses:
        yield program_in(gold, response.rpartition(THINK_CLOSE)[2])
