"""What the examiner works with: a question with its gold, a class of answers, one answer.

A class makes answers whose verdict is known without asking any verifier: an equivalent states the
gold value in another way, a falsification states another value. Where that is open to debate, the
class makes nothing.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from data_schemas.rows import Problem


@dataclass(frozen=True, slots=True)
class Question:
    """A problem of some data set, and what is known about its answer."""

    problem: Problem
    facts: Any
    """What the classes of its family read: an exact value, options, calls, tests."""
    solution: str = ""
    """A right solution in full, without its final answer; '' if the set has none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that a class made."""

    response: str
    problem: Problem | None = None
    """Instead of the question's own, where the class asks something else."""


Make = Callable[[Question, random.Random], Answer | str | None]
"""Returns None where the class has no certain answer to this question."""


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """One way to be right or wrong."""

    name: str
    right: bool
    about: str
    """One line: what is done, why the verdict is certain."""
    example: str
    """A gold, an arrow and what stands for it."""
    make: Make
    verifiers: tuple[str, ...] = ()
    """Verifiers that promise a verdict on this class; none: all of the family."""
    most: int = 10_000_000
    """Cases of a run, where one may take seconds."""


@dataclass(frozen=True, slots=True)
class Family:
    """Questions of one kind, with the verifiers that score them."""

    name: str
    share: float
    """Share of all cases."""
    verifiers: tuple[str, ...]
    classes: tuple[AnswerClass, ...]
    references: tuple[str, ...] = ()
    """Checkers of other projects that can be asked as well."""
    references_every: int = 1
    """Only each so-many-th case: they show how hard the cases are; ours are examined."""


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to score, with the verdict it must get."""

    family: str
    kind: AnswerClass
    problem: Problem
    response: str
    verifiers: tuple[str, ...]
    references: tuple[str, ...] = ()
