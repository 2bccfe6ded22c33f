"""Measure verifier and corrector on held-out problems, before and after RL.

separation   P(accepts | right solution) - P(accepts | wrong one), on the same problem: a
             verifier that rejects every solution of a hard problem has none. The solutions are
             those of the start model, for both models
harm         share of a model's own right solutions that a round of verifying and correcting
             turns wrong
system       accuracy of the model's solver after one such round, minus that before it
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from transformers import PreTrainedTokenizerBase

from data_schemas.prompts import Message, Problem
from data_schemas.verdicts import Verdict
from tasks.algorithms.estimators import Interval, bootstrap_mean, paired_difference
from tasks.engines.chat import response_text
from tasks.errors import DataError
from tasks.evaluation.respondents import Respondent
from tasks.rewards.agents.correctness import says_correct
from tasks.rewards.agents.inputs import corrector_input, verifier_input

ROWS_FILE = "agents.parquet"
OF_A_KIND = 2
"""Right and wrong solutions of a problem that are verified."""
VERDICTS = 4
"""Of every such solution."""
Score = Callable[[Sequence[Problem], Sequence[str]], list[Verdict]]


class AgentRow(BaseModel):
    """One held-out problem; a value is None where it is undefined."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem_id: str
    before_separation: float | None = Field(description="None: all solutions right, or all wrong")
    after_separation: float | None
    before_harm: float | None = Field(description="None: no solution was right")
    after_harm: float | None
    before_system: float
    after_system: float


