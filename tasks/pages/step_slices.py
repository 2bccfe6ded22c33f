"""What the steps of a phase were like for every language and task family."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_schemas.reports import StepReport
from tasks.formats.slices import measures_by_slice
from tasks.pages import wording
from tasks.pages.inputs import read_steps

NOT_MEASURED = "\N{EN DASH}"
PARTS = 5
"""The first and the last fifth of the steps stand beside each other."""
COLUMNS = ("steps", "reward", "tokens", "cut at the limit", "without a verdict", "mismatch, k3")
NOTE = (
    "means over the steps with responses of it; reward and tokens: first fifth of them, then the "
    "last"
)


@dataclass(frozen=True, slots=True)
class SliceLine:
    """A language or a task family over the steps of a phase."""

    label: str
    steps: int
    """In which it had responses."""
    reward: str
    """In the first and in the last of these steps."""
    tokens: str
    cut: str
    abstained: str
    k3: str

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands under COLUMNS."""
        return (
            str(self.steps),
            self.reward,
            self.tokens,
            self.cut,
            self.abstained,
            self.k3,
        )


@dataclass(frozen=True, slots=True)
class PhaseSlices:
    """One phase."""

    name: str
    rows: tuple[SliceLine, ...]
    columns: tuple[str, ...] = COLUMNS
    note: str = NOTE


def phase_slices(phases: Mapping[str, Path]) -> tuple[PhaseSlices, ...]:
    """Read every phase; one whose reports have no slices is left out."""
    read = (PhaseSlices(name, slice_lines(read_steps(path))) for name, path in phases.items())
    return tuple(one for one in read if one.rows)


def slice_lines(reports: Sequence[StepReport]) -> tuple[SliceLine, ...]:
    """Sum up the steps of a phase, languages first.

    Means are over the steps in which a slice has the measure; a step counts once, whatever the
    number of its responses.
    """
    slices = measures_by_slice(reports)
    keys = sorted(slices, key=lambda key: (key[0] != "language", key))
    return tuple(_line(":".join(key), slices[key]) for key in keys)


def _line(name: str, measures: Mapping[str, Sequence[float]]) -> SliceLine:
    k3 = measures.get("k3", ())
    return SliceLine(
        label=wording.suite_label(name),
        steps=len(measures["length_tokens"]),
        reward=_course(measures.get("reward", ()), ".2f"),
        tokens=_course(measures["length_tokens"], ".1f"),
        cut=wording.percent(_mean(measures["truncated_share"])),
        abstained=wording.percent(_mean(measures["abstained_share"])),
        k3=f"{_mean(k3):.1e}" if k3 else NOT_MEASURED,
    )


def _course(values: Sequence[float], form: str) -> str:
    """'0.31 -> 0.47': means of the first and of the last fifth."""
    if not values:
        return NOT_MEASURED
    width = max(1, len(values) // PARTS)
    first, last = _mean(values[:width]), _mean(values[-width:])
    return f"{first:{form}} \N{RIGHTWARDS ARROW} {last:{form}}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
