"""The sweep as one table: a line per condition, a column per measure."""

from collections.abc import Mapping

from tasks.gym.judging.form import Label
from tasks.training.judge.report import FAULTS, Confusion, JudgeReport, Measure
from tasks.training.judge.sweep.conditions import select_conditions

ACCURACY, TIES, CONSISTENCY, INVERSIONS = (
    "3-class accuracy",
    "tie recall",
    "swap consistency",
    FAULTS[0],
)
MEASURES = (TIES, CONSISTENCY, INVERSIONS, ACCURACY)


def markdown(reports: Mapping[str, JudgeReport]) -> str:
    """Format the reports, by condition, as Markdown."""
    header = ("condition", "training pairs", *MEASURES, "called a tie, but is none")
    lines = [
        (
            f"{name}: {select_conditions(name)[0].meaning}",
            str(report.training_pairs),
            *_cells(report),
            f"{false_ties(report.judge_confusion):.1f} / {false_ties(report.scalar_confusion):.1f}",
        )
        for name, report in reports.items()
    ]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in (header, ("---",) * len(header), *lines))
    held_out = sorted({report.held_out_pairs for report in reports.values()})
    return (
        f"# Judge and Bradley-Terry head under other training comparisons\n\n{rows}\n\n"
        "Percent of the judge / of the head, and judge minus head with its 95 % bootstrap interval "
        f"over tasks. {', '.join(map(str, held_out))} held-out comparisons, the same in every "
        "line. Of inversions less is better; a tie inverts nothing. A head depends on no order, so "
        "its swap consistency is 100 % by construction.\n"
    )


def false_ties(confusion: Confusion) -> float:
    """Return how many percent of the pairs with a preferred answer are called ties."""
    preferred = [confusion[label] for label in (Label.A, Label.B)]
    return 100 * sum(row[Label.TIE] for row in preferred) / sum(sum(r.values()) for r in preferred)


def facts(reports: Mapping[str, JudgeReport]) -> dict[str, float | int | str]:
    """Facts for the statement of the sweep."""
    return {
        f"{name}/{measure.name}": measure.difference.mean
        for name, report in reports.items()
        for measure in report.measures
        if measure.name in MEASURES
    }


def _cells(report: JudgeReport) -> list[str]:
    by_name = {measure.name: measure for measure in report.measures}
    return [_cell(by_name[name]) if name in by_name else "-" for name in MEASURES]


def _cell(measure: Measure) -> str:
    judge, head, apart = measure.judge, measure.scalar, measure.difference
    return (
        f"{100 * judge.mean:.1f} / {100 * head.mean:.1f}, "
        f"{100 * apart.mean:+.1f} [{100 * apart.low:+.1f}, {100 * apart.high:+.1f}]"
    )
