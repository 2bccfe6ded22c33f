"""Recorded responses to public problems: gold ones, corrupted ones, a model's, in many forms."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from data_schemas.rows import Problem
from tasks.curation.adapters.table import read_file
from tasks.curation.items import Item
from tests.examiner import families

PER_FORM = 250
"""Problems per suite that gold and corrupted responses are made for."""
FORMS = (
    "#### {}",
    "The answer is {}.",
    "So the final answer is \\boxed{{{}}}.",
    "**Answer:** {}",
    "Therefore she has ${} left.\n\nThe answer is {}.",
    "The answer is {} in 3 days.",
)
BBH_FORMS = ("So the answer is {}.", "the answer is {}", "**Answer:** {}", "The answer is {}!")

EDITS = ((" == ", " != "), (" < ", " <= "), (" + ", " - "), (" > ", " < "), ("1", "2"), ("0", "1"))


@dataclass(frozen=True, slots=True)
class Recorded:
    """One response, as both sides score it."""

    suite: str
    problem: Problem
    task: str
    """Task of lm-evaluation-harness."""
    target: str
    response: str
    doc: dict[str, Any]


def recorded(data: Path) -> Iterator[Recorded]:
    """Yield every response; the same folder gives the same responses."""
    yield from _gsm8k(data / "gsm8k" / "test.jsonl")
    yield from _models(data)
    for path in sorted((data / "mgsm").glob("*.jsonl")):
        yield from _mgsm(path)
    yield from _bbh(data / "bbh" / "dev.jsonl")
    yield from _ifeval(data)
    yield from _humaneval(data / "humaneval" / "test.jsonl")


def _gsm8k(path: Path) -> Iterator[Recorded]:
    for row, problem in _rows("gsm8k", path):
        solution, _, gold = row["answer"].rpartition("#### ")
        for number in (gold, _other(gold)):
            for form in FORMS:
                response = solution + form.format(number, number)
                yield Recorded("GSM8K", problem, "gsm8k", row["answer"], response, {})


def _models(data: Path) -> Iterator[Recorded]:
    by_question = {
        row["question"].strip(): (row, problem)
        for row, problem in _rows("gsm8k", data / "gsm8k" / "test.jsonl", count=10_000)
    }
    table = pq.read_table(data / "gsm8k_model_solutions" / "solutions.parquet")
    for made in table.to_pylist():
        row, problem = by_question[made["question"].strip()]
        yield Recorded("GSM8K, models", problem, "gsm8k", row["answer"], made["solution"], {})


def _mgsm(path: Path) -> Iterator[Recorded]:
    for row, problem in _rows("mgsm", path):
        for number in (row["gold"], _other(row["gold"])):
            for form in FORMS:
                response = form.format(number, number)
                yield Recorded(f"MGSM {row['lang']}", problem, "mgsm", row["gold"], response, {})


def _bbh(path: Path) -> Iterator[Recorded]:
    found = list(_rows("bbh", path))
    targets: dict[str, set[str]] = {}
    for row, _ in found:
        targets.setdefault(row["task"], set()).add(row["target"])
    for row, problem in found:
        wrong = sorted(targets[row["task"]] - {row["target"]})[:1]
        for said in (row["target"], *wrong):
            for form in BBH_FORMS:
                response = f"Let's think step by step. {form.format(said)}"
                yield Recorded("BBH", problem, "bbh", row["target"], response, {})


def _ifeval(data: Path) -> Iterator[Recorded]:
    for case in families.cases(data, 1500, 0, ("instructions",)):
        gold = json.loads(case.problem.answer)
        doc = {
            "key": 0,
            "prompt": case.problem.prompt_text,
            "instruction_id_list": gold["instruction_id_list"],
            "kwargs": gold["kwargs"],
        }
        yield Recorded("IFEval", case.problem, "ifeval", "", case.response, doc)


def _humaneval(path: Path) -> Iterator[Recorded]:
    """Yield the solution of every task, one with an edit, and none, as programs and in prose."""
    for row, problem in _rows("humaneval", path):
        right = row["canonical_solution"]
        bodies = dict.fromkeys([right, _edited(right), "    return None\n"])
        for body in bodies:
            program = f"{row['prompt']}{body}".strip()
            for response in (program, f"Here it is:\n\n```python\n{program}\n```\nDone.", body):
                doc = {name: row[name] for name in ("prompt", "test", "entry_point")}
                yield Recorded("HumanEval", problem, "humaneval", "", response, doc)


def _edited(body: str) -> str:
    """Return a program with one sign changed, which may be right by chance; itself without one."""
    for old, new in EDITS:
        if old in body:
            return body.replace(old, new, 1)
    return body


def _rows(
    adapter: str, path: Path, count: int = PER_FORM
) -> Iterator[tuple[dict[str, Any], Problem]]:
    """Yield raw rows with the problems that the adapter makes of them."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for row, items in islice(zip(lines, read_file(adapter, 0, path), strict=True), count):
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Item) and isinstance(item.record, Problem):
                yield row, item.record


def _other(number: str) -> str:
    return str(int(number.replace(",", "")) + 1)
