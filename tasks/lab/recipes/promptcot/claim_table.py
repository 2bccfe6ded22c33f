"""The table of claims, with the conditions of its numbers."""

from collections import Counter

from tasks.lab.recipes.promptcot.report import SynthesisReport
from tasks.platform.tables import Sheet, claim_sheet


def sheet(report: SynthesisReport) -> Sheet:
    """Tabulate the study."""
    return claim_sheet("Synthesised problems", report.claims, conditions(report))


def conditions(report: SynthesisReport) -> str:
    """Say what the numbers were measured on."""
    counts: Counter[str] = Counter()
    for cell in report.cells:
        counts.update(cell.left_out)
    num_kept = counts.pop("", 0)
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return (
        f"{len(report.cells)} seeds; {num_kept} of {sum(c.written for c in report.cells)} written "
        f"problems kept, left out: {reasons or 'none'}. NLL: an upper bound, from samples of the "
        f"planner, on {len(report.cells[0].before.nll)} problems per seed that nothing was trained "
        f"on. Grading keeps {sum(c.trained for c in report.cells)} problems by the solver's pass "
        "rate against the label."
    )