class Claim(BaseModel):
    """A line of the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    claim: str
    mean: float
    low: float
    high: float
    problems: int
    shown: bool | None = Field(description="None: reported only")


@dataclass(frozen=True, slots=True)
class Model:
    """A model under test, and how its responses are read and scored."""

    respondent: Respondent
    tokenizer: PreTrainedTokenizerBase
    score: Score

    def texts(self, problems: Mapping[str, Problem], samples: int) -> dict[str, list[str]]:
        """Answer every problem; the texts by id, in order of the samples."""
        asked = [(name, sample) for name in sorted(problems) for sample in range(samples)]
        found = {answer.key: answer.content for answer in self.respondent.answer(problems, asked)}
        return {
            name: [self._text(found[name, sample]) for sample in range(samples)]
            for name in sorted(problems)
        }

    def right(self, problem: Problem, texts: Sequence[str]) -> list[bool]:
        """Score responses to one problem; one without a verdict is not right."""
        return [one.solved for one in self.score([problem] * len(texts), texts)]

    def _text(self, content: NDArray[np.int32] | str) -> str:
        if isinstance(content, str):
            return content
        return response_text(self.tokenizer, content.tolist())


def measure(
    before: Model, after: Model, problems: Sequence[Problem], samples: int
) -> list[AgentRow]:
    """Measure both models on the same problems and the same solutions.

    Raises:
        DataError: there is no problem.
    """
    if not problems:
        raise DataError("there is no held-out problem on which agents can be measured")
    by_id = {problem.id: problem for problem in problems}
    solutions = before.texts(by_id, samples)
    right = {name: before.right(by_id[name], texts) for name, texts in solutions.items()}
    gaps = [_separations(model, by_id, solutions, right) for model in (before, after)]
    later = after.texts(by_id, samples)
    later_right = {name: after.right(by_id[name], texts) for name, texts in later.items()}
    rounds = [
        _rounds(before, by_id, solutions, right),
        _rounds(after, by_id, later, later_right),
    ]
    return [
        AgentRow(
            problem_id=name,
            before_separation=gaps[0].get(name),
            after_separation=gaps[1].get(name),
            before_harm=_harm(right[name], rounds[0][name]),
            after_harm=_harm(later_right[name], rounds[1][name]),
            before_system=_gain(right[name], rounds[0][name]),
            after_system=_gain(later_right[name], rounds[1][name]),
        )
        for name in by_id
    ]


def claims(rows: Sequence[AgentRow], seed: int) -> list[Claim]:
    """Put the rows of all seeds into the table; the problem is what is resampled."""
    pairs = [
        (row.before_separation, row.after_separation)
        for row in rows
        if row.before_separation is not None and row.after_separation is not None
    ]
    harms = [
        (row.before_harm, row.after_harm)
        for row in rows
        if row.before_harm is not None and row.after_harm is not None
    ]
    systems = [(row.before_system, row.after_system) for row in rows]
    return [
        *_lines("separation", pairs, seed, rises=True),
        *_lines("harm", harms, seed, rises=False),
        *_lines("system minus solver", systems, seed, rises=None),
    ]


def markdown(found: Sequence[Claim]) -> str:
    """Write the table, in points."""
    words = {None: "reported", True: "shown", False: "not shown"}
    lines = [
        f"| {c.claim} | {100 * c.mean:.1f} | [{100 * c.low:.1f}, {100 * c.high:.1f}] "
        f"| {c.problems} | {words[c.shown]} |"
        for c in found
    ]
    head = ["| claim | points | interval | problems | |", "|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


def _lines(
    name: str, pairs: Sequence[tuple[float, float]], seed: int, *, rises: bool | None
) -> list[Claim]:
    """Both models and their difference; nothing without a problem on which it is defined."""
    if not pairs:
        return []
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    change = paired_difference(after, before, seed=seed)
    shown = None if rises is None else change.low > 0.0 if rises else change.high < 0.0
    told: tuple[tuple[str, Interval, bool | None], ...] = (
        (f"{name}, before RL", bootstrap_mean(before, seed=seed), None),
        (f"{name}, after RL", bootstrap_mean(after, seed=seed), None),
        (f"{name}, change", change, shown),
    )
    return [
        Claim(claim=c, mean=i.mean, low=i.low, high=i.high, problems=len(pairs), shown=s)
        for c, i, s in told
    ]


def _separations(
    model: Model,
    problems: Mapping[str, Problem],
    solutions: Mapping[str, Sequence[str]],
    right: Mapping[str, Sequence[bool]],
) -> dict[str, float]:
    """Separation on every problem with solutions of both kinds."""
    chosen: dict[str, tuple[str, bool]] = {}
    asked: dict[str, Problem] = {}
    for name, problem in problems.items():
        kinds = {
            kind: [n for n, one in enumerate(right[name]) if one is kind][:OF_A_KIND]
            for kind in (True, False)
        }
        for kind, places in kinds.items():
            for place in places if kinds[True] and kinds[False] else []:
                key = f"{name}#verifier.{place}"
                chosen[key] = name, kind
                messages = verifier_input(problem.messages, solutions[name][place])
                asked[key] = _with(problem, key, messages)
    accepted: dict[str, dict[bool, list[float]]] = {}
    for key, texts in model.texts(asked, VERDICTS).items():
        name, kind = chosen[key]
        said = [float(says_correct(text) is True) for text in texts]
        accepted.setdefault(name, {True: [], False: []})[kind] += said
    return {name: _mean(found[True]) - _mean(found[False]) for name, found in accepted.items()}


def _rounds(
    model: Model,
    problems: Mapping[str, Problem],
    solutions: Mapping[str, Sequence[str]],
    right: Mapping[str, Sequence[bool]],
) -> dict[str, list[bool]]:
    """Verify every solution once, correct what is reported; whether the results are right."""
    keys = {f"{n}#{place}": (n, place) for n in problems for place in range(len(solutions[n]))}
    verdicts = model.texts(
        {
            key: _with(problems[n], key, verifier_input(problems[n].messages, solutions[n][place]))
            for key, (n, place) in keys.items()
        },
        1,
    )
    reports = {key: said for key, (said,) in verdicts.items() if says_correct(said) is False}
    corrected = model.texts(
        {
            key: _with(
                problems[name],
                key,
                corrector_input(problems[name].messages, solutions[name][place], reports[key]),
            )
            for key, (name, place) in keys.items()
            if key in reports
        },
        1,
    )
    final = {name: list(found) for name, found in right.items()}
    for key, texts in corrected.items():
        name, place = keys[key]
        (final[name][place],) = model.right(problems[name], texts)
    return final


def _with(problem: Problem, name: str, messages: tuple[Message, ...]) -> Problem:
    return problem.model_copy(update={"id": name, "messages": messages})


def _harm(right: Sequence[bool], final: Sequence[bool]) -> float | None:
    kept = [now for was, now in zip(right, final, strict=True) if was]
    return 1.0 - _mean(kept) if kept else None


def _gain(right: Sequence[bool], final: Sequence[bool]) -> float:
    return _mean(final) - _mean(right)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
