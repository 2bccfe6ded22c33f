"""Which measured quantity warns of a collapse of RL, and how many steps ahead.

An alarm compares a quantity with its own first steps, so it needs no threshold per model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

WATCHED = (
    "mismatch/k3",
    "mismatch/mean_abs_logprob",
    "mismatch/abs_logprob_p999",
    "mismatch/tail_index",
    "mismatch/sequence_log_ratio",
    "mismatch/sequence_effective_share",
    "policy/grad_norm",
    "policy/entropy_nats",
    "policy/clip_share",
)
"""Metrics of a step report."""
CALM_STEPS = 10
"""First steps of a run, which say what is usual."""
WIDTH = 6.0
"""Robust standard deviations from the median of the calm steps; in a normal distribution two
steps in a row lie outside once in 10^17."""
IN_A_ROW = 2
"""Steps outside before the alarm is raised: one step may be a rare route of a likely token."""
MAD_TO_SIGMA = 1.4826
COLLAPSED = 0.5
"""Share of the best mean reward so far below which a run counts as collapsed."""
WINDOW = 3
"""Steps that the reward is averaged over."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One watched quantity in one run."""

    metric: str
    step: int | None
    """First step of the alarm; None: it was never raised."""
    lead: int | None
    """Steps before the collapse, negative if after it; None without alarm or collapse."""


def collapse_step(rewards: Sequence[float]) -> int | None:
    """First step, counted from 1, whose windowed mean reward is below half of the best so far.

    None without such a step, or with fewer steps than a window.
    """
    if len(rewards) < WINDOW:
        return None
    means = np.convolve(rewards, np.full(WINDOW, 1.0 / WINDOW), mode="valid")
    below = means < COLLAPSED * np.maximum.accumulate(means)
    return int(np.argmax(below)) + WINDOW if below.any() else None


def alarm_step(values: Sequence[float]) -> int | None:
    """First step, counted from 1, of a departure from the calm steps, to either side.

    A quantity that is constant over the calm steps departs as soon as it changes. None without
    a departure, or if there are no steps after the calm ones. NaN stands for a step without the
    quantity, which neither raises nor ends an alarm's count.
    """
    points = [(step, value) for step, value in enumerate(values, start=1) if not np.isnan(value)]
    calm = np.array([value for step, value in points if step <= CALM_STEPS])
    if not calm.size:
        return None
    middle = np.median(calm)
    sigma = MAD_TO_SIGMA * np.median(np.abs(calm - middle))
    count = 0
    for step, value in points:
        if step <= CALM_STEPS:
            continue
        count = count + 1 if abs(value - middle) > WIDTH * sigma else 0
        if count == IN_A_ROW:
            return step
    return None


def alarms(steps: Sequence[Mapping[str, float]]) -> list[Alarm]:
    """Read all watched quantities of a run from the metrics of its steps."""
    collapse = collapse_step([metrics["reward/mean"] for metrics in steps])
    raised = []
    for metric in WATCHED:
        step = alarm_step([metrics.get(metric, float("nan")) for metrics in steps])
        lead = None if step is None or collapse is None else collapse - step
        raised.append(Alarm(metric, step, lead))
    return raised


def alarms_table(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    """Build the table: a line per quantity, and per run the step of its alarm and its lead."""
    table = Table(box=None)
    table.add_column("alarm, step (steps before the collapse)")
    columns = []
    for name, steps in runs.items():
        collapse = collapse_step([metrics["reward/mean"] for metrics in steps])
        state = "no collapse" if collapse is None else f"collapse at {collapse}"
        table.add_column(f"{name}: {state}", justify="right")
        columns.append([_text(alarm) for alarm in alarms(steps)])
    for metric, *cells in zip(WATCHED, *columns, strict=True):
        table.add_row(metric, *cells)
    return table


def _text(alarm: Alarm) -> str:
    if alarm.step is None:
        return "-"
    return str(alarm.step) if alarm.lead is None else f"{alarm.step} ({alarm.lead:+d})"
