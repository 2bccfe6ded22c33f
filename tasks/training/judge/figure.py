"""The figure of a trained judge: its verdicts per human label, and its rates of inversion."""

import io
from typing import TYPE_CHECKING

import numpy as np

from tasks.training.judge.measures import COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from tasks.training.judge.report import FAULTS, Confusion, JudgeReport, Measure

JUDGE, SCALAR = "#1a7f5a", "#b3372f"


def picture(report: JudgeReport) -> bytes:
    """Draw both confusion matrices and the rates of inversion as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _confusion(left, report.judge_confusion, "ternary judge")
    _confusion(middle, report.scalar_confusion, "Bradley-Terry head")
    _rates(right, [measure for measure in report.measures if measure.name in FAULTS])
    stream = io.BytesIO()
    # The version of matplotlib is omitted, so that equal reports give equal bytes.
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return stream.getvalue()


def _confusion(axes: "Axes", confusion: Confusion, title: str) -> None:
    """Draw the shares of the verdicts A, B, TIE and none per human label."""
    counts = np.array([[row[verdict] for verdict in COLUMNS] for row in confusion.values()])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Greens", vmin=0.0, vmax=1.0)
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.6 else "black"
        axes.text(column, row, f"{share:.0%}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(COLUMNS)), COLUMNS)
    axes.set_yticks(range(len(confusion)), list(confusion))
    axes.set_xlabel("verdict")
    axes.set_ylabel("human label")
    axes.set_title(title)


def _rates(axes: "Axes", measures: list[Measure]) -> None:
    axes.set_title("errors against the human ranking")
    if not measures:
        axes.text(0.5, 0.5, "no ranked group", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    for side, (name, colour) in enumerate((("judge", JUDGE), ("scalar", SCALAR))):
        rates = [m.judge if name == "judge" else m.scalar for m in measures]
        means = [100 * one.mean for one in rates]
        below = [100 * max(one.mean - one.low, 0.0) for one in rates]
        above = [100 * max(one.high - one.mean, 0.0) for one in rates]
        places = np.arange(len(measures)) + 0.36 * (side - 0.5)
        axes.bar(
            places, means, width=0.34, color=colour, yerr=(below, above), capsize=3, label=name
        )
    axes.set_xticks(
        range(len(measures)), [measure.name.replace(" ", "\n", 1) for measure in measures]
    )
    axes.set_ylim(0.0, 105.0)
    axes.set_ylabel("%")
    axes.legend(frameon=False)
