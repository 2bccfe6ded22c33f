"""What self-play did, by variant: its own metrics early and late, and held-out answers.

A change of the held-out score is *shown* if its 95 % interval over problems excludes 0.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.arrow import read_table
from data_schemas.prompts import Domain
from data_schemas.reports import LEDGER_FILE, STEPS_FILE, StepReport
from data_schemas.samples import SampleResult
from tasks.algorithms.estimators import Interval, paired_difference
from tasks.errors import DataError
from tasks.interchange.comparison import SAMPLES_FILE
from tasks.interchange.ledger_file import read_ledger
from tasks.interchange.suites import per_problem

PUBLISHED, PLAIN = "spell", "plain"
WINDOW = 5
"""Steps at either end of a phase."""
MEASURES = {
    "bad_format_share": "questions without the form of their task, %",
    "answer_reward_mean": "mean reward of the answers to grounded questions, %",
    "operations_mean": "operations per question",
    "distinct_share": "questions that their cluster does not remember, %",
    "ungrounded_share": "questions answered without documents, %",
    "wrong_reference_share": "references that the lists contradict, %",
    "false_accept_share": "wrong answers that only the verifier accepts, % of all",
}
"""Metrics of the phase, and what they are called."""
POINTS = 100.0
ANSWERED = (Domain.CHOICE, Domain.MATHS)
"""Domains of the questions with references."""


class Cell(BaseModel):
    """One variant with one seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: str
    seed: int
    tokens: int = Field(description="generated in the phase")
    early: dict[str, float] = Field(description="mean over the first steps; empty for a plain one")
    late: dict[str, float]
    scores: dict[str, float] = Field(description="held-out question -> mean score")


class Line(BaseModel):
    """One line of the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: str
    measure: str
    early: float | None
    late: float | None
    change: Interval | None = None
    """Of held-out scores, in points."""


def read_cell(variant: str, seed: int, training: Path, evaluation: Path) -> Cell:
    """Read the reports of a phase and of the evaluation of its model."""
    lines = (training / STEPS_FILE).read_bytes().splitlines()
    steps = [StepReport.model_validate_json(line).metrics for line in lines]
    return Cell(
        variant=variant,
        seed=seed,
        tokens=sum(row.generated_tokens for row in read_ledger(training / LEDGER_FILE)),
        early=_means(steps[:WINDOW]),
        late=_means(steps[-WINDOW:]),
        scores=read_scores(evaluation),
    )


def read_scores(evaluation: Path) -> dict[str, float]:
    """Mean score by held-out question with a reference, of those with a verdict."""
    samples = [
        one for one in read_table(evaluation / SAMPLES_FILE, SampleResult) if one.domain in ANSWERED
    ]
    return {one.problem_id: one.score / one.decided for one in per_problem(samples) if one.decided}


def lines_of(
    cells: Sequence[Cell], starts: Mapping[int, Mapping[str, float]], seed: int
) -> list[Line]:
    """Build the table: the measures of every variant, then its held-out score.

    Args:
        cells: one per variant and seed.
        starts: held-out scores of the start models, by seed.
        seed: of the bootstrap.

    Raises:
        DataError: a cell has other held-out questions than its start model.
    """
    found: list[Line] = []
    by_variant: dict[str, list[Cell]] = {}
    for cell in cells:
        by_variant.setdefault(cell.variant, []).append(cell)
    for variant, mine in by_variant.items():
        for name, meaning in MEASURES.items():
            if all(name in cell.early for cell in mine):
                unit = POINTS if name.endswith(("_share", "reward_mean")) else 1.0
                early, late = ([unit * getattr(c, end)[name] for c in mine] for end in _ENDS)
                found.append(
                    Line(variant=variant, measure=meaning, early=_mean(early), late=_mean(late))
                )
        before = _pooled({cell.seed: starts[cell.seed] for cell in mine})
        after = _pooled({cell.seed: cell.scores for cell in mine})
        found.append(_held_out(variant, "held-out questions, %", before, after, seed))
    return [*found, *_against_plain(by_variant, seed)]


def markdown(lines: Sequence[Line]) -> str:
    """Write the table."""
    rows = ["| variant | measure | early / before | late / after | change, points | |"]
    rows.append("|---|---|---:|---:|---:|---|")
    for line in lines:
        change, shown = "", ""
        if line.change:
            interval = line.change
            change = f"{interval.mean:+.1f} [{interval.low:.1f}, {interval.high:.1f}]"
            shown = "shown" if interval.low > 0.0 or interval.high < 0.0 else "not shown"
        early, late = ("" if end is None else f"{end:.1f}" for end in (line.early, line.late))
        rows.append(f"| {line.variant} | {line.measure} | {early} | {late} | {change} | {shown} |")
    return "\n".join(rows) + "\n"


_ENDS = ("early", "late")


def _against_plain(by_variant: Mapping[str, Sequence[Cell]], seed: int) -> list[Line]:
    if PLAIN not in by_variant or PUBLISHED not in by_variant:
        return []
    plain, ours = (
        _pooled({cell.seed: cell.scores for cell in by_variant[name]})
        for name in (PLAIN, PUBLISHED)
    )
    name = f"{PUBLISHED} against {PLAIN}"
    return [_held_out(name, "held-out questions, %", plain, ours, seed)]


def _held_out(
    variant: str,
    measure: str,
    before: Mapping[str, float],
    after: Mapping[str, float],
    seed: int,
) -> Line:
    if before.keys() != after.keys() or not before:
        raise DataError(f"{variant}: the two evaluations have other held-out questions, or none")
    pairs = [(POINTS * after[name], POINTS * before[name]) for name in sorted(before)]
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return Line(
        variant=variant,
        measure=measure,
        early=_mean(theirs),
        late=_mean(ours),
        change=paired_difference(ours, theirs, seed=seed),
    )


def _pooled(scores: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
    """Put the questions of all seeds together; each seed draws its own."""
    return {
        f"{seed}/{name}": score for seed, found in scores.items() for name, score in found.items()
    }


def _means(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = [name for name in MEASURES if steps and all(f"spell/{name}" in one for one in steps)]
    return {name: _mean([one[f"spell/{name}"] for one in steps]) for name in keys}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
