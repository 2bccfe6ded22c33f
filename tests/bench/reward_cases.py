"""Responses for measuring the speed of verifiers: a seeded sample for each, and public data.

No model is trained on them. Half of the responses are right. Wrong responses are the expensive
ones: they need every comparison.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from data_schemas.rows import Problem
from tasks.store.files import canonical_json
from tests.records import problem_of

DATA = "EACHPROMPT_DATA"
"""Folder of public data: <set>/<file>."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of work: problems and one response to each."""

    name: str
    problems: tuple[Problem, ...]
    responses: tuple[str, ...]


def cases(count: int, seed: int = 0) -> list[Case]:
    """Build `count` responses per verifier, and an eighth as many for code."""
    found = [_case(name, verifier, make, count, seed) for name, (verifier, make) in _KINDS.items()]
    found.append(_case("code_tests", "code_tests", _code, max(1, count // 8), seed))
    graded = Path(os.environ.get(DATA, "")) / "qwen_math_graded" / "graded.jsonl"
    if os.environ.get(DATA) and graded.is_file():
        found.append(_graded(graded, count))
    return found


def _case(
    name: str,
    verifier: str,
    make: Callable[[random.Random, bool], tuple[object, str]],
    count: int,
    seed: int,
) -> Case:
    source = random.Random(f"{seed} {name}")
    pairs = [make(source, place % 2 == 0) for place in range(count)]
    return Case(
        name,
        tuple(_problem(f"{name}/{place}", verifier, gold) for place, (gold, _) in enumerate(pairs)),
        tuple(f"<think>{'Let us see. ' * 20}</think>{response}" for _, response in pairs),
    )


def _graded(path: Path, count: int) -> Case:
    rows = [json.loads(line) for line in _lines(path, count)]
    return Case(
        "final_answer, public",
        tuple(
            _problem(f"public/{place}", "final_answer", {"value": str(row["gold"])})
            for place, row in enumerate(rows)
        ),
        tuple(str(row["response"]) for row in rows),
    )


def _lines(path: Path, count: int) -> Iterator[str]:
    with path.open() as lines:
        yield from (line for _, line in zip(range(count), lines, strict=False))


def _plain(source: random.Random, right: bool) -> tuple[object, str]:
    value = source.randrange(10_000)
    return {"value": str(value)}, f"So the answer is ${value + (not right):,}."


def _algebra(source: random.Random, right: bool) -> tuple[object, str]:
    a, b = source.randrange(1, 30), source.randrange(1, 30)
    gold = f"x^2+{a + b}x+{a * b}"
    return {"value": gold}, rf"It factors: $\boxed{{(x+{a})(x+{b + (not right)})}}$."


def _choice(source: random.Random, right: bool) -> tuple[object, str]:
    options = [f"option {source.randrange(1000)}-{place}" for place in range(4)]
    gold = {"correct": [options[0]], "others": [[option] for option in options[1:]]}
    return gold, f"Answer: {options[0] if right else options[1]}"


def _extraction(source: random.Random, right: bool) -> tuple[object, str]:
    fields = {f"field {place}": source.randrange(100) for place in range(8)}
    said = fields if right else {**fields, "field 0": -1}
    return {"fields": fields}, f"```json\n{json.dumps(said)}\n```"


def _tool_calls(source: random.Random, right: bool) -> tuple[object, str]:
    calls = [
        {"name": f"tool_{place}", "parameters": {"q": source.randrange(100), "page": place}}
        for place in range(3)
    ]
    said = calls[::-1] if right else calls[:2]
    return {"calls": calls}, "\n".join(json.dumps(call) for call in said)


def _rules(source: random.Random, right: bool) -> tuple[object, str]:
    text = " ".join(source.choice(["red", "blue", "shoes", "bags"]) for _ in range(100))
    gold = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    return gold, text if right else text + ", or not"


def _reference(source: random.Random, right: bool) -> tuple[object, str]:
    words = [source.choice(["red", "blue", "shoes", "bags", "for", "sale"]) for _ in range(100)]
    return {"reference": " ".join(words)}, " ".join(words if right else words[::-1])


def _code(source: random.Random, right: bool) -> tuple[object, str]:
    factor = source.randrange(2, 100)
    tests = [f"assert f({x}) == {factor * x}" for x in range(1, 5)]
    program = f"def f(x):\n    return {factor} * x{'' if right else ' + (x > 3)'}"
    return {"mode": "asserts", "tests": tests}, f"```python\n{program}\n```"


def _problem(key: str, verifier: str, gold: object) -> Problem:
    return problem_of(
        "question",
        canonical_json(gold).decode(),
        id=f"bench/{key}",
        verifier=verifier,
        source="bench",
        source_row="bench",
    )


_KINDS = {
    "final_answer": ("final_answer", _plain),
    "final_answer, algebra": ("final_answer", _algebra),
    "rule_answer, algebra": ("rule_answer", _algebra),
    "choice": ("choice", _choice),
    "extraction": ("extraction", _extraction),
    "tool_calls": ("tool_calls", _tool_calls),
    "instruction_rules": ("instruction_rules", _rules),
    "reference_text": ("reference_text", _reference),
}
