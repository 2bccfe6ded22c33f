"""Families in which a model cannot be told from a text that does no task: no headline counts them.

A family is at its floor if the interval of the model's mean score minus that of the best such text,
paired by problem, reaches zero or less. A family without a comparison, because a judge or code
of others scores it, is not.
"""

from collections.abc import Sequence

from data_schemas.reports import Comparison, EchoScore, EvaluationReport, SuiteScore
from tasks.algorithms.slices import pool_comparisons

ALL = "all"
_FAMILY = "domain:"


def at_floor(report: EvaluationReport) -> list[EchoScore]:
    """Return the texts that a model is not above for certain."""
    return [echo for echo in report.echoes if echo.low is not None and echo.low <= 0.0]


def overall_score(report: EvaluationReport) -> SuiteScore | None:
    """Return the accuracy on all families that are above their floors; None if there is none."""
    whole = next((one for one in report.suites if one.suite == ALL), None)
    floors = {echo.suite for echo in at_floor(report)}
    if whole is None or not floors:
        return whole
    parts = [
        Comparison(
            suite=one.suite,
            parent="",
            difference=one.accuracy,
            low=one.low,
            high=one.high,
            problems=one.problems,
        )
        for one in report.suites
        if one.suite.startswith(_FAMILY) and one.suite not in floors and one.problems
    ]
    if not parts:
        return None
    pool = pool_comparisons(parts, ALL)
    low, high = max(0.0, pool.low), min(1.0, pool.high)
    return whole.model_copy(
        update={
            "accuracy": pool.difference,
            "low": low,
            "high": high,
            "problems": pool.problems,
            "abstained": sum(
                one.abstained
                for one in report.suites
                if one.suite in {part.suite for part in parts}
            ),
        }
    )


def overall_gain(report: EvaluationReport, gains: Sequence[Comparison]) -> Comparison | None:
    """Return the difference to the parent on the same families; None if there is none."""
    floors = {echo.suite for echo in at_floor(report)}
    if not floors:
        return next((one for one in gains if one.suite == ALL), None)
    parts = [one for one in gains if one.suite.startswith(_FAMILY) and one.suite not in floors]
    return pool_comparisons(parts, ALL) if parts else None


def floor_sentence(report: EvaluationReport) -> str:
    """Name the families at their floors with the texts and the differences; '' without any."""
    parts = [
        f"{echo.suite.removeprefix(_FAMILY).replace('_', ' ')} ({echo.text!r} has "
        f"{100 * echo.score:.1f} %, the model {100 * (echo.difference or 0.0):+.1f} points, "
        f"interval {100 * (echo.low or 0.0):+.1f} to {100 * (echo.high or 0.0):+.1f})"
        for echo in at_floor(report)
    ]
    if not parts:
        return ""
    return "Not told from a text that does no task, and in no headline: " + "; ".join(parts) + "."
