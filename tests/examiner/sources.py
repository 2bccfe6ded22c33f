"""Questions of the public data sets: read by curation's adapters where there is one.

The folder holds one sub-folder per set; a set that is not there is left out and named.
"""

import ast
import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from data_schemas.rows import Domain, Message, Problem, QuarantinedItem, Role
from tasks.curation.adapters.table import read_file
from tasks.curation.rows import RawRow, read_rows
from tasks.store.files import canonical_json
from tests.examiner import calls, programs
from tests.examiner.calls import Calls
from tests.examiner.case import Question
from tests.examiner.choices import Options
from tests.examiner.constraints import KINDS, Constraint
from tests.examiner.maths.golds import understand
from tests.examiner.maths.right import SLOT
from tests.records import problem_of

_BOX = re.compile(r"\\boxed\{([^{}]*)\}")
_OPTION = re.compile(r"^\(([A-Z])\)\s*(.+)$", re.MULTILINE)
_PLAIN_OPTION = re.compile(r"^-\s*(.+)$", re.MULTILINE)


def maths(data: Path) -> Iterator[Question]:
    """Read MATH, GSM8K, MGSM, CMATH, AMC, OlympiadBench, and graded model solutions."""
    for path in (data / "math_train/train.jsonl", data / "mgsm/zh.jsonl", data / "mgsm/en.jsonl"):
        for problem in _problems(path.parent.name, path):
            yield _maths(problem)
    for path in (data / "gsm8k/train.jsonl", data / "gsm8k/test.jsonl"):
        for problem, thought in _with_thoughts("gsm8k", path):
            yield _maths(problem, f"{thought}\n\nThe answer is $\\boxed{{{SLOT}}}$.")
    for row in _rows(data / "cmath_zh/test.jsonl"):
        yield _maths(_problem(row, "cmath_zh", "question", _text(row, "answer"), "zh"))
    for row in _rows(data / "amc23/test.jsonl"):
        answer = row.fields["answer"]
        gold = str(int(answer)) if isinstance(answer, float) else str(answer)
        yield _maths(_problem(row, "amc23", "problem", gold))
    for row in _rows(data / "olympiadbench/test.jsonl"):
        yield _olympiad(row)
    for row in _rows(data / "qwen_math_graded/graded.jsonl"):
        found = _BOX.findall(_text(row, "response"))
        if [_text(row, "gold")] == found:
            question = _problem(row, "qwen_math_graded", "question", found[0])
            yield _maths(question, _BOX.sub(f"\\\\boxed{{{SLOT}}}", _text(row, "response")))


def choices(data: Path) -> Iterator[Question]:
    """Read BIG-Bench Hard's tasks with options, and XCOPA in three languages."""
    for row in _rows(data / "bbh/dev.jsonl"):
        text, target = _text(row, "input"), _text(row, "target")
        listed = _OPTION.findall(text)
        texts = [option.strip() for _, option in listed] or [
            option.strip() for option in _PLAIN_OPTION.findall(text.partition("Options:")[2])
        ]
        if not texts and target in ("True", "False", "yes", "no"):
            texts = ["True", "False"] if target in ("True", "False") else ["yes", "no"]
        letters = tuple(letter for letter, _ in listed) or ("",) * len(texts)
        right = [place for place, letter in enumerate(letters) if target == f"({letter})"] or [
            place for place, option in enumerate(texts) if option == target
        ]
        if len(right) == 1 and _differ(texts):
            yield _choice(row, "bbh", text, Options(letters, tuple(texts), right[0]))
    for path in sorted((data / "xcopa").glob("??_test.jsonl")):
        for row in _rows(path):
            texts = (_text(row, "choice1"), _text(row, "choice2"))
            if not _differ(texts):
                continue
            listed = f"{_text(row, 'premise')}\nA) {texts[0]}\nB) {texts[1]}"
            label = row.fields["label"]
            options = Options(("A", "B"), texts, int(str(label)), path.name[:2])
            yield _choice(row, "xcopa", listed, options)


def fields(data: Path) -> Iterator[Question]:
    """Read product attributes."""
    for name, path in (
        ("ae110k", "ae-110k_train.jsonl"),
        ("ae110k", "ae-110k_test.jsonl"),
        ("oa_mine", "oa-mine_train.jsonl"),
    ):
        for problem in _problems(name, data / "attribute_extraction" / path):
            yield Question(problem, json.loads(problem.answer)["fields"])


