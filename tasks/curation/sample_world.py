"""The sample world: generated raw rows like those of a small marketplace company.

`problems.jsonl` contains questions with an answer to check against; `demonstrations.jsonl`
contains, beside that answer, the response of one of three teachers: a careful one (explicit
steps), a terse one (right, hardly a step) and a hasty one (often wrong). Wrong rows are not
marked: curation verifies every response.

The rows have the usual defects for curation to remove (counts per world):

    problems        24 exact duplicates, 24 near duplicates (case, spaces), 12 without answer,
                    10 malformed lines, 10 over-long
    demonstrations  24 exact duplicates, 24 near duplicates, 12 without response,
                    10 malformed lines, 10 over-long, 40 that repeat a problem's question

Problems and all other demonstrations share no question for any seed
(`tasks.curation.marketplace.items.is_problem_prompt`); neither do problems and the pretraining
corpus of the base model.
"""

import json
import random
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from data_schemas.rows import MERGED, Demonstration, Domain, Message, Parent, Problem, Role
from tasks.curation.marketplace.drawing import DRAWERS, draw_items
from tasks.curation.marketplace.items import MarketItem
from tasks.store.files import canonical_json, write_bytes

SOURCE = "sample_world"
PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"

PROBLEMS_PER_DOMAIN = 600
DEMONSTRATIONS_PER_PARENT: dict[Parent, dict[Domain, int]] = {
    Parent.REASONING: {
        Domain.MATHS: 800,
        Domain.CODE: 600,
        Domain.INSTRUCTION: 600,
        Domain.CHOICE: 150,
        Domain.EXTRACTION: 150,
        Domain.TOOL_USE: 150,
        Domain.OPEN_TEXT: 150,
    },
    Parent.COMMERCE: {
        Domain.CHOICE: 500,
        Domain.EXTRACTION: 500,
        Domain.TOOL_USE: 500,
        Domain.OPEN_TEXT: 500,
        Domain.MATHS: 150,
        Domain.CODE: 150,
        Domain.INSTRUCTION: 150,
    },
}
"""A share of the domains of the other parent keeps the two mergeable: what only one of them has
learned is halved by the merge."""

TEACHERS = ("careful", "terse", "hasty")
_TEACHER_SHARES = (0.5, 0.25, 0.25)

NUM_EXACT, NUM_NEAR, NUM_UNANSWERED, NUM_MALFORMED, NUM_OVERLONG, NUM_CONTAMINATED = (
    24,
    24,
    12,
    10,
    10,
    40,
)
_OVERLONG_WORDS = 400


def generate(seed: int, folder: Path) -> None:
    """Write both files of one sample world; the same seed gives the same bytes."""
    rng = random.Random(f"sample world/{seed}")
    problems = [
        _problem_row(item)
        for domain in DRAWERS
        for item in islice(draw_items(rng, domain, problems=True), PROBLEMS_PER_DOMAIN)
    ]
    demonstrations = [
        _demonstration_row(rng, item, parent)
        for parent, amounts in DEMONSTRATIONS_PER_PARENT.items()
        for domain, amount in amounts.items()
        for item in islice(draw_items(rng, domain, problems=False), amount)
    ]
    repeated = [
        {
            "question": row["question"],
            "response": row["solution"],
            "task": row["task"],
            "language": row["language"],
            "skill": "reasoning",
            "teacher": "careful",
            "level": row["level"],
            "check": row["check"],
            "answer": row["answer"],
        }
        for row in rng.sample(problems, NUM_CONTAMINATED)
    ]
    _write(folder / PROBLEMS, rng, "p", _with_defects(rng, problems, "answer"))
    _write(
        folder / DEMONSTRATIONS,
        rng,
        "d",
        _with_defects(rng, demonstrations, "response") + repeated,
    )


def problem_from_row(row: Mapping[str, object], source_row: str) -> Problem:
    """Turn one raw row of problems.jsonl into a Problem.

    Args:
        row: the parsed line.
        source_row: sha256 of the line's bytes.

    Raises:
        ValueError: a field is missing, empty or of the wrong kind; the message names it.
    """
    answer = row.get("answer")
    if not isinstance(answer, dict) or not answer:
        raise ValueError("field 'answer' is missing or empty")
    level = row.get("level")
    if not isinstance(level, int):
        raise ValueError("field 'level' is not an integer")
    return Problem(
        id=f"{SOURCE}/{_text(row, 'id')}",
        domain=_domain(row),
        language=_text(row, "language"),
        messages=(Message(role=Role.USER, content=_text(row, "question")),),
        verifier=_text(row, "check"),
        answer=canonical_json(answer).decode(),
        source=SOURCE,
        source_row=source_row,
        level=level,
    )


