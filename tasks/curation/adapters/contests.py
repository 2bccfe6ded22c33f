"""Adapters for programming contests: APPS, TACO, CodeContests, LiveCodeBench; and HumanEval.

An accepted solution is the reference by which time limits are set, and a demonstration with an
empty thought, which curation runs in the sandbox like any other.
"""

import base64
import json
import pickletools
import re
import zlib
from collections.abc import Sequence

from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow, as_texts, tidy
from tasks.gym.protocol import MAX_ANSWER_CHARACTERS
from tasks.store.files import canonical_json

MAX_SOLUTIONS = 3
"""Demonstrations of a problem: contests publish hundreds that differ in little."""
_PYTHON3 = 3
"""CodeContests' number of the language."""
MAX_TESTS_BYTES = 256 * 2**20
"""Largest size of the private tests of a problem, unpacked."""
_TEXT = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
_AROUND_TEXT = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")
_LEVELS = {"easy": 1, "medium": 2, "hard": 3}
_READS_INPUT = "Write a Python program that reads standard input and prints the answer."


def apps(row: RawRow) -> list[Item]:
    """Read an APPS or TACO row: a task with inputs and outputs, and accepted Python solutions."""
    question = row.text("question")
    tests = _json(row, "input_output")
    if not isinstance(tests, dict) or not tests.get("inputs") or not tests.get("outputs"):
        raise BadRow("no_gold", "'input_output' has no inputs or no outputs")
    inputs, outputs = tests["inputs"], tests["outputs"]
    if len(inputs) != len(outputs):
        raise BadRow("bad_gold", f"{len(inputs)} inputs with {len(outputs)} outputs")
    name = tests.get("fn_name")
    if name:
        # Codewars tasks wrap every output in a list of one.
        wrapped = all(isinstance(output, list) and len(output) == 1 for output in outputs)
        cases = [
            {"args": arguments, "expected": output[0] if wrapped else output}
            for arguments, output in zip(inputs, outputs, strict=True)
        ]
        gold: dict[str, object] = {"mode": "function", "function": name, "cases": cases}
        request = "\n".join([f"Write the Python function {name}.", _starter(row)]).strip()
    else:
        gold = _stdio([_lines(one) for one in inputs], [_lines(one) for one in outputs])
        request = _READS_INPUT
    solutions = _json(row, "solutions")
    key = row.fields.get("problem_id", row.fields.get("name"))
    accepted = [str(one) for one in solutions] if isinstance(solutions, list) else []
    return _items("apps", row, key, question, request, gold, accepted)


def code_contests(row: RawRow) -> list[Item]:
    """Read a CodeContests row: public, private and generated tests, and Python 3 solutions."""
    question = row.text("description")
    inputs: list[str] = []
    outputs: list[str] = []
    for name in ("public_tests", "private_tests", "generated_tests"):
        tests = row.fields.get(name)
        if isinstance(tests, dict):
            inputs += as_texts(tests.get("input") or [], f"{name}.input")
            outputs += as_texts(tests.get("output") or [], f"{name}.output")
    if not inputs or len(inputs) != len(outputs):
        raise BadRow("no_gold", f"{len(inputs)} inputs with {len(outputs)} outputs")
    entry = row.fields.get("solutions")
    columns = entry if isinstance(entry, dict) else {}
    languages, texts = columns.get("language") or [], columns.get("solution") or []
    if len(languages) != len(texts):
        detail = f"'solutions' has language {len(languages)} times and solution {len(texts)} times"
        raise BadRow("bad_gold", detail)
    pairs = zip(languages, as_texts(texts, "solutions.solution"), strict=True)
    solutions = [text for language, text in pairs if language == _PYTHON3]
    gold = _stdio(inputs, outputs)
    key = row.fields.get("name")
    return _items("code_contests", row, key, question, _READS_INPUT, gold, solutions)


def livecodebench(row: RawRow) -> list[Item]:
    """Read a LiveCodeBench row: public and private tests, by standard input or of one function.

    Private tests are JSON or, as the hub has them, a pickle of it, compressed, in base64.
    Differs: LiveCodeBench's own check imports most of the standard library before a program; here
    a program imports what it uses, but for names of `typing`, with which starters are annotated.
    """
    question = row.text("question_content")
    title = row.fields.get("question_title")
    if isinstance(title, str) and title.strip():
        question = f"{tidy(title)}\n{question}"
    tests = [*_tests(row, "public_test_cases"), *_tests(row, "private_test_cases")]
    kinds = {str(test["testtype"]) for test in tests}
    if kinds == {"stdin"}:
        gold = _stdio(
            [str(test["input"]) for test in tests], [str(test["output"]) for test in tests]
        )
        request = _READS_INPUT
    elif kinds == {"functional"}:
        metadata = _json(row, "metadata")
        name = metadata.get("func_name") if isinstance(metadata, dict) else None
        if not name:
            raise BadRow("no_gold", "'metadata' names no function")
        cases = [
            {"args": _arguments(test["input"]), "expected": json.loads(str(test["output"]))}
            for test in tests
        ]
        starter = _starter(row)
        owner = "Solution." if "class Solution" in starter else ""
        gold = {"mode": "function", "function": f"{owner}{name}", "cases": cases}
        request = f"Write the Python function {owner}{name}.\n{starter}".strip()
    else:
        raise BadRow("no_gold", f"tests of the types {sorted(kinds)}")
    return _items("livecodebench", row, row.fields.get("question_id"), question, request, gold, [])


