"""The sample world's maths in words: the concepts of a problem, and plans that a teacher writes.

A problem is parsed, never taken from the code that draws it: `Sum` holds what its text says, and
computes the answer. So labels of synthesised problems are audited by a program that no model has
seen, and concepts are read off any problem, whoever wrote it.
"""

import random
import re
from dataclasses import dataclass

from tasks.curation.marketplace.words import ENGLISH_GOODS, plural

_SINGULAR = {good: good for good in ENGLISH_GOODS}
_PLURAL = {plural(good): good for good in ENGLISH_GOODS}
_NUMBER = r"([1-9]\d{0,2})"
_MANY = re.compile(rf"{_NUMBER} ([a-z]+) at {_NUMBER}")
_ONE = re.compile(rf"a ([a-z]+) at {_NUMBER}")
_BARE = re.compile(rf"([a-z]+) {_NUMBER}")
_CHANGE = re.compile(rf"A ([a-z]+) costs {_NUMBER}\. Pay {_NUMBER}\. Change\?")
_TOTAL = re.compile(r"(.+)\. (?:Total|Cost)\?")
SMALL_PRICE = 10
"""Products of prices below it are in the multiplication table."""


@dataclass(frozen=True, slots=True)
class WordingTerm:
    """So many of a good at a price each."""

    count: int
    """0 = a single one, whose number is not written."""
    good: str
    price: int

    @property
    def value(self) -> int:
        """What they cost together."""
        return max(self.count, 1) * self.price


@dataclass(frozen=True, slots=True)
class Concepts:
    """What a problem is about, without its numbers."""

    kinds: tuple[str, ...]
    """Kinds of steps: multiply, add, subtract."""
    goods: tuple[str, ...]
    level: int

    @property
    def text(self) -> str:
        """As a model reads them."""
        return f"{', '.join(self.kinds)}; {', '.join(self.goods)}; {self.level}"


@dataclass(frozen=True, slots=True)
class Sum:
    """What the text of a problem says."""

    terms: tuple[WordingTerm, ...]
    payment: int
    """0 = the total is asked, not the change."""

    @property
    def answer(self) -> int:
        """The true answer."""
        total = sum(term.value for term in self.terms)
        return self.payment - total if self.payment else total

    @property
    def concepts(self) -> Concepts:
        """Kinds of step, goods in the order of the text, and level."""
        kinds = []
        if any(term.count for term in self.terms):
            kinds.append("multiply")
        if len(self.terms) > 1:
            kinds.append("add")
        if self.payment:
            kinds.append("subtract")
        return Concepts(tuple(kinds), tuple(term.good for term in self.terms), self._level())

    def _level(self) -> int:
        """Level of the sample world by kinds of step and size of the prices."""
        if self.payment:
            return 4
        multiples = [term for term in self.terms if term.count]
        if not multiples:
            return 2
        if any(term.price >= SMALL_PRICE for term in multiples):
            return 5
        return 1 if len(self.terms) == 1 else 3


def parse(problem: str) -> Sum | None:
    """Read a problem in the wording of the sample world; None if it is none, or has no answer."""
    if change := _CHANGE.fullmatch(problem):
        good, price, payment = change.groups()
        fits = good in _SINGULAR and int(price) < int(payment)
        return Sum((WordingTerm(0, good, int(price)),), int(payment)) if fits else None
    match = _TOTAL.fullmatch(problem)
    if match is None:
        return None
    bare = [_bare(part) for part in match[1].split(", ")]
    terms = bare if None not in bare else [_term(part) for part in match[1].split(" and ")]
    results = tuple(term for term in terms if term is not None)
    single = len(results) == 1 and not results[0].count
    repeated = len({term.good for term in results}) < len(results)
    return None if len(results) < len(terms) or single or repeated else Sum(results, 0)


def _term(text: str) -> WordingTerm | None:
    if many := _MANY.fullmatch(text):
        count, good, price = many.groups()
        if good in _PLURAL and int(count) > 1:
            return WordingTerm(int(count), _PLURAL[good], int(price))
    one = _ONE.fullmatch(text)
    return WordingTerm(0, one[1], int(one[2])) if one and one[1] in _SINGULAR else None


def _bare(text: str) -> WordingTerm | None:
    match = _BARE.fullmatch(text)
    return WordingTerm(0, match[1], int(match[2])) if match and match[1] in _SINGULAR else None


def teach_plan(rng: random.Random, problem: Sum) -> str:
    """Write one of a teacher's plans: with the numbers of the problem, or with words for them.

    No plan contains the result of a step.
    """
    say = rng.choice((_exactly, _roughly, _hardly))
    steps = [say(term) for term in problem.terms]
    steps.append(f"pay {problem.payment}; change" if problem.payment else "total")
    return "; ".join(steps)


def _exactly(term: WordingTerm) -> str:
    return (
        f"{term.count} {plural(term.good)} at {term.price}"
        if term.count
        else (f"one {term.good} at {term.price}")
    )


def _roughly(term: WordingTerm) -> str:
    price = "low" if term.price < SMALL_PRICE else "high" if term.price >= 100 else "fair"
    many = plural(term.good) if term.count else f"one {term.good}"
    return f"{many}, price {price}"


def _hardly(term: WordingTerm) -> str:
    return plural(term.good) if term.count else f"one {term.good}"
