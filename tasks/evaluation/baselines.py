"""What answers without a model earn on held-out problems: the columns beside those of models.

Each learns from the problems to train on alone, by source and verifier; where a source is only
held out, by domain and verifier. A problem that it cannot answer counts as not solved.

    majority    the most frequent answer
    lookup      the most frequent answer behind one word of the prompt: of those that it has, the
                word whose training problems agree most (a rule of one word, Holte 1993)
    arithmetic  the formula of the prompt's numbers that is right most often

A model that earns no more than these has learned nothing that needs a model. The best of the texts
that do no task at all is another matter: see `echoes`.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from data_schemas.reports import Baseline
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.suites import per_problem, suite_names
from tasks.evaluation.echoes import some_of_each
from tasks.gym.references import references
from tasks.gym.table import score_batch

MOST_ROWS = 5000
"""Training problems of a source that a baseline learns from, evenly spread."""
MAJORITY, LOOKUP, ARITHMETIC = "majority", "lookup", "arithmetic"
_NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
_WORDS = re.compile(r"\w+")
_LONGEST = 400
"""Words of a prompt that are looked up."""
Numbers = Sequence[float]
FORMULAS: Mapping[str, Callable[[Numbers], float]] = {
    "a + b": lambda n: n[0] + n[1],
    "a - b": lambda n: n[0] - n[1],
    "b - a": lambda n: n[1] - n[0],
    "a * b": lambda n: n[0] * n[1],
    "a / b": lambda n: n[0] / n[1],
    "b / a": lambda n: n[1] / n[0],
    "sum": sum,
    "product": math.prod,
    "a * b + c": lambda n: n[0] * n[1] + n[2],
    "a * b - c": lambda n: n[0] * n[1] - n[2],
    "a + b * c": lambda n: n[0] + n[1] * n[2],
    "a - b * c": lambda n: n[0] - n[1] * n[2],
    "(a + b) * c": lambda n: (n[0] + n[1]) * n[2],
    "a - b - c": lambda n: n[0] - n[1] - n[2],
    "first": lambda n: n[0],
    "last": lambda n: n[-1],
    "largest": max,
    "smallest": min,
    "how many": len,
}
"""Results of arithmetic of the numbers of a prompt in order; what it lacks, or a division by 0, is
no answer."""
Group = tuple[str, str]
"""(source or domain, verifier)."""


@dataclass(slots=True)
class GroupAnswers:
    """What the training problems of one group teach."""

    answers: Counter[str] = field(default_factory=Counter)
    by_word: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    formulas: Counter[str] = field(default_factory=Counter)

    def add(self, problem: Problem) -> None:
        """Learn from a problem; one without a reference answer teaches nothing."""
        answer = next(iter(references(problem)), None)
        if answer is None:
            return
        self.answers[answer] += 1
        for word in _words(problem):
            self.by_word[word][answer] += 1
        if (right := _number(answer)) is not None:
            numbers = _numbers(problem)
            self.formulas.update(name for name in FORMULAS if _result(name, numbers) == right)

    def majority(self, _: Problem) -> str | None:
        """Return the most frequent answer."""
        return _first(self.answers)

    def lookup(self, problem: Problem) -> str | None:
        """Return the most frequent answer behind the word that decides most."""
        tables = [(word, self.by_word[word]) for word in _words(problem) if word in self.by_word]
        if not tables:
            return _first(self.answers)
        # One more than it was seen: a word that was seen once does not decide for certain.
        _, table = max(
            tables, key=lambda one: (max(one[1].values()) / (one[1].total() + 1), one[0])
        )
        return _first(table)

    def arithmetic(self, problem: Problem) -> str | None:
        """Return the result of the formula that was right most often."""
        name = _first(self.formulas)
        result = None if name is None else _result(name, _numbers(problem))
        return None if result is None else f"\\boxed{{{result:g}}}"


ANSWERS: Mapping[str, Callable[[GroupAnswers, Problem], str | None]] = {
    MAJORITY: GroupAnswers.majority,
    LOOKUP: GroupAnswers.lookup,
    ARITHMETIC: GroupAnswers.arithmetic,
}


def measure(training: Path, held_out: Sequence[Problem]) -> tuple[Baseline, ...]:
    """Score every baseline on held-out problems.

    Args:
        training: table of the problems to train on.
        held_out: of any sources.

    Returns:
        Those that answer a problem, with the suites in which they answer one.
    """
    rows = (*some_of_each(training, ("source", "verifier"), MOST_ROWS), *held_out)
    texts = tuple(one.model_dump_json() for one in rows)
    return _measure(texts[: len(rows) - len(held_out)], texts[len(rows) - len(held_out) :])


@lru_cache(maxsize=1)  # a run evaluates six models against the same problems
def _measure(training: Iterable[str], held_out: Iterable[str]) -> tuple[Baseline, ...]:
    groups: dict[Group, GroupAnswers] = defaultdict(GroupAnswers)
    for row in training:
        problem = Problem.model_validate_json(row)
        for group in _groups(problem):
            groups[group].add(problem)
    problems = [Problem.model_validate_json(row) for row in held_out]
    results = (_baseline(name, groups, problems) for name in ANSWERS)
    return tuple(one for one in results if one.accuracy)


def _baseline(
    name: str, groups: Mapping[Group, GroupAnswers], problems: Sequence[Problem]
) -> Baseline:
    answers = {one.id: _answer(name, groups, one) for one in problems}
    answered = [one for one in problems if answers[one.id] is not None]
    verdicts = score_batch(answered, [answers[one.id] or "" for one in answered])
    scores = {one.id: verdict.score for one, verdict in zip(answered, verdicts, strict=True)}
    members = per_problem(_row(one, scores.get(one.id, 0.0)) for one in problems)
    accuracy: dict[str, float] = {}
    for suite in suite_names(members):
        own = [one for one in members if suite in one.suites and one.decided]
        if any(one.problem_id in scores for one in own):
            accuracy[suite] = sum(one.solved for one in own) / len(own)
    return Baseline(name=name, accuracy=accuracy)


def _answer(name: str, groups: Mapping[Group, GroupAnswers], problem: Problem) -> str | None:
    for group in _groups(problem):
        if group in groups:
            return ANSWERS[name](groups[group], problem)
    return None


def _groups(problem: Problem) -> tuple[Group, Group]:
    """Return what a problem is learned with: its source, or else its domain."""
    return (
        (f"source:{problem.source}", problem.verifier),
        (f"domain:{problem.domain.value}", problem.verifier),
    )


def _row(problem: Problem, score: float | None) -> SampleResult:
    return SampleResult(
        problem_id=problem.id,
        domain=problem.domain,
        language=problem.language,
        source=problem.source,
        sample=0,
        text="",
        score=score,
        reason="baseline",
        tokens=0,
        truncated=False,
        surprisal_nats=None,
        level=problem.level,
    )


def _first(counts: Counter[str]) -> str | None:
    """Return the most frequent one, of equals the first by name; None if there is none."""
    return min(counts, key=lambda one: (-counts[one], one)) if counts else None


def _words(problem: Problem) -> list[str]:
    """Return the words of the last message, each once."""
    return list(dict.fromkeys(_WORDS.findall(problem.messages[-1].content.lower())))[:_LONGEST]


def _numbers(problem: Problem) -> list[float]:
    return [float(one) for one in _NUMBERS.findall(problem.messages[-1].content)]


def _number(answer: str) -> float | None:
    """Return the value of a number in a box; None of anything else."""
    text = answer.removeprefix("\\boxed{").removesuffix("}")
    return float(text) if text != answer and _NUMBERS.fullmatch(text) else None


def _result(name: str, numbers: Numbers) -> float | None:
    try:
        result = float(FORMULAS[name](numbers))
    except (LookupError, ValueError, ArithmeticError):
        return None
    return result if math.isfinite(result) else None
