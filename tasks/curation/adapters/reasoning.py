"""Adapters for maths and code: GSM8K, MATH, MGSM, OlympiadBench, MBPP."""

import re

from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from data_schemas.subjects import SUBJECT
from tasks.curation.cleaning.classes import with_class
from tasks.curation.cleaning.writing_systems import language_of
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow, tidy
from tasks.store.files import canonical_json

_CALCULATOR = re.compile(r"<<[^<>]*>>")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TOLERANCE = re.compile(r"\d+(\.\d+)?(e-\d+)?")
_FINAL_NUMBER = "Answer with the final number."


def gsm8k(row: RawRow) -> list[Item]:
    """Read a GSM8K row: a problem, and its worked solution as a demonstration.

    The calculator annotations `<<48/2=24>>` of the solution are removed: a person would
    not write them.
    """
    question = row.text("question")
    steps, mark, final = row.text("answer").rpartition("####")
    gold = final.strip().replace(",", "")
    if not mark or not _NUMBER.fullmatch(gold):
        raise BadRow("no_gold", f"'answer' does not end in '#### <number>': {final[-40:]!r}")
    problem = _final_answer("gsm8k", row, question, f"{question}\n{_FINAL_NUMBER}", gold)
    demonstration = Demonstration(
        id=problem.id,
        parent=Parent.REASONING,
        domain=Domain.MATHS,
        language=problem.language,
        messages=problem.messages,
        response=f"<think>{tidy(_CALCULATOR.sub('', steps))}</think>{gold}",
        source=problem.source,
        source_row=row.source_row,
    )
    return [Item(problem, question), Item(demonstration, question, answers=problem)]


def math_train(row: RawRow) -> list[Item]:
    """Read a MATH row: problem, LaTeX answer, difficulty 1 to 5.

    The prompt asks for a box, so the verifier that reads only boxes scores it.
    """
    question = row.text("problem")
    prompt = f"{question}\nPut the final answer in \\boxed{{}}."
    difficulty = row.fields.get("difficulty", 0)
    if not isinstance(difficulty, int | float) or difficulty < 0:
        raise BadRow("bad_level", f"'difficulty' is {difficulty!r}")
    problem = _final_answer("math_train", row, question, prompt, row.text("answer"))
    boxed = {"level": round(difficulty), "verifier": "rule_answer"}
    return [Item(problem.model_copy(update=boxed), question, facets=_subject(row, "type"))]


def mgsm(row: RawRow) -> list[Item]:
    """Read an MGSM row: GSM8K's test questions in other languages."""
    question = row.text("question")
    problem = _final_answer(
        "mgsm", row, question, f"{question}\n{_FINAL_NUMBER}", row.text("gold").replace(",", "")
    )
    return [Item(problem.model_copy(update={"language": row.text("lang")}), question)]


def mbpp(row: RawRow) -> list[Item]:
    """Read an MBPP row: a small Python task with assertions."""
    task = row.text("text")
    tests = row.items("test_list")
    number = row.fields.get("task_id")
    setup, code = row.fields.get("test_setup_code"), row.fields.get("code")
    if not all(isinstance(test, str) and test.startswith("assert") for test in tests):
        raise BadRow("bad_tests", f"'test_list' has an entry that is not an assertion: {tests}")
    prompt = "\n".join([task, "Your code must pass:", *(tidy(str(test)) for test in tests)])
    answer = {
        "mode": "asserts",
        "tests": [tidy(str(test)) for test in tests],
        "setup": tidy(setup) if isinstance(setup, str) else "",
        "reference": tidy(code) if isinstance(code, str) else "",
    }
    problem = Problem(
        id=f"mbpp/{row.key if number is None else number}",
        domain=Domain.CODE,
        language="en",
        messages=(Message(role=Role.USER, content=f"{prompt}\nAnswer with Python code."),),
        verifier="code_tests",
        answer=canonical_json(answer).decode(),
        source="mbpp",
        source_row=row.source_row,
    )
    return [Item(problem, task)]


def _final_answer(source: str, row: RawRow, question: str, prompt: str, gold: str) -> Problem:
    key = row.fields.get("id")
    if not question or not gold:
        raise BadRow("empty_field", "question or gold answer is blank")
    return Problem(
        id=f"{source}/{key if isinstance(key, str) and key else row.key}",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="final_answer",
        answer=canonical_json({"value": gold}).decode(),
        source=source,
        source_row=row.source_row,
    )


def olympiadbench(row: RawRow) -> list[Item]:
    """Read an OlympiadBench row of the text-only sets: one answer, or all of several.

    Rows with images and proofs without a final answer are refused.
    """
    context = row.fields.get("context")
    question = row.text("question")
    if isinstance(context, str) and context.strip():
        question = f"{tidy(context)}\n{question}"
    if any(name.startswith("image") and row.fields[name] for name in row.fields):
        raise BadRow("image", "the row has an image")
    gold = ", ".join(row.texts("final_answer")).replace("$", "").strip()
    error = row.fields.get("error")
    answer: dict[str, object] = {"value": gold}
    if isinstance(error, str) and _TOLERANCE.fullmatch(error):
        answer["tolerance"] = float(error)
    prompt = f"{question}\nPut the final answer in \\boxed{{}}."
    problem = _final_answer("olympiadbench", row, question, prompt, gold)
    key = row.fields.get("id")
    update: dict[str, object] = {
        "id": f"olympiadbench/{row.key if key is None else key}",
        "language": language_of(question),
        "answer": canonical_json(answer).decode(),
    }
    facets = _subject(row, "subfield")
    return [Item(problem.model_copy(update=update), question, facets=facets)]


def _subject(row: RawRow, column: str) -> dict[str, str]:
    """Return what a source says a problem of maths is about, and its MSC class."""
    subject = row.fields.get(column)
    if not isinstance(subject, str) or not subject.strip():
        return {}
    return with_class({SUBJECT: tidy(subject)})