def bfcl(data: Path) -> Iterator[Question]:
    """Read BFCL's single-turn sets that have allowed answers; one right answer is drawn."""
    for name in ("simple_python", "multiple", "parallel", "live_multiple", "live_parallel"):
        for problem in _problems("bfcl", data / "bfcl_v4" / f"{name}.jsonl"):
            question = _bfcl(problem)
            if question is not None:
                yield question


def bfcl_silent(data: Path) -> Iterator[Question]:
    """Read BFCL's irrelevance sets: the right answer calls nothing."""
    for name in ("irrelevance", "live_irrelevance"):
        for problem in _problems("bfcl", data / "bfcl_v4" / f"{name}.jsonl"):
            yield Question(problem, Calls(()))


def tools(data: Path) -> Iterator[Question]:
    """Read ToolRL's demonstrations with calls, and API-Bank."""
    for problem in _problems("toolrl_rlla", data / "toolrl_rlla/sft.jsonl"):
        gold = json.loads(problem.answer)["calls"]
        yield Question(problem, Calls(tuple((c["name"], c["parameters"]) for c in gold)))
    for path in sorted((data / "api_bank").glob("level?.jsonl")):
        for row in _rows(path):
            answer = row.fields["answer"]
            listed = ast.literal_eval(answer) if isinstance(answer, str) else answer
            if not isinstance(listed, list) or not listed:
                continue
            kept = [{"name": c["name"], "parameters": c["parameters"]} for c in listed]
            messages = (
                _build_message(Role.SYSTEM, row, "system"),
                _build_message(Role.USER, row, "user"),
            )
            problem = _build_problem(row, "api_bank", messages, "tool_calls", {"calls": kept})
            yield Question(problem, Calls(tuple((c["name"], c["parameters"]) for c in kept)))


def constraints(data: Path) -> Iterator[Question]:
    """Read IFEval and M-IFEval; every constraint that can be built is a question of its own."""
    paths = [("ifeval", data / "ifeval/input_data.jsonl")]
    paths += [("m_ifeval", data / f"m_ifeval/{tag}_input.jsonl") for tag in ("es", "fr")]
    for adapter, path in paths:
        for problem in _problems(adapter, path):
            gold = json.loads(problem.answer)
            pairs = zip(gold["instruction_id_list"], gold["kwargs"], strict=True)
            for place, (name, arguments) in enumerate(pairs):
                prefix, _, kind = name.rpartition(f"{problem.language}:")
                kind = kind if not prefix and name.startswith(f"{problem.language}:") else name
                if kind not in KINDS:
                    continue
                one = {"instruction_id_list": [name], "kwargs": [arguments]}
                update = {"id": f"{problem.id}/{place}", "answer": canonical_json(one).decode()}
                asked = Constraint(kind, arguments, problem.language)
                yield Question(problem.model_copy(update=update), asked)


def code(data: Path) -> Iterator[Question]:
    """Read MBPP and HumanEval with their reference programs."""
    path = data / "mbpp/train_1-10_511-974.jsonl"
    raw = {f"mbpp/{row.fields['task_id']}": row for row in _rows(path)}
    for problem in _problems("mbpp", path):
        tests = json.loads(problem.answer)["tests"]
        found = re.search(
            r"assert\s+(?:\w+\.)?\(*\s*(?:(?:set|sorted|not|math\.isclose)\s*\(?\s*)?(\w+)\(",
            tests[0],
        )
        source = _text(raw[problem.id], "code")
        if found and re.search(rf"^def {found[1]}\b", source, re.MULTILINE):
            yield Question(problem, programs.reference(source, found[1], tests))
    for row in _rows(data / "humaneval/test.jsonl"):
        name = _text(row, "entry_point")
        gold = {"mode": "asserts", "tests": [f"{row.fields['test']}\ncheck({name})"]}
        messages = (_build_message(Role.USER, row, "prompt"),)
        problem = _build_problem(row, "humaneval", messages, "code_tests", gold, Domain.CODE)
        source = f"{row.fields['prompt']}{row.fields['canonical_solution']}"
        yield Question(problem, programs.reference(source, name, []))


READERS: dict[str, Callable[[Path], Iterator[Question]]] = {
    "maths": maths, "choice": choices, "extraction": fields, "bfcl": bfcl,
    "bfcl_silent": bfcl_silent, "tools": tools, "instructions": constraints, "code": code,
}  # fmt: skip


