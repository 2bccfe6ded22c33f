"""What the parts of an RL step on a GPU are compared with, and which thresholds they should reach.

Every comparison has an outcome, also when one of its sides is missing: what failed, was cut short
or was never run counts as not measured.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

OWN_LOOP, BENCH = "megatron_loop", "vllm_bench"
"""Parts by the libraries alone."""


class Outcome(StrEnum):
    """What a comparison says about its threshold."""

    MET = "met"
    NOT_MET = "not met"
    NOT_MEASURED = "not measured"
    NO_THRESHOLD = "no threshold"
    """Measured; any ratio is accepted."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the step."""

    part: str
    tokens: int
    seconds: float
    tokens_s: float
    mfu: float | None = None
    peak_bytes: int | None = None
    budget_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A ratio beside its threshold."""

    comparison: str
    ratio: float | None
    threshold: str
    outcome: Outcome


THRESHOLDS: dict[str, tuple[float, float] | None] = {
    "rollouts: tokens/s to vllm bench throughput": (0.9, math.inf),
    "update: peak memory to make budget": (0.95, 1.05),
    "weight_sync: peak memory to make budget": (0.95, 1.05),
    "update: seconds to Megatron's own loop": None,
    "update: peak memory to Megatron's own loop": None,
}
"""Least and largest ratio that is accepted."""


def compare(parts: Mapping[str, Part]) -> list[Comparison]:
    """Compare the parts that were measured, by name; the other comparisons are not measured."""

    def value(part: str, field: str) -> float | None:
        return getattr(parts[part], field) if part in parts else None

    sides = (
        (value("rollouts", "tokens_s"), value(BENCH, "tokens_s")),
        (value("update", "peak_bytes"), value("update", "budget_bytes")),
        (value("weight_sync", "peak_bytes"), value("weight_sync", "budget_bytes")),
        (value("update", "seconds"), value(OWN_LOOP, "seconds")),
        (value("update", "peak_bytes"), value(OWN_LOOP, "peak_bytes")),
    )
    return [
        _decided(name, one / other if one is not None and other else None)
        for name, (one, other) in zip(THRESHOLDS, sides, strict=True)
    ]


def line_of(comparison: Comparison) -> str:
    """Write a comparison as one line of JSON."""
    return json.dumps(asdict(comparison))


def written(comparison: Comparison) -> str:
    """Write a comparison for a person."""
    ratio = "" if comparison.ratio is None else f" {comparison.ratio:.3f}"
    threshold = f" ({comparison.threshold})" if comparison.threshold else ""
    return f"{comparison.comparison}:{ratio} {comparison.outcome.value}{threshold}"


def read_comparisons(output: str) -> list[Comparison]:
    """Find the comparisons in a command's output; those it does not hold are not measured."""
    ratios: dict[str, float | None] = {}
    for line in output.splitlines():
        if line.startswith('{"comparison": '):
            said = json.loads(line)
            ratios[said["comparison"]] = said["ratio"]
    return decide(ratios)


def decide(ratios: Mapping[str, float | None]) -> list[Comparison]:
    """Decide every comparison from ratios by its name; without one it is not measured."""
    return [_decided(name, ratios.get(name)) for name in THRESHOLDS]


def _decided(name: str, ratio: float | None) -> Comparison:
    bounds = THRESHOLDS[name]
    if bounds is None:
        outcome = Outcome.NOT_MEASURED if ratio is None else Outcome.NO_THRESHOLD
        return Comparison(name, ratio, "", outcome)
    low, high = bounds
    threshold = f"at least {low:g}" if math.isinf(high) else f"{low:g} to {high:g}"
    if ratio is None:
        return Comparison(name, None, threshold, Outcome.NOT_MEASURED)
    return Comparison(
        name, ratio, threshold, Outcome.MET if low <= ratio <= high else Outcome.NOT_MET
    )
