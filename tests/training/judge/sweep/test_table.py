"""The table of the sweep."""

from tasks.algorithms.estimators import Interval
from tasks.training.judge.report import JudgeReport, Measure
from tasks.training.judge.sweep.table import MEASURES, facts, markdown


def interval(mean: float) -> Interval:
    return Interval(mean=mean, low=mean - 0.05, high=mean + 0.05)


def confusion(ties: int) -> dict[str, dict[str, int]]:
    """Eight verdicts per label."""
    return {label: {"A": 8 - ties, "B": 0, "TIE": ties, "none": 0} for label in ("A", "B", "TIE")}


def report(names: tuple[str, ...]) -> JudgeReport:
    measures = tuple(
        Measure(
            name=name,
            tasks=9,
            judge=interval(0.4),
            scalar=interval(0.1),
            difference=interval(0.3),
        )
        for name in names
    )
    return JudgeReport(
        training_pairs=450,
        held_out_pairs=270,
        left_out={},
        majority_accuracy=interval(0.35),
        above_majority=interval(0.1),
        measures=measures,
        agreements=(),
        judge_confusion=confusion(ties=3),
        scalar_confusion=confusion(ties=0),
        tie_margin=0.1,
        scalar_validation_losses=(),
        groups=9,
        groups_without_verdict=0,
    )


REPORTS = {"ties_10": report((*MEASURES, "pairs in wrong order")), "labels": report(MEASURES[1:])}


def test_a_line_has_judge_head_and_their_paired_difference_per_measure():
    lines = [line for line in markdown(REPORTS).splitlines() if line.startswith("|")]

    assert "tie recall | swap consistency | advantage inversion | 3-class accuracy" in lines[0]
    cell = "40.0 / 10.0, +30.0 [+25.0, +35.0]"
    first = f"| ties_10: 10 % of the training pairs are ties | 450 | {' | '.join([cell] * 4)} | "
    assert f"{first}37.5 / 0.0 |" == lines[2]


def test_a_measure_without_any_held_out_task_is_a_dash():
    assert "without analyses | 450 | - | 40.0" in markdown(REPORTS)


def test_the_facts_are_the_differences_of_the_table():
    found = facts(REPORTS)

    assert 0.3 == found["ties_10/tie recall"]
    assert len(MEASURES) + len(MEASURES) - 1 == len(found)
