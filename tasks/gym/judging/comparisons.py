"""Comparison of open text by a generative reward model (CompassMax).

Gold: {"reference": "..."} (mode "reference") compares every answer with a reference: win 1, tie
0.5, loss 0, averaged over both presentation orders; at most 0.5 with "best": true.
{"mode": "round_robin"} compares every answer with every other of its group. {"mode": "anchor"}
compares with the first response of the group that has an answer. In the last two modes a reference,
if given, is shown to the judge in addition.

Equal texts tie and a missing answer loses without a prompt. If the judge is down, or its reply
cannot be parsed twice, the verdict is an abstention. Completions for a group of G different
answers: 2 G, G (G - 1), 2 (G - 1), and one more for each reply that cannot be parsed.

Differs: the paper compares with a reference only.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.preferences import TIE, round_robin_rewards
from tasks.gym.judging.both_orders import Pair, compare
from tasks.gym.judging.comparison_prompt import task_text
from tasks.gym.judging.protocol import Judge
from tasks.gym.protocol import (
    Gold,
    GroupVerifier,
    Verifier,
    verify_answer,
)


class Mode(StrEnum):
    """What an answer is compared with."""

    REFERENCE = "reference"
    ROUND_ROBIN = "round_robin"
    ANCHOR = "anchor"


class AnswerComparison(Gold):
    """How answers are compared."""

    mode: Mode = Field(default=Mode.REFERENCE, strict=False)
    reference: str = ""
    best: bool = False
    """Nothing is better than the reference: who wins over it gets what a tie gets."""

    @model_validator(mode="after")
    def _a_reference_is_there(self) -> Self:
        if self.mode is Mode.REFERENCE and not self.reference.strip():
            raise ValueError("mode reference needs a reference that is not blank")
        if self.best and self.mode is not Mode.REFERENCE:
            raise ValueError(
                f"best is of mode reference, and mode {self.mode.value} compares answers with each "
                "other; leave best out"
            )
        return self


def judged(problem: Problem) -> Problem:
    """Let the judge compare open text with its reference, not the substitute for a judge.

    There the reference is the answer, and nothing is better: with the judge as the only reward, a
    policy learned what the judge takes for better (JUDGES.md).
    """
    if problem.verifier != "reference_text":
        return problem
    answer = json.dumps(json.loads(problem.answer) | {"best": True})
    return problem.model_copy(update={"verifier": "generative_judge", "answer": answer})


def verifier(judge: Judge) -> Verifier:
    """Bind the judge, for single answers; abstains if the mode needs the whole group."""

    def verify(problem: Problem, response: str) -> Verdict:
        match _read(problem, response):
            case Verdict() as early:
                return early
            case gold, answer if gold.mode is Mode.REFERENCE:
                return _against_reference(judge, _Field(problem, gold, [answer], 1))[0]
            case gold, _:
                return abstain("needs_group", f"mode {gold.mode.value} compares inside a group")

    return verify


def group_verifier(judge: Judge) -> GroupVerifier:
    """Bind the judge, for all modes; all comparisons of a group are one call to the judge."""

    def verify(problem: Problem, responses: Sequence[str]) -> list[Verdict]:
        entries = [_read(problem, response) for response in responses]
        entrants = {place: one for place, one in enumerate(entries) if isinstance(one, tuple)}
        results: dict[int, Verdict] = {}
        if entrants:
            gold = next(iter(entrants.values()))[0]
            answers = [answer for _, answer in entrants.values()]
            field = _Field(problem, gold, answers, len(responses))
            results = dict(zip(entrants, _BY_MODE[gold.mode](judge, field), strict=True))
        return [results[i] if isinstance(one, tuple) else one for i, one in enumerate(entries)]

    return verify


@dataclass(frozen=True, slots=True)
class _Field:
    """The answers of a group, without the responses that have none."""

    problem: Problem
    gold: AnswerComparison
    answers: Sequence[str]
    group_size: int

    def pair(self, first: str, second: str) -> Pair:
        """Return two answers as the judge reads them."""
        return Pair(task_text(self.problem.messages), first, second, self.gold.reference)


def _read(problem: Problem, response: str) -> Verdict | tuple[AnswerComparison, str]:
    """Return gold and answer, or a verdict if no judge is needed."""
    entries: list[tuple[AnswerComparison, str]] = []

    def keep(gold: AnswerComparison, answer: str) -> Verdict:
        entries.append((gold, answer))
        return abstain("unjudged")

    early = verify_answer(problem, response, AnswerComparison, keep)
    return entries[0] if entries else early


def _against_reference(judge: Judge, field: _Field) -> list[Verdict]:
    task, reference = task_text(field.problem.messages), field.gold.reference.strip()
    # The reference is one of the two texts; showing it again would reveal which one.
    verdicts = compare(judge, [Pair(task, answer, reference) for answer in field.answers])
    if not field.gold.best:
        return verdicts
    return [
        scored(TIE, one.reason, one.detail) if one.score is not None and one.score > TIE else one
        for one in verdicts
    ]


def _against_anchor(judge: Judge, field: _Field) -> list[Verdict]:
    if field.group_size < 2:
        return [_abstain_alone()]
    anchor, *others = field.answers
    compared = compare(judge, [field.pair(answer, anchor) for answer in others])
    return [
        scored(TIE, "anchor", "the others are compared with this answer"),
        *(one.model_copy(update={"detail": f"with the anchor, {one.detail}"}) for one in compared),
    ]


def _against_each_other(judge: Judge, field: _Field) -> list[Verdict]:
    if field.group_size < 2:
        return [_abstain_alone()]
    num_answers = len(field.answers)
    places = list(combinations(range(num_answers), 2))
    result = compare(judge, [field.pair(field.answers[i], field.answers[j]) for i, j in places])
    wins_GG = np.zeros((field.group_size, field.group_size))
    wins_GG[:num_answers, num_answers:] = 1.0  # an answer beats a response that has none
    labels: list[list[str]] = [[] for _ in range(num_answers)]
    for (i, j), verdict in zip(places, result, strict=True):
        labels[i].append(verdict.detail)  # of the first answer alone: a comparison counts once
        win = np.nan if verdict.score is None else verdict.score
        wins_GG[i, j], wins_GG[j, i] = win, 1.0 - win
    silences = [v for v in result if v.abstained]
    num_others = field.group_size - 1
    return [
        abstain(silences[0].reason, f"most of {num_others} comparisons have no verdict")
        if np.isnan(reward)
        else scored(
            float(reward),
            "compared",
            "; ".join([f"{num_others} others, {len(silences)} unjudged pairs", *own]),
        )
        for reward, own in zip(round_robin_rewards(wins_GG)[:num_answers], labels, strict=True)
    ]


def _abstain_alone() -> Verdict:
    return abstain("needs_group", "a group of one has nothing to compare")


_BY_MODE: Mapping[Mode, Callable[[Judge, _Field], list[Verdict]]] = {
    Mode.REFERENCE: _against_reference,
    Mode.ANCHOR: _against_anchor,
    Mode.ROUND_ROBIN: _against_each_other,
}
