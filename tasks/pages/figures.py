"""Plots as inline SVG with text as text, ids unique per figure and no external resources.

Every figure is drawn as wide as a phone shows it, so that its letters keep their size.
"""

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from data_schemas.drift import FieldDrift
from data_schemas.reports import Comparison, EvaluationReport
from tasks.pages import wording
from tasks.pages.inputs import Tuning, suite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

INK = "#1c2733"
MUTED = "#66727f"
GRID = "#e9edf1"
GOOD = "#1a7f5a"
BAD = "#b3372f"
NEUTRAL = "#8b97a3"
WINDOW = "#dff1ea"
PHASES = ("#d08a1d", "#b8491a", "#7d2f3f", "#4c4a86")
"""RL phases in order; the checkpoints after them have the same colours."""
TUNED = "#3f7fb5"
MERGED = "#6b5aa8"
START = "#8b97a3"

MAX_LABEL = 12
"""Characters of a row's label that the margin shows."""
FEW_EPOCHS = 10
"""Below this number each has a tick."""
MAX_LONG_LABEL = 20
"""Likewise, where the margin grows with the labels: names that a user gave."""
WIDTH_IN = 4.9
"""At 72 units per inch: the inner width of a card on a phone."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "eachprompt",
    "font.size": 10.8,
    "text.color": INK,
    "axes.edgecolor": "#cbd3db",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 1.0,
    "xtick.color": "#cbd3db",
    "ytick.color": "#cbd3db",
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "ytick.major.size": 0.0,
    "axes.unicode_minus": True,
    "axes.formatter.limits": (-3, 4),
}

Series = Mapping[str, Sequence[tuple[int, float]]]
"""Name of the phase -> (step, value)."""


def model_colour(model: str) -> str:
    """Return the colour of a model: start grey, tuned blue, merged violet, RL warm."""
    if model.startswith("sft/"):
        return TUNED
    if model == "merged":
        return MERGED
    return {"rl/one": PHASES[0], "rl/two": PHASES[1]}.get(model, START)


def progression_figure(progression: Sequence[EvaluationReport], name: str, num_rows: int) -> str:
    """Draw held-out accuracy of every model with its interval, first model on top.

    Args:
        progression: models; those without a verdict on 'all' are left out.
        name: unique on the page.
        num_rows: height in rows, so that neighbouring figures are equally high.
    """
    rows = [(report.model, score) for report in progression if (score := suite(report, "all"))]
    with _style():
        figure, axes = _rows_canvas(num_rows)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        for place, (model, score) in enumerate(rows):
            colour = model_colour(model)
            axes.barh(
                place,
                100 * score.accuracy,
                height=0.56 * len(rows) / num_rows,
                color=colour,
                alpha=0.16,
                lw=0,
            )
            _interval(axes, place, (score.accuracy, score.low, score.high), colour)
            _value(axes, place, wording.percent(score.accuracy), bold=place == len(rows) - 1)
        _rows_axis(axes, [model for model, _ in rows])
        axes.set_xlim(0, max(5.0, 1.04 * max(100 * score.high for _, score in rows)))
        axes.set_xlabel("held-out problems solved, %")
        return _svg(figure, name, "Held-out accuracy of every model with its interval")


def gains_figure(gains: Sequence[Comparison], name: str, num_rows: int) -> str:
    """Draw candidate minus parent for every task family, 'all' on top; see `progression_figure`."""
    with _style():
        figure, axes = _rows_canvas(num_rows)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.axvline(0.0, color=INK, lw=1.0)
        for place, gain in enumerate(gains):
            colour = (GOOD if gain.difference > 0 else BAD) if wording.is_clear(gain) else NEUTRAL
            _interval(axes, place, (gain.difference, gain.low, gain.high), colour)
            _value(axes, place, wording.signed_points(gain.difference), bold=gain.suite == "all")
        _rows_axis(axes, [wording.suite_label(gain.suite) for gain in gains])
        axes.set_xlabel("points gained on the same problems")
        return _svg(figure, name, "Gain of every task family with its interval")


def intervals_figure(
    rows: Sequence[tuple[str, tuple[float, float, float]]],
    name: str,
    unit: str,
    *,
    zero: bool = False,
) -> str:
    """Draw a line with its interval for each row, the first on top.

    Args:
        rows: label, and value, low and high as shares.
        name: unique on the page.
        unit: of the axis, "%" or "points".
        zero: draw a line at 0; rows whose interval excludes it have a colour.
    """
    with _style():
        longest = max((len(label) for label, _ in rows), default=0)
        figure, axes = _rows_canvas(len(rows), longest)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        if zero:
            axes.axvline(0.0, color=NEUTRAL, lw=1.0)
        for place, (_, (value, low, high)) in enumerate(rows):
            colour = TUNED
            if zero:
                colour = GOOD if low > 0 else BAD if high < 0 else NEUTRAL
            _interval(axes, place, (value, low, high), colour)
            text = wording.signed_points(value) if zero else wording.percent(value)
            _value(axes, place, text, bold=False)
        _rows_axis(axes, [_cut(label, MAX_LONG_LABEL) for label, _ in rows])
        axes.set_xlabel(unit)
        return _svg(figure, name, "One line with its interval for each row")


def phases_figure(series: Series, name: str, title: str) -> str:
    """Draw one metric over the steps of all phases, one phase after the other.

    The thin line is the value, the thick one its trailing mean over an eighth of the phase.
    """
    with _style():
        figure, axes = _curve_canvas()
        before = 0
        for place, points in enumerate(series.values()):
            if not points:
                continue
            colour = PHASES[place % len(PHASES)]
            steps = before + np.array([step for step, _ in points])
            values = np.array([value for _, value in points])
            if before:
                axes.axvline(before + 0.5, color="#cbd3db", lw=1.0, ls=(0, (2, 3)))
            axes.plot(steps, values, color=colour, lw=1.0, alpha=0.4)
            axes.plot(steps, trailing_mean(values), color=colour, lw=2.2, solid_capstyle="round")
            if len(points) == 1:  # a line of one point is not seen
                axes.plot(steps, values, "o", color=colour, ms=5)
            before = int(steps[-1])
        _step_axis(axes)
        if before == 1:
            axes.set_xlim(0.0, 2.0)
        return _svg(figure, name, title)


def uses_figure(layers: Sequence[tuple[str, Series]], name: str) -> str:
    """Stack the shares of the generated tokens by use over the steps of all phases, smoothed.

    Args:
        layers: colour and percentages of every use, from the bottom; all of the same steps.
        name: unique on the page.
    """
    with _style():
        figure, axes = _curve_canvas()
        before = 0
        for phase, points in layers[0][1].items():
            if not points:
                continue
            steps = before + np.array([step for step, _ in points], dtype=float)
            values = [[value for _, value in series[phase]] for _, series in layers]
            smooth = [trailing_mean(np.array(line)) for line in values]
            if len(points) == 1:  # an area of one point is not seen: half a step on both sides
                steps = steps[0] + np.array([-0.5, 0.5])
                smooth = [np.repeat(line, 2) for line in smooth]
            axes.stackplot(steps, smooth, colors=[colour for colour, _ in layers], lw=0)
            if before:
                axes.axvline(before + 0.5, color="white", lw=1.6)
            before += points[-1][0]
        _step_axis(axes)
        axes.set_ylim(0.0, 100.0)
        if before == 1:
            axes.set_xlim(0.0, 2.0)
        return _svg(figure, name, "What generated tokens were used for")


def domains_of(tuning: Tuning) -> list[str]:
    """Name the domains of the validation rows; none where there is one only."""
    domains = list(tuning.epochs[0].val_losses) if tuning.epochs else []
    return domains if len(domains) > 1 else []


def moved_apart(values: Sequence[float], gap: float) -> list[float]:
    """Move values upwards until neighbours are `gap` apart, so that their labels can be read."""
    places, place = list(values), -np.inf
    for index in np.argsort(values, kind="stable"):
        places[index] = place = max(values[index], place + gap)
    return places


def losses_figure(tuning: Tuning, name: str) -> str:
    """Draw training and validation loss per epoch, both also by domain.

    A ring marks the chosen checkpoint. Domains have thin lines, dashed ones in training.
    """
    epochs = [epoch.epoch for epoch in tuning.epochs]
    with _style():
        figure, axes = _curve_canvas()
        axes.plot(epochs, [epoch.train_loss for epoch in tuning.epochs], "o-", color=NEUTRAL, ms=4)
        for domain in domains_of(tuning):
            if all(domain in epoch.train_losses for epoch in tuning.epochs):
                losses = [epoch.train_losses[domain] for epoch in tuning.epochs]
                axes.plot(epochs, losses, "--", color=NEUTRAL, lw=0.8, alpha=0.45)
            losses = [epoch.val_losses[domain] for epoch in tuning.epochs]
            axes.plot(epochs, losses, "-", color=TUNED, lw=0.8, alpha=0.45)
        axes.plot(epochs, [epoch.val_loss for epoch in tuning.epochs], "o-", color=TUNED, ms=4)
        for epoch in tuning.epochs:
            if epoch.chosen:
                _ring(axes, epoch.epoch, epoch.val_loss)
        _step_axis(axes, "epoch")
        if len(epochs) < FEW_EPOCHS:
            axes.set_xticks(epochs)
        if domains := domains_of(tuning):
            low, high = axes.get_ylim()
            ends = [tuning.epochs[-1].val_losses[domain] for domain in domains]
            span = max(1, epochs[-1] - epochs[0])
            right = epochs[-1] + 0.04 * span
            for domain, place in zip(domains, moved_apart(ends, 0.07 * (high - low)), strict=True):
                axes.text(right, place, domain, fontsize=6.5, color=TUNED, va="center")
            axes.set_xlim(right=right + 0.24 * span)
        return _svg(figure, name, "Loss per epoch on training and held-back demonstrations")


def entropy_figure(tuning: Tuning, name: str) -> str:
    """Draw entropy per epoch over the window RL should start in."""
    low, high = tuning.entropy_window_nats
    epochs = [epoch.epoch for epoch in tuning.epochs]
    with _style():
        figure, axes = _curve_canvas()
        axes.axhspan(low, high, color=WINDOW, lw=0, zorder=0)
        axes.plot(epochs, [epoch.entropy for epoch in tuning.epochs], "o-", color=TUNED, ms=4)
        for epoch in tuning.epochs:
            if epoch.chosen:
                _ring(axes, epoch.epoch, epoch.entropy)
        _step_axis(axes, "epoch")
        if len(epochs) < FEW_EPOCHS:
            axes.set_xticks(epochs)
        return _svg(figure, name, "Entropy per epoch with the window of the rule")


def shares_figure(field: FieldDrift, name: str) -> str:
    """Draw the share of every value among known and new problems, two bars a row."""
    with _style():
        figure, axes = _rows_canvas(len(field.shares))
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        for place, share in enumerate(field.shares):
            axes.barh(place - 0.19, 100 * share.known, height=0.34, color=NEUTRAL, lw=0)
            axes.barh(place + 0.19, 100 * share.new, height=0.34, color=TUNED, lw=0)
            _value(axes, place, wording.percent(share.new), bold=False)
        labels = [_cut(share.value) for share in field.shares]
        _rows_axis(axes, labels)
        axes.set_xlabel("share of the problems, %")
        return _svg(figure, name, f"Known and new problems by {field.field}")


_LABELLED = 1000
"""Below this ratio of lengths, 2 and 5 of each decade have labels, too: there may be one decade."""


def lengths_figure(lengths: Mapping[int, int], name: str) -> str:
    """Draw a histogram of counted lengths on a logarithmic axis; one bar if all are equal."""
    low, high = max(1, min(lengths)), max(*lengths, 2)
    edges = np.geomspace(low, max(high, 2 * low), 31)
    with _style():
        figure, axes = _curve_canvas()
        axes.hist(
            np.maximum(list(lengths), 1),
            weights=list(lengths.values()),
            bins=edges.tolist(),
            color=TUNED,
            rwidth=0.9,
        )
        axes.set_xscale("log")
        steps = (1.0, 2.0, 5.0) if high < _LABELLED * low else (1.0,)
        from matplotlib.ticker import LogLocator

        axes.xaxis.set_major_locator(LogLocator(subs=steps))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.yaxis.set_major_locator(_ticks(4, integer=True))
        axes.set_xlabel("characters")
        return _svg(figure, name, "Histogram of lengths")


def levels_figure(levels: Mapping[int, int], name: str) -> str:
    """Draw how many problems each level has."""
    with _style():
        figure, axes = _curve_canvas()
        axes.bar(list(levels), list(levels.values()), color=TUNED, width=0.8)
        axes.xaxis.set_major_locator(_ticks(10, integer=True))
        axes.yaxis.set_major_locator(_ticks(4, integer=True))
        axes.set_xlabel("level")
        return _svg(figure, name, "Problems by level")


def _cut(label: str, most: int = MAX_LABEL) -> str:
    """Shorten a label to the margin, without signs that matplotlib reads as mathematics."""
    plain = label.replace("$", r"\$")
    return plain if len(plain) <= most else f"{plain[: most - 1]}\u2026"


def trailing_mean(values: np.ndarray) -> np.ndarray:
    """Smooth a curve by the mean of its last points, an eighth of it and at least one."""
    width = max(1, len(values) // 8)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - width, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def _style() -> AbstractContextManager[None]:
    # Imported where a figure is drawn: matplotlib takes a second, which no other stage needs.
    from matplotlib import rc_context

    return rc_context(_STYLE)


def _ticks(most: int, *, integer: bool = False) -> "MaxNLocator":
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, integer=integer)


def _curve_canvas() -> "tuple[Figure, Axes]":
    """Axes for a curve over steps or epochs."""
    return _canvas(2.03, left=0.46, right=0.1, bottom=0.44)


def _rows_canvas(num_rows: int, longest: int = MAX_LABEL) -> "tuple[Figure, Axes]":
    """Axes with one labelled row per model or family, and room for a number at its end.

    Args:
        num_rows: that the figure has.
        longest: label, in letters; the margin grows beyond MAX_LABEL of them.
    """
    left = 1.12 * max(MAX_LABEL, min(longest, MAX_LONG_LABEL)) / MAX_LABEL
    return _canvas(0.58 + 0.36 * num_rows, left=left, right=0.66, bottom=0.46)


def _canvas(height_in: float, *, left: float, right: float, bottom: float) -> "tuple[Figure, Axes]":
    """Margins in inches, so that axes of different figures line up."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, height_in))
    width, height = WIDTH_IN - left - right, height_in - bottom - 0.12
    axes = figure.add_axes(
        (left / WIDTH_IN, bottom / height_in, width / WIDTH_IN, height / height_in)
    )
    return figure, axes


