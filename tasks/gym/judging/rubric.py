"""Score the points of a rubric that a text earns; every criterion is one prompt to a judge.

Gold: {"criteria": [{"criterion": "...", "points": 5, ...}], "aggregation": "ruscarl"|"rubicon"}.
A criterion with "verifier" (a name of the table) and "answer" (that verifier's gold) is scored
by that verifier instead of the judge. "veto": true makes a rubicon criterion critical: if less
than half of it is met, the whole answer scores 0. "tiers": ["none", "some", "all"] lists what a
rubicon criterion looks like from the worst to the best: the judge names one, scored evenly in
[0, 1], where a criterion without tiers is met or not.

ruscarl: points of met criteria / positive points (arXiv 2508.16949); points may be negative.
rubicon: points are weights; veto, saturation, interactions of pairs and targeted shaping
(2508.12790). "interactions": [[0, 1, 2.0]] gives criteria 0 and 1 together a weight of 2 more;
"shaping": [0.7, 0.5] spreads the scores above 0.7 over half of the range.

Differs: a criterion whose reply cannot be parsed twice, or that gets no reply, makes the verdict
on the whole answer an abstention; RuscaRL asks ten times and then assumes "not met". Differs:
scores lie in [0, 1], so a negative ruscarl score becomes 0; the detail keeps it.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.rubrics import Interaction, Shaping, rubicon_score, ruscarl_score
from tasks.gym.judging.comparison_prompt import task_text
from tasks.gym.judging.protocol import Judge
from tasks.gym.judging.readings import NoReading, readings
from tasks.gym.judging.rubric_prompt import criterion_prompt, parse_met, parse_tier, tier_prompt
from tasks.gym.protocol import Gold, Verifier, verify_answer

MET = 0.5
"""Score from which a critical criterion is met."""


class Aggregation(StrEnum):
    """How the criteria are combined into one score."""

    RUSCARL = "ruscarl"
    RUBICON = "rubicon"


class Criterion(BaseModel):
    """One line of a rubric."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    criterion: str = Field(min_length=1)
    points: float = Field(allow_inf_nan=False)
    veto: bool = False
    verifier: str = ""
    answer: dict[str, Any] = {}
    tiers: list[str] = Field(default=[], max_length=10)

    @model_validator(mode="after")
    def _tiers_are_named_by_a_judge(self) -> Self:
        if self.tiers and (self.verifier or len({*self.tiers}) < max(2, len(self.tiers))):
            raise ValueError("tiers needs two or more different ones, and no verifier")
        return self


class Rubric(Gold):
    """Criteria and how they are combined."""

    criteria: list[Criterion] = Field(min_length=1, max_length=100)
    aggregation: Aggregation = Field(strict=False)
    interactions: list[tuple[int, int, float]] = Field(default=[], strict=False)
    shaping: tuple[float, float] | None = Field(default=None, strict=False)

    @model_validator(mode="after")
    def _the_points_fit_the_aggregation(self) -> Self:
        points = [item.points for item in self.criteria]
        if max(points) <= 0:
            raise ValueError("no criterion has positive points: every answer would earn 0")
        if self.aggregation is Aggregation.RUBICON and min(points) < 0:
            raise ValueError("rubicon weights cannot be negative; word the fault as a veto")
        if self.aggregation is Aggregation.RUSCARL and any(item.veto for item in self.criteria):
            raise ValueError("ruscarl has no veto; use negative points or rubicon")
        if self.aggregation is Aggregation.RUSCARL and any(item.tiers for item in self.criteria):
            raise ValueError("ruscarl has no tiers: a criterion is met or not; use rubicon")
        return self

    @model_validator(mode="after")
    def _rubicon_only(self) -> Self:
        if self.aggregation is Aggregation.RUSCARL and (self.interactions or self.shaping):
            raise ValueError("ruscarl has neither interactions nor shaping; use rubicon")
        numbers = range(len(self.criteria))
        for first, second, _ in self.interactions:
            if first == second or first not in numbers or second not in numbers:
                raise ValueError(f"interaction of {first} and {second}: use two of the criteria")
        if self.shaping and not all(0.0 < value < 1.0 for value in self.shaping):
            raise ValueError(f"shaping needs a knee and a share in (0, 1), got {self.shaping}")
        return self


def verifier(judge: Judge, verifiers: Mapping[str, Verifier]) -> Verifier:
    """Bind the judge and the verifiers that criteria may name."""

    def verify(problem: Problem, response: str) -> Verdict:
        def check(rubric: Rubric, answer: str) -> Verdict:
            judged = _score_by_judge(judge, task_text(problem.messages), answer, rubric.criteria)
            scores = [
                _score_by_verifier(verifiers, problem, item, answer)
                if item.verifier
                else judged[number]
                for number, item in enumerate(rubric.criteria)
            ]
            return _aggregate(rubric, scores)

        return verify_answer(problem, response, Rubric, check)

    return verify


def _score_by_judge(
    judge: Judge, task: str, answer: str, criteria: Sequence[Criterion]
) -> dict[int, float | NoReading]:
    """Ask about every criterion without a verifier, those with as many tiers together."""
    results: dict[int, float | NoReading] = {}
    for_judge = {number: item for number, item in enumerate(criteria) if not item.verifier}
    for count in sorted({len(item.tiers) for item in for_judge.values()}):
        alike = {number: item for number, item in for_judge.items() if len(item.tiers) == count}
        if count:
            prompts = [tier_prompt(task, answer, i.criterion, i.tiers) for i in alike.values()]
            replies = readings(judge, prompts, partial(parse_tier, count=count))
        else:
            prompts = [criterion_prompt(task, answer, i.criterion) for i in alike.values()]
            replies = readings(judge, prompts, parse_met)
        results |= zip(alike, replies, strict=True)
    return results


def _score_by_verifier(
    verifiers: Mapping[str, Verifier], problem: Problem, item: Criterion, answer: str
) -> float | Verdict:
    """Score one criterion by the verifier it names."""
    if item.verifier not in verifiers:
        names = ", ".join(sorted(verifiers))
        return abstain("bad_gold", f"criterion verifier {item.verifier!r} is none of {names}")
    part = problem.model_copy(update={"verifier": item.verifier, "answer": json.dumps(item.answer)})
    verdict = verifiers[item.verifier](part, answer)
    return verdict if verdict.score is None else verdict.score


def _aggregate(rubric: Rubric, scores: list[float | NoReading | Verdict]) -> Verdict:
    values: list[float] = []
    for item, score in zip(rubric.criteria, scores, strict=True):
        if isinstance(score, NoReading):
            return abstain(score.value, item.criterion[:200])
        if isinstance(score, Verdict):
            return abstain(score.reason, f"{item.criterion[:200]}: {score.detail}")
        values.append(float(score))
    detail = ", ".join(f"{score:g}" for score in values)
    points = [item.points for item in rubric.criteria]
    if rubric.aggregation is Aggregation.RUSCARL:
        raw = ruscarl_score(points, [score >= 1.0 for score in values])
    else:
        failed = any(item.veto and s < MET for item, s in zip(rubric.criteria, values, strict=True))
        raw = rubicon_score(
            points,
            values,
            vetoed=failed,
            interactions=[Interaction(*pair) for pair in rubric.interactions],
            shaping=Shaping(*rubric.shaping) if rubric.shaping else None,
        )
        if failed:
            return scored(0.0, "vetoed", detail)
    reason = "all_met" if raw >= 1.0 else "none_met" if raw <= 0.0 else "partial"
    return scored(max(raw, 0.0), reason, f"score {raw:.3f} of criteria {detail}")
