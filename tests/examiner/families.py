"""The families of questions, and the drawing of cases: seeded, in turn from every class."""

import hashlib
import random
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tests.examiner import (
    calls,
    choices,
    constraints,
    fields,
    programs,
    sources,
)
from tests.examiner.case import Answer, AnswerClass, Case, Family, Question
from tests.examiner.maths import table as maths_table

ROUNDS = 6
"""How often a class is asked about the same question, with other draws."""

FAMILIES: tuple[Family, ...] = (
    Family("code", 0.01, ("code_tests",), (*programs.RIGHT, *programs.WRONG)),
    Family(
        "instructions",
        0.06,
        ("instruction_rules",),
        (*constraints.RIGHT, *constraints.WRONG),
        ("lm_eval ifeval",),
    ),
    Family(
        "tools",
        0.05,
        ("tool_calls",),
        tuple(k for k in (*calls.RIGHT, *calls.WRONG) if k.name not in calls.BFCL_ONLY),
    ),
    Family("bfcl", 0.06, ("bfcl_calls",), (*calls.RIGHT, *calls.WRONG), ("bfcl_eval",)),
    Family("bfcl_silent", 0.005, ("bfcl_calls",), calls.SILENT),
    Family("extraction", 0.06, ("extraction",), (*fields.RIGHT, *fields.WRONG)),
    Family("choice", 0.08, ("choice",), (*choices.RIGHT, *choices.WRONG)),
    Family(
        "maths",
        1.0,  # what is left
        ("final_answer", "rule_answer"),
        (*maths_table.RIGHT, *maths_table.WRONG),
        ("math_verify", "lm_eval minerva"),
        references_every=4,
    ),
)


def cases(data: Path, count: int, seed: int, only: Sequence[str] = ()) -> Iterator[Case]:
    """Draw cases; the same arguments give the same cases in the same order.

    Maths makes up what the other families leave. Fewer than `count` come where the data sets do
    not yield as many.
    """
    left = count
    families = [family for family in FAMILIES if not only or family.name in only]
    for family in families:
        share = 1.0 if family is families[-1] else family.share
        questions = list(sources.READERS[family.name](data))
        for case in islice(drawn(family, questions, seed), min(left, round(share * count))):
            left -= 1
            yield case


def drawn(family: Family, questions: Sequence[Question], seed: int) -> Iterator[Case]:
    """Take one case of each class in turn, as long as any class has one."""
    turns = deque(
        islice(_made(family, kind, questions, seed), kind.most) for kind in family.classes
    )
    while turns:
        turn = turns.popleft()
        case = next(turn, None)
        if case is not None:
            turns.append(turn)
            yield case


def _made(
    family: Family, kind: AnswerClass, questions: Sequence[Question], seed: int
) -> Iterator[Case]:
    places = list(range(len(questions)))
    random.Random(f"{seed} {family.name} {kind.name}").shuffle(places)
    seen: set[bytes] = set()
    for turn in range(ROUNDS):
        fitting: list[int] = []
        for place in places:
            question = questions[place]
            key = f"{seed} {family.name} {kind.name} {turn} {question.problem.id}"
            made = kind.make(question, random.Random(key))
            if made is None:
                continue
            fitting.append(place)
            answer = made if isinstance(made, Answer) else Answer(made)
            problem = answer.problem or question.problem
            said = f"{problem.answer}\0{problem.language}\0{answer.response}".encode()
            digest = hashlib.sha256(said).digest()[:12]
            if digest in seen:
                continue
            seen.add(digest)
            verifiers = kind.verifiers or family.verifiers
            others = () if digest[0] % family.references_every else family.references
            yield Case(family.name, kind, problem, answer.response, verifiers, others)
        places = fitting
