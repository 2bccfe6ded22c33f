"""Which of two texts is better? Open text, compared by a generative reward model (CompassMax A.7).

Gold: {"mode": "reference", "reference": "..."}: every answer against a good one, win 1, tie 0.5,
loss 0, the mean of both presentation orders. {"mode": "round_robin"}: every answer against every
other of its group. {"mode": "anchor"}: against the first of the group that is an answer. In the
last two a reference, if there is one, is shown to the judge beside the answers.

Equal texts tie and a missing answer loses without a question. What the judge cannot say, because
it is down or cannot be read twice, is an abstention. Completions asked for a group of G different
answers: 2 G, G (G - 1), 2 (G - 1); one more for each reply that cannot be read.

Differs: the paper compares with a reference only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.preferences import TIE, round_robin_rewards
from tasks.rewards.judging.form import task_text
from tasks.rewards.judging.protocol import Judge
from tasks.rewards.judging.reward import Pair, compare
from tasks.rewards.protocol import Gold, GroupVerifier, Verifier, judge


class Mode(StrEnum):
    """What an answer is compared with."""

    REFERENCE = "reference"
    ROUND_ROBIN = "round_robin"
    ANCHOR = "anchor"


class Comparison(Gold):
    """How answers are compared."""

    mode: Mode = Field(strict=False)
    reference: str = ""

    @model_validator(mode="after")
    def _a_reference_is_there(self) -> Self:
        if self.mode is Mode.REFERENCE and not self.reference.strip():
            raise ValueError("mode reference needs a reference that is not blank")
        return self


def verifier(asked: Judge) -> Verifier:
    """Bind the judge, for answers on their own; abstains where the mode needs their group."""

    def verify(problem: Problem, response: str) -> Verdict:
        match _read(problem, response):
            case Verdict() as early:
                return early
            case gold, answer if gold.mode is Mode.REFERENCE:
                return _against_reference(asked, _Field(problem, gold, [answer], 1))[0]
            case gold, _:
                return abstain("needs_group", f"mode {gold.mode.value} compares inside a group")

    return verify


def group_verifier(asked: Judge) -> GroupVerifier:
    """Bind the judge, for all modes; a group's comparisons are one question to the judge."""

    def verify(problem: Problem, responses: Sequence[str]) -> list[Verdict]:
        read = [_read(problem, response) for response in responses]
        entrants = {place: one for place, one in enumerate(read) if isinstance(one, tuple)}
        found: dict[int, Verdict] = {}
        if entrants:
            gold = next(iter(entrants.values()))[0]
            answers = [answer for _, answer in entrants.values()]
            field = _Field(problem, gold, answers, len(responses))
            found = dict(zip(entrants, _BY_MODE[gold.mode](asked, field), strict=True))
        return [found[i] if isinstance(one, tuple) else one for i, one in enumerate(read)]

    return verify


@dataclass(frozen=True, slots=True)
class _Field:
    """What there is of a group: its answers, without the responses that have none."""

    problem: Problem
    gold: Comparison
    answers: Sequence[str]
    group_size: int

    def pair(self, first: str, second: str) -> Pair:
        """Two answers as the judge sees them."""
        return Pair(task_text(self.problem.messages), first, second, self.gold.reference)


def _read(problem: Problem, response: str) -> Verdict | tuple[Comparison, str]:
    """Return gold and answer, or the verdict that needs no judge."""
    kept: list[tuple[Comparison, str]] = []

    def keep(gold: Comparison, answer: str) -> Verdict:
        kept.append((gold, answer))
        return abstain("unjudged")

    early = judge(problem, response, Comparison, keep)
    return kept[0] if kept else early


def _against_reference(asked: Judge, field: _Field) -> list[Verdict]:
    task, reference = task_text(field.problem.messages), field.gold.reference.strip()
    # The reference is one of the two texts; to show it a second time would tell which.
    return compare(asked, [Pair(task, answer, reference) for answer in field.answers])


def _against_anchor(asked: Judge, field: _Field) -> list[Verdict]:
    if field.group_size < 2:
        return [_alone()]
    anchor, *others = field.answers
    return [
        scored(TIE, "anchor", "the others are compared with this answer"),
        *compare(asked, [field.pair(answer, anchor) for answer in others]),
    ]


def _against_each_other(asked: Judge, field: _Field) -> list[Verdict]:
    if field.group_size < 2:
        return [_alone()]
    num_answers = len(field.answers)
    places = list(combinations(range(num_answers), 2))
    found = compare(asked, [field.pair(field.answers[i], field.answers[j]) for i, j in places])
    wins_GG = np.zeros((field.group_size, field.group_size))
    wins_GG[:num_answers, num_answers:] = 1.0  # an answer beats a response that has none
    for (i, j), verdict in zip(places, found, strict=True):
        won = np.nan if verdict.score is None else verdict.score
        wins_GG[i, j], wins_GG[j, i] = won, 1.0 - won
    silences = [v for v in found if v.abstained]
    num_others = field.group_size - 1
    return [
        abstain(silences[0].reason, f"most of {num_others} comparisons have no verdict")
        if np.isnan(reward)
        else scored(
            float(reward), "compared", f"{num_others} others, {len(silences)} unjudged pairs"
        )
        for reward in round_robin_rewards(wins_GG)[:num_answers]
    ]


def _alone() -> Verdict:
    return abstain("needs_group", "a group of one has nothing to compare")


_BY_MODE: Mapping[Mode, Callable[[Judge, _Field], list[Verdict]]] = {
    Mode.REFERENCE: _against_reference,
    Mode.ANCHOR: _against_anchor,
    Mode.ROUND_ROBIN: _against_each_other,
}
