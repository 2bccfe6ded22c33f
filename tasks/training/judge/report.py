"""The report of a trained judge: its record and its table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from data_schemas.frozen_model import FrozenModel
from tasks.algorithms.intervals import Interval
from tasks.training.judge.measures import Agreement

if TYPE_CHECKING:
    pass


Confusion = dict[str, dict[str, int]]
FAULTS = ("advantage inversion", "pairs in wrong order", "ties given an order")
"""Errors of a reward in a ranked group; less is better."""


class Measure(FrozenModel):
    """One measure of the judge and of the scalar head, on the same tasks."""

    name: str
    tasks: int = Field(description="number of tasks in the mean; the bootstrap resamples tasks")
    judge: Interval
    scalar: Interval
    difference: Interval = Field(description="judge minus scalar, paired by task")


class AgreementRow(FrozenModel):
    """Agreement of two labellers on the held-out pairs."""

    who: str
    agreement: Agreement


class JudgeReport(FrozenModel):
    """Results of a trained judge and its baseline on held-out comparisons."""

    training_pairs: int
    held_out_pairs: int
    left_out: dict[str, int] = Field(description="pairs that were not used, by reason")
    majority_accuracy: Interval = Field(description="always the most common training label")
    above_majority: Interval = Field(description="judge minus majority, paired by task")
    measures: tuple[Measure, ...]
    agreements: tuple[AgreementRow, ...]
    judge_confusion: Confusion = Field(description="human label -> verdict -> count, both orders")
    scalar_confusion: Confusion
    tie_margin: float = Field(description="scores closer than this are a tie; tuned in training")
    scalar_validation_losses: tuple[float, ...] = Field(description="per epoch")
    groups: int = Field(description="ranked groups in the comparison")
    groups_without_verdict: int = Field(description="left out: a verdict is missing")


def table(report: JudgeReport) -> RenderableType:
    """Format the report for a terminal."""
    measures = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    measures.add_column("held out")
    for column in ("ternary judge", "Bradley-Terry head", "difference", "tasks"):
        measures.add_column(column, justify="right")
    for measure in report.measures:
        measures.add_row(
            measure.name,
            *map(_format_interval, (measure.judge, measure.scalar, measure.difference)),
            str(measure.tasks),
        )
    measures.add_row("always one label", _format_interval(report.majority_accuracy), "", "", "")
    measures.add_row("judge above that", _format_interval(report.above_majority), "", "", "")
    labels = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    labels.add_column("agreement")
    labels.add_column("equal labels", justify="right")
    labels.add_column("kappa", justify="right")
    for row in report.agreements:
        labels.add_row(row.who, f"{row.agreement.raw:.1%}", f"{row.agreement.kappa:.3f}")
    return Group(measures, labels, Text(_footnote(report)))


def facts(report: JudgeReport) -> dict[str, float | int | str]:
    """Facts for the statement of the measurement."""
    return {
        "held_out_pairs": report.held_out_pairs,
        "groups": report.groups,
        "groups_without_verdict": report.groups_without_verdict,
        "majority_accuracy": report.majority_accuracy.mean,
        **{f"judge/{measure.name}": measure.judge.mean for measure in report.measures},
        **{f"scalar/{measure.name}": measure.scalar.mean for measure in report.measures},
    }


def agreement_rows(
    agreements: Sequence[tuple[str, Agreement | None]],
) -> tuple[AgreementRow, ...]:
    """Keep the agreements that exist."""
    return tuple(AgreementRow(who=who, agreement=one) for who, one in agreements if one)


def _format_interval(interval: Interval) -> str:
    return f"{100 * interval.mean:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _footnote(report: JudgeReport) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in report.left_out.items() if count)
    return (
        f"Percent, with 95 % bootstrap intervals over tasks. {report.training_pairs} training "
        f"and {report.held_out_pairs} held-out comparisons; left out: {reasons or 'none'}. "
        f"Inversions in {report.groups} ranked groups "
        f"({report.groups_without_verdict} more without verdict). "
        "Agreement is over pairs instead of tasks."
    )
