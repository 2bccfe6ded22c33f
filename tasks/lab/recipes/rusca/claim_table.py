"""The table of claims, with the conditions of its numbers."""

from tasks.algorithms.intervals import (
    Interval,
)
from tasks.lab.recipes.rusca.report import ScaffoldReport
from tasks.platform.tables import Sheet, claim_sheet


def sheet(report: ScaffoldReport) -> Sheet:
    """Tabulate the study."""
    return claim_sheet("RuscaRL's scaffold", report.claims, conditions(report))


def conditions(report: ScaffoldReport) -> str:
    """Say under which conditions the numbers were measured."""
    lift, cells = report.lift, report.cells
    tokens = [cell.tokens for cell in cells]
    variants = "; ".join(f"{name} {_percent(score)}" for name, score in report.scores.items())
    return (
        f"Gate: with all criteria in the prompt the start model scores {lift.shown:.1%}, without "
        f"{lift.bare:.1%}: {_percent(lift.lift)} on {len(lift.scores)} problems that are trained "
        f"on. {len({cell.seed for cell in cells})} seeds, {min(tokens):,} to {max(tokens):,} "
        f"generated tokens per phase, {len(cells[0].scores)} held-out problems. Held-out score "
        f"under bare prompts: start {_percent(report.start)}; {variants}."
    )


def _percent(value: Interval) -> str:
    return f"{value.mean:.1%} [{value.low:.1%}, {value.high:.1%}]"
