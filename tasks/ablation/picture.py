"""Plots of every variant: gain and rate of zero-variance groups; reward and tokens by step."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.ablation.report import AblationReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CERTAIN, OPEN, FLAT, TRAINED = "#b3372f", "#8b97a3", "#d08a1d", "#3f7fb5"


def picture(report: AblationReport) -> bytes:
    """Plot the differences in accuracy with their intervals, and both zero-variance rates."""
    lines = report.lines
    places = range(len(lines))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 1.2 + 0.3 * len(lines)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for place, line in enumerate(lines):
        colour = CERTAIN if line.certain else OPEN
        low, high = 100 * line.difference.low, 100 * line.difference.high
        left.plot([low, high], [place, place], color=colour, lw=2.4)
        left.plot([100 * line.difference.mean], [place], "o", color=colour)
    left.axvline(0.0, color="black", lw=0.8)
    left.set_yticks(places, [line.variant for line in lines])
    left.invert_yaxis()
    left.set_xlabel("difference in held-out accuracy, points (red: certain)")
    right.plot([100 * line.flat_first for line in lines], places, "o", color=FLAT)
    right.plot([100 * line.flat_trained for line in lines], places, "s", color=TRAINED)
    right.set_xlim(left=0.0)
    right.set_xlabel("zero-variance groups, %: first draws (circles), trained batch (squares)")
    return _png(figure)


def curves(report: AblationReport) -> bytes:
    """Plot the reward and the trained tokens of every step, a line per variant.

    A line is the mean over the seeds, up to the last step that all of them have.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for line in report.lines:
        cells = [cell for cell in report.cells if cell.variant == line.variant]
        left.plot(mean_by_step([cell.rewards for cell in cells]), label=line.variant)
        right.plot(mean_by_step([cell.trained_tokens for cell in cells]))
    left.set_xlabel("step")
    left.set_ylabel("reward")
    right.set_xlabel("step")
    right.set_ylabel("tokens trained")
    right.set_ylim(bottom=0.0)
    left.legend(fontsize="small")
    return _png(figure)


def mean_by_step(seeds: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean over seeds of every step that all of them have."""
    return [sum(values) / len(values) for values in zip(*seeds, strict=False)]


def _png(figure: "Figure") -> bytes:
    stream = io.BytesIO()
    # Metadata without the version of matplotlib, so that equal reports give equal bytes.
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return stream.getvalue()