def _maths(problem: Problem, solution: str = "") -> Question:
    text = problem.messages[-1].content
    gold = json.loads(problem.answer)["value"]
    return Question(problem, understand(gold, text), solution)


def _olympiad(row: RawRow) -> Question:
    answers, solutions = row.items("final_answer"), row.items("solution")
    gold = ", ".join(str(answer) for answer in answers).replace("$", "")
    solution = f"{solutions[0]}\n\nTherefore, the final answer is $\\boxed{{{SLOT}}}$."
    problem = _problem(row, "olympiadbench", "question", gold)
    # A solution that has a box of its own would state two.
    return _maths(problem, "" if "\\boxed" in str(solutions[0]) else solution)


def _bfcl(problem: Problem) -> Question | None:
    gold = json.loads(problem.answer)
    docs = {doc["name"]: doc["parameters"] for doc in gold["functions"]}
    source = random.Random(problem.id)
    listed, allowed, required, types = [], [], [], []
    for call in gold["calls"]:
        doc = docs.get(call["name"], {})
        drawn = {}
        for name, options in call["parameters"].items():
            kept = [option for option in options if option != ""]
            if kept:
                drawn[name] = calls.concrete(kept[0], source)
            elif "" not in options:
                return None
        listed.append((call["name"], drawn))
        allowed.append(call["parameters"])
        required.append(tuple(doc.get("required", ())))
        types.append({k: str(v.get("type")) for k, v in doc.get("properties", {}).items()})
    if any(set(names) - drawn.keys() for names, (_, drawn) in zip(required, listed, strict=True)):
        return None
    return Question(problem, Calls(tuple(listed), tuple(allowed), tuple(required), tuple(types)))


def _choice(row: RawRow, source: str, text: str, options: Options) -> Question:
    names = [list(dict.fromkeys(options.names(place))) for place in range(len(options.texts))]
    gold = {
        "correct": names[options.right],
        "others": [name for place, name in enumerate(names) if place != options.right],
    }
    message = (Message(role=Role.USER, content=text),)
    problem = _build_problem(row, source, message, "choice", gold, Domain.CHOICE)
    return Question(problem.model_copy(update={"language": options.language}), options)


def _differ(texts: Any) -> bool:
    """Whether options differ in more than case, spaces and punctuation."""
    folded = {
        re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", t).casefold()).strip() for t in texts
    }
    return len(folded) == len(texts) > 1 and "" not in folded


def _problem(row: RawRow, source: str, field: str, gold: str, language: str = "en") -> Problem:
    message = (_build_message(Role.USER, row, field),)
    problem = _build_problem(row, source, message, "final_answer", {"value": gold}, Domain.MATHS)
    return problem.model_copy(update={"language": language})


def _build_problem(
    row: RawRow,
    source: str,
    messages: tuple[Message, ...],
    verifier: str,
    gold: object,
    domain: Domain = Domain.TOOL_USE,
) -> Problem:
    return problem_of(
        messages,
        canonical_json(gold).decode(),
        id=f"{source}/{row.key}",
        domain=domain,
        verifier=verifier,
        source=source,
        source_row=row.source_row,
    )


def _build_message(role: Role, row: RawRow, field: str) -> Message:
    return Message(role=role, content=_text(row, field))


def _text(row: RawRow, field: str) -> str:
    return row.text(field)


def _problems(adapter: str, path: Path) -> Iterator[Problem]:
    yield from (problem for problem, _ in _with_thoughts(adapter, path))


def _with_thoughts(adapter: str, path: Path) -> Iterator[tuple[Problem, str]]:
    """Yield problems with the thinking of their demonstration, '' if there is none."""
    if not path.is_file():
        return
    for items in read_file(adapter, 0, path):
        if isinstance(items, QuarantinedItem):
            continue
        records = [item.record for item in items]
        spoken = [r.response for r in records if not isinstance(r, Problem)]
        thought = spoken[0].partition("<think>")[2].partition("</think>")[0] if spoken else ""
        yield from ((record, thought) for record in records if isinstance(record, Problem))


def _rows(path: Path) -> Iterator[RawRow]:
    if path.is_file():
        yield from (row for row in read_rows(path) if isinstance(row, RawRow))
