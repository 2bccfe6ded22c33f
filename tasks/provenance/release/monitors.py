"""Rewards that the RL phases behind a candidate only watched, and the gate's rule on them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from data_schemas.reports import MONITOR, STEPS_FILE, MonitorChange, StepReport
from data_schemas.statements import Statement
from tasks.algorithms.watched_rewards import change
from tasks.store.objects import localise


def steps_behind(chain: Mapping[str, Statement], cache: Path) -> dict[str, list[StepReport]]:
    """Read the reports of the steps of every RL phase of a chain, by stage.

    Args:
        chain: from `tasks.provenance.lineage.statements.chain`.
        cache: where objects of a remote store are kept.

    Raises:
        DataError: a report is missing.
        TamperError: a report was changed.
    """
    steps = dict[str, list[StepReport]]()
    for statement in chain.values():
        reports = [output for output in statement.outputs if output.role == "report"]
        if not statement.stage.startswith("rl/") or not reports:
            continue
        path = localise(reports[0].uri, reports[0].digest, cache) / STEPS_FILE
        lines = path.read_bytes().splitlines() if path.exists() else []
        steps[statement.stage] = [StepReport.model_validate_json(line) for line in lines]
    return steps


def changes_behind(chain: Mapping[str, Statement], cache: Path) -> tuple[MonitorChange, ...]:
    """Compare the halves of every RL phase of a chain, by monitor; empty without monitors.

    Args:
        chain: as `steps_behind`, whose errors it has.
        cache: likewise.
    """
    phases = steps_behind(chain, cache)
    return tuple(one for stage, steps in phases.items() for one in changes_of(stage, steps))


def changes_of(stage: str, steps: Sequence[StepReport]) -> list[MonitorChange]:
    """Compare the halves of a phase by monitor; too few steps may have changed by anything."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for step in steps:
        for metric, value in step.metrics.items():
            label = metric.removeprefix(MONITOR)
            if label != metric and "/" not in label:
                scores[label].append(value)
    return [
        MonitorChange(
            stage=stage,
            monitor=label,
            steps=len(values),
            before=one.before if one else values[0],
            after=one.after if one else values[-1],
            low=one.low if one else -1.0,
            high=one.high if one else 1.0,
        )
        for label, values in sorted(scores.items())
        for one in [change(values)]
    ]


def rules(
    allowed: Mapping[str, float], changes: Sequence[MonitorChange]
) -> Iterator[tuple[bool, str]]:
    """Refuse a candidate if a monitor that the settings name fell by more than it may for certain.

    A monitor without an allowance is reported, and one that no phase watched fails.

    Args:
        allowed: fall of the mean score, 0 to 1, by monitor.
        changes: of all phases.
    """
    for name in sorted(allowed.keys() - {one.monitor for one in changes}):
        yield False, f"monitor {name}: no phase of RL watched it; name it in rewards.monitor"
    for one in changes:
        numbers = (
            f"monitor {one.monitor} in {one.stage}: {one.before:.3f} to {one.after:.3f} over "
            f"{one.steps} steps, difference {one.low:+.3f} to {one.high:+.3f}"
        )
        limit = allowed.get(one.monitor)
        if limit is None:
            yield True, f"{numbers}; only reported"
        else:
            yield (
                one.high >= -limit,
                f"{numbers}; its upper end must not be below {-limit + 0.0:+.3f} "
                "(release.monitors_may_fall)",
            )
