"""What is read from a gold and what is written in its place, checked exactly."""

import random
import re
from collections.abc import Callable, Sequence

from data_schemas.rows import Message, Problem, Role
from tasks.store.files import canonical_json
from tests.examiner.case import Question
from tests.examiner.maths.exact import Exact, Unreadable, read
from tests.examiner.maths.golds import Gold, Shape
from tests.examiner.phrasing import box


def single(question: Question) -> Exact | None:
    """Return the value of a gold that is one value without a unit."""
    gold: Gold = question.facts
    return gold.values[0] if gold.shape is Shape.VALUE and not gold.unit else None


def integer(question: Question) -> int | None:
    """Return the value of a gold that is one integer without a unit."""
    value = single(question)
    return None if value is None else value.integer


def edited(
    question: Question, source: random.Random, pattern: str, change: Callable[[str], str]
) -> str | None:
    """Change one match in one part; None unless the part is then certainly another value."""
    gold: Gold = question.facts
    spots = [
        (place, found)
        for place, part in enumerate(gold.parts if gold.values else gold.parts[:1])
        for found in re.finditer(pattern, part)
    ]
    if not spots:
        return None
    place, found = source.choice(spots)
    part = gold.parts[place]
    text = part[: found.start()] + change(found[0]) + part[found.end() :]
    if gold.shape is Shape.BASE:
        digits, base = gold.parts
        is_number = all(int(digit) < int(base) for digit in text)
        return box(f"{text}_{base}") if is_number and int(text) != int(digits) else None
    return replaced(gold, place, text) if gold.values else None


def replaced(gold: Gold, place: int, text: str) -> str | None:
    """Write the gold with another part; None unless its value is readable and differs."""
    try:
        values = [*gold.values[:place], read(text), *gold.values[place + 1 :]]
    except Unreadable:
        return None
    if set(values) == set(gold.values) if gold.shape is Shape.LIST else values == [*gold.values]:
        return None
    if gold.unit == "%" and values[0].rational is not None:
        hundredfold = values[0].rational * 100
        if gold.values[0].rational in (hundredfold, hundredfold / 10000):
            return None  # 50 % is 0.5 as well as 50
    return box(joined(gold, [*gold.parts[:place], text, *gold.parts[place + 1 :]]))


def joined(gold: Gold, parts: Sequence[str]) -> str:
    """Write parts in the shape of the gold."""
    match gold.shape:
        case Shape.POINT | Shape.INTERVAL:
            return f"{gold.brackets[0]}{', '.join(parts)}{gold.brackets[1]}"
        case Shape.MATRIX:
            width = len(parts) // gold.rows
            lines = [parts[i : i + width] for i in range(0, len(parts), width)]
            inner = " \\\\ ".join(" & ".join(line) for line in lines)
            return f"\\begin{{pmatrix}} {inner} \\end{{pmatrix}}"
        case _:
            return with_unit(", ".join(parts), gold.unit)


def with_unit(amount: str, unit: str) -> str:
    """Write an amount with its unit in LaTeX."""
    match unit:
        case "":
            return amount
        case "degrees":
            return f"{amount}^\\circ"
        case "%":
            return f"{amount}\\%"
        case "$":
            return f"\\${amount}"
        case word:
            return f"{amount}\\text{{ {word}}}"


def with_request(question: Question, request: str, value: str) -> Problem:
    """Ask for something more, with its own gold."""
    problem = question.problem
    return problem.model_copy(
        update={
            "messages": (*problem.messages, Message(role=Role.USER, content=request)),
            "answer": canonical_json({"value": value}).decode(),
        }
    )
