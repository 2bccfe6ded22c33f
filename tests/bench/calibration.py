"""Rates of a task's engines from reports of RL phases, and the prediction of another phase.

An engine decodes all sequences of a draw at once, so its events add up to: passes times the seconds
of a pass, tokens times those of a sequence in a pass, and the prefill. The trainer's parts are a
constant, a rate per response token, which the head and the loss take as well, and one per prompt
token, which is computed once per group, or part of one, and attended to by every response. Rates
are not negative (non-negative least squares of relative errors). They are fitted; reports of one
shape of steps do not separate them, so calibrate with two shapes at least.

Measured are CPU seconds of the controller's process, so that other programs on the machine do not
count, but for what they evict from caches; what a step waits for its rewards is not predicted. Of
the steps the median counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from data_schemas.ledgers import GroupOutcome, LedgerRow
from data_schemas.reports import LEDGER_FILE, STEPS_FILE, TIMING_FILE, StepReport, StepTiming
from tasks.errors import DataError
from tasks.formats.ledgers import read_ledger
from tasks.store.objects import find_beside

BATCH = (
    GroupOutcome.NON_ZERO_VARIANCE,
    GroupOutcome.ZERO_VARIANCE_TRAINED,
    GroupOutcome.ZERO_VARIANCE_IDLE,
)
"""Outcomes of groups that are in the trainer's batch."""
FEATURES: Mapping[str, tuple[str, ...]] = {
    "collect": ("passes", "tokens", "prompt_tokens"),
    "old_logprobs": ("steps", "batch_prompt_tokens", "batch_response_tokens"),
    "update": ("steps", "batch_prompt_tokens", "batch_response_tokens"),
    "weight_sync": ("steps",),
}
"""Part of a step -> what its seconds are linear in."""


@dataclass(frozen=True, slots=True)
class StepWork:
    """What a step did, and how long its parts took."""

    amounts: dict[str, float]
    """By the names of FEATURES."""
    seconds: dict[str, float]


def read_steps(folder: Path) -> list[StepWork]:
    """Read the steps of a phase's report but the first, which also warms up.

    Raises:
        DataError: a file is missing, there are fewer than two steps, or one has no CPU seconds.
    """
    try:
        reports = [StepReport.model_validate_json(line) for line in _lines(folder / STEPS_FILE)]
        lines = _lines(find_beside(folder, TIMING_FILE))
        timings = [StepTiming.model_validate_json(line) for line in lines]
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} is not the report of an RL phase: {error}") from error
    rows = read_ledger(folder / LEDGER_FILE)
    if len(reports) < 2 or any(set(FEATURES) - set(timing.cpu_seconds) for timing in timings):
        raise DataError(f"{folder} needs at least two steps, each with its CPU seconds")
    return [
        StepWork(_amounts(report, [row for row in rows if row.step == report.step]), used)
        for report, used in zip(reports[1:], (t.cpu_seconds for t in timings[1:]), strict=True)
    ]


def calibrate(steps: Sequence[StepWork]) -> dict[str, NDArray[np.float64]]:
    """Fit the rates of every part, in the order of FEATURES, to relative errors."""
    rates = {}
    for part, names in FEATURES.items():
        seconds = np.array([step.seconds[part] for step in steps])
        rates[part] = nnls(_matrix(steps, names) / seconds[:, None], np.ones(len(steps)))[0]
    return rates


def predict(
    rates: Mapping[str, NDArray[np.float64]], steps: Sequence[StepWork]
) -> dict[str, tuple[float, float]]:
    """Return measured and predicted seconds of every part, the median of the steps."""
    return {
        part: (
            float(np.median([step.seconds[part] for step in steps])),
            float(np.median(_matrix(steps, names) @ rates[part])),
        )
        for part, names in FEATURES.items()
    }


def _amounts(report: StepReport, rows: Sequence[LedgerRow]) -> dict[str, float]:
    rounds = 1 + max((row.round for row in rows), default=0)
    batch = [row for row in rows if row.outcome in BATCH]
    return {
        "steps": 1.0,
        # The longest response of the first draw represents the refills.
        "passes": rounds * report.metrics.get("schedule/makespan_tokens", 0.0),
        "tokens": float(sum(row.generated_tokens for row in rows)),
        "prompt_tokens": float(sum(row.prompt_tokens for row in rows if row.rollouts)),
        "batch_prompt_tokens": float(sum(row.prompt_tokens for row in batch)),
        "batch_response_tokens": float(sum(row.generated_tokens for row in batch)),
    }


def _matrix(steps: Sequence[StepWork], names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[step.amounts[name] for name in names] for step in steps])


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
