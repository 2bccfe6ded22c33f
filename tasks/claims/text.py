"""The papers' claims beside ours, with the conditions of our numbers."""

from tasks.claims.table import Evidence, rows
from tasks.platform.tables import Sheet

HEADER = ("claim", "paper", "ours", "interval", "verdict")


def sheet(evidence: Evidence) -> Sheet:
    """Tabulate the claims."""
    return Sheet("Claims of the papers", HEADER, rows(evidence), conditions(evidence))


def conditions(evidence: Evidence) -> str:
    """Say under which conditions the numbers were measured."""
    study, judge = evidence.study, evidence.judge
    return (
        f"Ours: {study.max_tokens:,} generated tokens per phase, {len(study.seeds)} seeds, "
        f"{study.problems} held-out problems with {study.samples} responses each, a start model "
        f"of {study.start.mean:.1%}; the judge on {judge.held_out_pairs} held-out comparisons. "
        "Intervals: 95 %, bootstrap over problems, steps or tasks, in the unit of the number. "
        "Shown: the claimed sign, an interval without 0 and, for accuracy, the same sign for "
        "every seed; without an interval: the claimed sign."
    )