def demonstration_from_row(row: Mapping[str, object], source_row: str) -> Demonstration:
    """Turn one raw row of demonstrations.jsonl into a Demonstration.

    Args:
        row: the parsed line.
        source_row: sha256 of the line's bytes.

    Raises:
        ValueError: a field is missing, empty or of the wrong kind; the message names it.
    """
    skill = _text(row, "skill")
    if skill not in MERGED:
        raise ValueError(f"field 'skill' is {skill!r}, expected one of {[*map(str, MERGED)]}")
    return Demonstration(
        id=f"{SOURCE}/{_text(row, 'id')}",
        parent=Parent(skill),
        domain=_domain(row),
        language=_text(row, "language"),
        messages=(Message(role=Role.USER, content=_text(row, "question")),),
        response=_text(row, "response"),
        source=SOURCE,
        source_row=source_row,
    )


def _text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"field {name!r} is missing or empty")
    return value


def _domain(row: Mapping[str, object]) -> Domain:
    task = _text(row, "task")
    if task not in list(Domain):
        raise ValueError(f"field 'task' is {task!r}, expected one of {[*map(str, Domain)]}")
    return Domain(task)


def _problem_row(item: MarketItem) -> dict[str, object]:
    return {
        "task": str(item.domain),
        "language": item.language,
        "level": item.level,
        "question": item.prompt,
        "check": item.verifier,
        "answer": item.answer,
        "solution": item.careful,
    }


def teach(rng: random.Random, item: MarketItem) -> tuple[str, str]:
    """Draw one of the three teachers, and return its name and its response."""
    teacher = rng.choices(TEACHERS, _TEACHER_SHARES)[0]
    return teacher, {"careful": item.careful, "terse": item.terse, "hasty": item.hasty}[teacher]


def _demonstration_row(rng: random.Random, item: MarketItem, parent: Parent) -> dict[str, object]:
    teacher, response = teach(rng, item)
    return {
        "skill": str(parent),
        "task": str(item.domain),
        "language": item.language,
        "question": item.prompt,
        "response": response,
        "teacher": teacher,
        "level": item.level,
        "check": item.verifier,
        "answer": item.answer,
    }


def _with_defects(
    rng: random.Random, rows: list[dict[str, object]], target: str
) -> list[dict[str, object]]:
    """Return the rows with duplicates, gaps in `target` and over-long rows added."""
    exact = [dict(row) for row in rng.sample(rows, NUM_EXACT)]
    near = [{**row, "question": _retyped(row)} for row in rng.sample(rows, NUM_NEAR)]
    empty = [{**row, target: None} for row in rng.sample(rows, NUM_UNANSWERED)]
    overlong = [
        {**row, "question": f"{row['question']} {_boilerplate(rng)}"}
        for row in rng.sample(rows, NUM_OVERLONG)
    ]
    return rows + exact + near + empty + overlong


def _retyped(row: Mapping[str, object]) -> str:
    """Return the question in lower case and with double spaces."""
    return str(row["question"]).lower().replace(" ", "  ") + " "


def _boilerplate(rng: random.Random) -> str:
    """Return shop text that is appended to a question."""
    return " ".join(
        rng.choice(("free", "shipping", "returns", "policy", "terms", "sale"))
        for _ in range(_OVERLONG_WORDS)
    )


def _write(
    path: Path, rng: random.Random, prefix: str, rows: Iterable[Mapping[str, object]]
) -> None:
    """Number and shuffle the rows, truncate some lines, write the file."""
    lines = [
        json.dumps({"id": f"{prefix}{number:05d}", **row}, ensure_ascii=False)
        for number, row in enumerate(rows)
    ]
    lines += [line[: len(line) * 2 // 3] for line in rng.sample(lines, NUM_MALFORMED)]
    rng.shuffle(lines)
    write_bytes(path, ("\n".join(lines) + "\n").encode())