def humaneval(row: RawRow) -> list[Item]:
    """Read a HumanEval row: a Python function to complete, with its tests.

    A prompt without the head of the function, as LeetCode's of imports, asks for nothing: refused.
    """
    prompt, name = row.text("prompt"), row.text("entry_point")
    if not re.search(rf"\bdef\s+{re.escape(name)}\b", prompt):
        raise BadRow("bad_prompt", f"'prompt' begins no function {name!r}")
    solution = row.fields.get("canonical_solution")
    reference = f"{prompt}\n{solution.rstrip()}" if isinstance(solution, str) else ""
    gold: dict[str, object] = {
        "mode": "asserts",
        "tests": [f"{row.text('test')}\ncheck({name})"],
        "reference": reference,
    }
    request = "Complete this Python function. Answer with the whole function."
    return _items("humaneval", row, row.fields.get("task_id"), prompt, request, gold, [])


def _items(
    source: str,
    row: RawRow,
    key: object,
    question: str,
    request: str,
    gold: dict[str, object],
    solutions: Sequence[str],
) -> list[Item]:
    """Return the problem, and its shortest accepted solutions as demonstrations."""
    programs = sorted(
        {tidy(one) for one in solutions if tidy(one)}, key=lambda one: (len(one), one)
    )
    short = [one for one in programs if len(one) <= MAX_ANSWER_CHARACTERS][:MAX_SOLUTIONS]
    if short:
        gold = gold | {"reference": short[0]}
    difficulty = row.fields.get("difficulty")
    level = _LEVELS.get(difficulty, 0) if isinstance(difficulty, str) else difficulty
    problem = Problem(
        id=f"{source}/{row.key if key in (None, '') else key}",
        domain=Domain.CODE,
        language="en",
        messages=(Message(role=Role.USER, content=f"{question}\n{request}"),),
        verifier="code_tests",
        answer=canonical_json(gold).decode(),
        source=source,
        source_row=row.source_row,
        level=level if isinstance(level, int) and level > 0 else 0,
    )
    demonstrations = [
        Demonstration(
            id=problem.id if place == 1 else f"{problem.id}/{place}",
            parent=Parent.REASONING,
            domain=problem.domain,
            language=problem.language,
            messages=problem.messages,
            response=f"<think></think>```python\n{program}\n```",
            source=source,
            source_row=row.source_row,
        )
        for place, program in enumerate(short, start=1)
    ]
    return [
        Item(problem, question),
        *(Item(one, question, answers=problem) for one in demonstrations),
    ]


def _stdio(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, object]:
    cases = [{"stdin": a, "expected": b} for a, b in zip(inputs, outputs, strict=True)]
    return {"mode": "stdio", "cases": cases}


def _lines(text: object) -> str:
    """Write a test's input or output; some are lists of lines."""
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def _tests(row: RawRow, name: str) -> list[dict[str, object]]:
    """Return the tests of a column of LiveCodeBench."""
    text = row.text(name)
    try:
        if text.startswith("["):
            result = json.loads(text)
        else:
            result = json.loads(_pickled_text(_unpacked(base64.b64decode(text, validate=True))))
    except (ValueError, zlib.error, RecursionError) as bad:
        raise BadRow("bad_gold", f"{name!r} holds no tests: {bad}") from bad
    if not isinstance(result, list) or not all(isinstance(test, dict) for test in result):
        raise BadRow("bad_gold", f"{name!r} is not a list of tests")
    return result


def _unpacked(packed: bytes) -> bytes:
    """Decompress what a column holds, unless it grows beyond MAX_TESTS_BYTES."""
    stream = zlib.decompressobj()
    content = stream.decompress(packed, MAX_TESTS_BYTES)
    if not stream.eof:
        raise ValueError(f"it is cut off, or longer than {MAX_TESTS_BYTES} bytes")
    return content


def _pickled_text(pickled: bytes) -> str:
    """Return the one text of a pickle, which is read and not executed."""
    results: list[str] = []
    for opcode, value, _ in pickletools.genops(pickled):
        if opcode.name in _TEXT:
            results.append(str(value))
        elif opcode.name not in _AROUND_TEXT:
            raise ValueError(f"it is a pickle with {opcode.name}; only text is read")
    if len(results) != 1:
        raise ValueError(f"it is a pickle of {len(results)} texts")
    return results[0]


def _arguments(text: object) -> list[object]:
    """Read the arguments of a call: JSON values, one per line."""
    return [json.loads(line) for line in str(text).split("\n") if line.strip()]


def _starter(row: RawRow) -> str:
    starter = row.fields.get("starter_code")
    return tidy(starter) if isinstance(starter, str) else ""


def _json(row: RawRow, name: str) -> object:
    """Return a field that the hub's copies hold as JSON in a text."""
    value = row.fields.get(name)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError) as error:
        raise BadRow("bad_gold", f"{name!r} is not JSON: {error}") from error
