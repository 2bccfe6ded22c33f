"""Fusion gain: what sound adds to sight, and sight to sound, on the same questions.

Source: AV-SpeakerBench (arXiv 2512.02231): accuracy with both minus accuracy with video alone. The
answers are made elsewhere, because the engines of this project take text only.

Differs: the authors' code takes the first standalone letter, so that the article "A" is an answer,
and draws one where there is none. Here the last line must name one letter, or there is no answer.
Gains are given over the questions with an answer in both runs, and with missing answers as wrong.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.table import Table

from tasks.algorithms.intervals import Interval, bootstrap_mean, paired_difference
from tasks.errors import DataError
from tasks.store.files import canonical_json

SEED = 0
_ALONE = re.compile(r"[(*\[]*([A-D])[)*\].:]*")
_ANNOUNCED = re.compile(r".*\b(?i:answer(?: is)?) ?:? ?[(*\[]*([A-D])[)*\].]*")


class SpeakerAnswer(BaseModel):
    """One row of a run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1)
    answer: str = Field(pattern="^[A-D]$", description="the right letter")
    response: str | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    questions: int
    answered: int
    strict: Interval
    """With a missing answer as a wrong one."""
    of_answered: float
    """0 if nothing was answered."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A run with both against a run with one of them."""

    over: str
    strict: Interval
    of_answered: Interval | None
    """Over the questions with an answer in both runs; None without any."""
    answered_in_both: int


@dataclass(frozen=True, slots=True)
class FusionReport:
    """All runs, and the gain over each of the others."""

    runs: dict[str, Accuracy]
    gains: tuple[Gain, ...]


def strict_letter(response: str | None) -> str | None:
    """Return the letter A to D that the last line names; None if it names none."""
    lines = [line.strip() for line in (response or "").splitlines() if line.strip()]
    result = (_ALONE.fullmatch(lines[-1]) or _ANNOUNCED.fullmatch(lines[-1])) if lines else None
    return result[1] if result else None


def read_answers(text: str, where: str) -> dict[str, SpeakerAnswer]:
    """Read JSON lines of one run, by question.

    Raises:
        DataError: names the line.
    """
    results: dict[str, SpeakerAnswer] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = SpeakerAnswer.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise DataError(f"{where}, line {number}: {field}: {first['msg']}") from error
        if row.id in results:
            raise DataError(f"{where}, line {number}: question {row.id!r} is answered twice")
        results[row.id] = row
    if not results:
        raise DataError(f"{where} has no answers")
    return results


def fusion(
    both: Mapping[str, SpeakerAnswer], others: Mapping[str, Mapping[str, SpeakerAnswer]]
) -> FusionReport:
    """Compare the run with sound and sight with runs with one of them.

    Raises:
        DataError: a run is of other questions, or has other right answers.
    """
    for name, run in others.items():
        odd = sorted(both.keys() ^ run.keys()) or [
            key for key, row in both.items() if row.answer != run[key].answer
        ]
        if odd:
            raise DataError(
                f"the runs 'both' and {name!r} differ in {len(odd)} questions or their right "
                f"answers, among them {odd[0]!r}; give runs of the same questions"
            )
    runs = {"both": both, **others}
    return FusionReport(
        {name: _accuracy(run) for name, run in runs.items()},
        tuple(_gain(both, name, run) for name, run in others.items()),
    )


def as_json(fusion: FusionReport) -> bytes:
    """Write the result as JSON."""
    return canonical_json(asdict(fusion))


def as_table(fusion: FusionReport) -> Table:
    """List runs, then gains in points with their intervals."""
    table = Table(box=None)
    for name in ("", "questions", "answered", "missing = wrong", "of answered"):
        table.add_column(name, justify="left" if not name else "right")
    for name, run in fusion.runs.items():
        counts = (str(run.questions), str(run.answered))
        table.add_row(name, *counts, _percent(run.strict), f"{run.of_answered:.1%}")
    for gain in fusion.gains:
        answered = "" if gain.of_answered is None else _percent(gain.of_answered)
        name = f"both - {gain.over}"
        table.add_row(name, "", str(gain.answered_in_both), _percent(gain.strict), answered)
    return table


def _percent(interval: Interval) -> str:
    return f"{interval.mean:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def _accuracy(run: Mapping[str, SpeakerAnswer]) -> Accuracy:
    right = [_is_right(row) for row in run.values()]
    answered = sum(strict_letter(row.response) is not None for row in run.values())
    return Accuracy(
        questions=len(run),
        answered=answered,
        strict=bootstrap_mean(right, seed=SEED),
        of_answered=sum(right) / max(answered, 1),
    )


def _gain(both: Mapping[str, SpeakerAnswer], name: str, run: Mapping[str, SpeakerAnswer]) -> Gain:
    shared = [
        key
        for key in both
        if None not in (strict_letter(both[key].response), strict_letter(run[key].response))
    ]

    def difference(keys: list[str]) -> Interval:
        ours, theirs = ([_is_right(side[key]) for key in keys] for side in (both, run))
        return paired_difference(ours, theirs, seed=SEED)

    return Gain(name, difference(list(both)), difference(shared) if shared else None, len(shared))


def _is_right(row: SpeakerAnswer) -> float:
    return float(strict_letter(row.response) == row.answer)
