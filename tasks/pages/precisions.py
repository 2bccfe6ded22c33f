"""What other precisions of a model change, as tables for the report and for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.reports import PrecisionReport, PrecisionSlice
from tasks.pages import wording

NOT_MEASURED = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class PrecisionRow:
    """One slice."""

    label: str
    points: str
    reach: str
    """Interval of the points."""
    kl: str
    kl_reach: str
    routes: str
    tokens: str
    kind: str
    """'no': solves fewer for certain; 'yes': more; '' otherwise."""


@dataclass(frozen=True, slots=True)
class PrecisionTable:
    """One precision beside the reference."""

    title: str
    rows: tuple[PrecisionRow, ...]
    layers: str
    """Which layer's experts change most; '' in a dense model."""


def precision_tables(reports: Sequence[PrecisionReport]) -> tuple[PrecisionTable, ...]:
    """Make a table of every precision."""
    return tuple(
        PrecisionTable(
            title=f"{one.model} in {one.precision}, against {one.reference}",
            rows=tuple(_row(part) for part in one.slices),
            layers=_layers(one),
        )
        for one in reports
    )


def _row(part: PrecisionSlice) -> PrecisionRow:
    gain, points, reach, kl_reach, kind = part.gain, NOT_MEASURED, NOT_MEASURED, NOT_MEASURED, ""
    if gain is not None:
        points = wording.signed_points(gain.difference)
        reach = f"{wording.signed_points(gain.low)} to {wording.signed_points(gain.high)}"
        kind = ("yes" if gain.difference > 0 else "no") if wording.is_clear(gain) else ""
    if part.k3_low is not None and part.k3_high is not None:
        kl_reach = f"{part.k3_low:.1e} to {part.k3_high:.1e}"
    routes, tokens = (
        NOT_MEASURED if share is None else wording.percent(share)
        for share in (part.routes, part.routed_tokens)
    )
    label = wording.suite_label(part.suite)
    return PrecisionRow(label, points, reach, f"{part.k3:.1e}", kl_reach, routes, tokens, kind)


def _layers(report: PrecisionReport) -> str:
    """Name the layer whose experts are used most differently."""
    if not report.layers:
        return ""
    worst = max(report.layers, key=lambda one: one.moved)
    return (
        f"The use of experts changes most in layer {worst.layer} of {len(report.layers)} with a "
        f"router: {wording.percent(worst.moved)} of its choices go to other experts on the whole, "
        f"and the share of expert {worst.expert} changes by {wording.signed_points(worst.change)} "
        "points."
    )