def _interval(axes: "Axes", place: int, shares: tuple[float, float, float], colour: str) -> None:
    middle, low, high = (100 * share for share in shares)
    axes.plot([low, high], [place, place], color=colour, lw=2.4, solid_capstyle="round")
    axes.plot([middle], [place], "o", color=colour, ms=7, mec="white", mew=1.4)


def _value(axes: "Axes", place: int, text: str, *, bold: bool) -> None:
    axes.text(
        1.02,
        place,
        text,
        transform=axes.get_yaxis_transform(),
        va="center",
        fontweight="bold" if bold else "normal",
    )


def _rows_axis(axes: "Axes", labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", labelcolor=INK, labelsize=10.8)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.xaxis.set_major_locator(_ticks(5))


def _step_axis(axes: "Axes", unit: str = "step") -> None:
    axes.set_xlabel(unit)
    axes.xaxis.set_major_locator(_ticks(6, integer=True))
    axes.yaxis.set_major_locator(_ticks(4))
    # Right of the ticks: the highest of them may stand at the top, where the exponent is.
    axes.yaxis.get_offset_text().set(x=0.0, ha="left")
    axes.set_ymargin(0.12)


def _ring(axes: "Axes", x: float, y: float) -> None:
    axes.plot([x], [y], "o", ms=11, mfc="none", mec=INK, mew=1.6)


def _svg(figure: "Figure", name: str, title: str) -> str:
    """Serialise for inlining: no prologue, no page-wide styles, ids that belong to this figure."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # Text stays text, so that the page's fonts draw it: matplotlib's own need not have it.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        figure.savefig(
            buffer,
            format="svg",
            metadata={"Creator": None, "Date": None, "Format": None, "Type": None},
        )
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)  # the page's own font
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    label = f'<svg role="img" aria-label="{title}" style="stroke-linejoin:round"'
    return svg.replace("<svg", label, 1)
