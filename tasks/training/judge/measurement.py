"""Compare a trained judge with a Bradley-Terry head on held-out comparisons.

Every mean is over tasks, because pairs of one task are not independent; the bootstrap resamples
tasks. A measure without any held-out task (no ties, no ranked group) is left out.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from data_schemas.settings import SFTSettings
from tasks.algorithms.bradley_terry import tie_margin, verdicts
from tasks.algorithms.intervals import Interval, bootstrap_mean, paired_difference
from tasks.algorithms.preferences import advantage_inversion
from tasks.gym.judging.comparison_prompt import Label, comparison_prompt, parse_label, swap_label
from tasks.gym.judging.protocol import Judge
from tasks.gym.judging.readings import NoReading, readings
from tasks.store.files import canonical_json, write_bytes
from tasks.training.judge import measures
from tasks.training.judge.figure import picture
from tasks.training.judge.inversion import (
    AnswerGroup,
    judge_rewards,
    ranked_groups,
    share_of_ordered_ties,
)
from tasks.training.judge.measures import Verdicts
from tasks.training.judge.pairs import ComparisonPair, by_task
from tasks.training.judge.report import FAULTS, JudgeReport, Measure, agreement_rows
from tasks.training.judge.scalar_head import ScalarReward

REPORT_FILE = "report.json"
PICTURE_FILE = "judge.png"
SIGNS = {Label.A: 1, Label.B: -1, Label.TIE: 0}


def measure(
    settings: SFTSettings,
    judge: Judge,
    base: Path,
    pairs: tuple[Sequence[ComparisonPair], Sequence[ComparisonPair]],
    left_out: dict[str, int],
    out: Path,
) -> JudgeReport:
    """Train the scalar head, score every held-out pair with both, and write report and figure.

    Args:
        settings: of the judge's training; the scalar head is trained with the same.
        judge: trained on the training pairs.
        base: start model of the scalar head.
        pairs: (training, held out).
        left_out: pairs used in neither, by reason.
        out: empty folder.
    """
    training, held_out = pairs
    scalar = ScalarReward(base)
    losses = scalar.train(settings, training)
    margin = tie_margin(
        scalar.differences(training, settings.batch_tokens),
        np.array([SIGNS[pair.label] for pair in training]),
    )
    difference_N = scalar.differences(held_out, settings.batch_tokens)
    judged, scored = judge_pairs(judge, held_out), scalar_verdicts(difference_N, margin)
    labels, votes = [pair.label for pair in held_out], [pair.annotators for pair in held_out]
    common = most_common_label(training)
    always = [Verdicts(common, swap_label(common))] * len(held_out)
    scores = _task_means(held_out, measures.share_correct, judged, settings.seed, baseline=always)
    groups, silent, inversions = _inversions(held_out, judged, scalar, settings)
    report = JudgeReport(
        training_pairs=len(training),
        held_out_pairs=len(held_out),
        left_out=left_out,
        majority_accuracy=scores.scalar,
        above_majority=scores.difference,
        measures=(*_pair_measures(held_out, judged, scored, settings.seed), *inversions),
        agreements=agreement_rows(
            [
                ("judge and majority label", measures.agreement_with_label(judged, labels)),
                ("scalar and majority label", measures.agreement_with_label(scored, labels)),
                ("judge and single people", measures.agreement_with_annotators(judged, votes)),
                ("scalar and single people", measures.agreement_with_annotators(scored, votes)),
                ("people among themselves", measures.agreement_among_annotators(votes)),
            ]
        ),
        judge_confusion=measures.confusion(judged, labels),
        scalar_confusion=measures.confusion(scored, labels),
        tie_margin=margin,
        scalar_validation_losses=tuple(losses),
        groups=groups,
        groups_without_verdict=silent,
    )
    write_bytes(out / REPORT_FILE, canonical_json(report))
    write_bytes(out / PICTURE_FILE, picture(report))
    return report


def judge_pairs(judge: Judge, pairs: Sequence[ComparisonPair]) -> list[Verdicts]:
    """Return the verdicts of the judge on every pair, in both orders."""
    prompts = [
        comparison_prompt(pair.task, *answers)
        for pair in pairs
        for answers in ((pair.answer_a, pair.answer_b), (pair.answer_b, pair.answer_a))
    ]
    labels = [
        None if isinstance(label, NoReading) else label
        for label in readings(judge, prompts, parse_label)
    ]
    return [
        Verdicts(in_order, None if turned is None else swap_label(turned))
        for in_order, turned in zip(labels[::2], labels[1::2], strict=True)
    ]


def scalar_verdicts(difference_N: NDArray[np.float64], margin: float) -> list[Verdicts]:
    """Return the verdicts of the scores on pairs; they do not depend on the order."""
    label_of = {sign: label for label, sign in SIGNS.items()}
    labels = [label_of[int(sign)] for sign in verdicts(difference_N, margin)]
    return [Verdicts(label, label) for label in labels]


def most_common_label(pairs: Sequence[ComparisonPair]) -> Label:
    """Return the label that is right most often when every pair is judged in both orders."""
    counts = Counter(label for pair in pairs for label in (pair.label, swap_label(pair.label)))
    return max(Label, key=lambda label: counts[label])


def _pair_measures(
    pairs: Sequence[ComparisonPair],
    judged: Sequence[Verdicts],
    scored: Sequence[Verdicts],
    seed: int,
) -> list[Measure]:
    rows = [
        _task_means(
            pairs, measures.share_correct, judged, seed, baseline=scored, name="3-class accuracy"
        ),
        _task_means(
            pairs,
            lambda verdicts, _: float(measures.is_consistent(verdicts)),
            judged,
            seed,
            baseline=scored,
            name="swap consistency",
        ),
    ]
    ties = [row for row, pair in enumerate(pairs) if pair.label is Label.TIE]
    if ties:
        recall = _task_means(
            [pairs[row] for row in ties],
            measures.share_correct,
            [judged[row] for row in ties],
            seed,
            baseline=[scored[row] for row in ties],
            name="tie recall",
        )
        rows.insert(1, recall)
    return rows


def _task_means(
    pairs: Sequence[ComparisonPair],
    value: Callable[[Verdicts, Label], float],
    judged: Sequence[Verdicts],
    seed: int,
    *,
    baseline: Sequence[Verdicts],
    name: str = "",
) -> Measure:
    """Average a value of pairs within each task, then over tasks."""
    tasks = list(by_task(pairs).values())
    ours, theirs = (
        [mean(value(verdicts[row], pairs[row].label) for row in rows) for rows in tasks]
        for verdicts in (judged, baseline)
    )
    return _measure(name, ours, theirs, seed)


def _measure(name: str, ours: Sequence[float], theirs: Sequence[float], seed: int) -> Measure:
    def interval(values: Sequence[float]) -> Interval:
        return bootstrap_mean(values, seed=seed)

    return Measure(
        name=name,
        tasks=len(ours),
        judge=interval(ours),
        scalar=interval(theirs),
        difference=paired_difference(ours, theirs, seed=seed),
    )


def _inversions(
    pairs: Sequence[ComparisonPair],
    judged: Sequence[Verdicts],
    scalar: ScalarReward,
    settings: SFTSettings,
) -> tuple[int, int, list[Measure]]:
    """Return (groups, groups without verdict, the measures of both rewards on the former)."""
    groups = ranked_groups(pairs)
    rewarded = [(group, judge_rewards(group, judged)) for group in groups]
    judged_groups = [(group, ours_G) for group, ours_G in rewarded if np.isfinite(ours_G).all()]
    both = [
        (_faults(group, ours_G), _faults(group, _scores(scalar, group, settings.batch_tokens)))
        for group, ours_G in judged_groups
    ]
    rows: list[Measure] = []
    for name in FAULTS:
        # Neither side has the fault if the group has no tied pair.
        paired = [(ours[name], theirs[name]) for ours, theirs in both if name in ours]
        if paired:
            ours, theirs = zip(*paired, strict=True)
            rows.append(_measure(name, ours, theirs, settings.seed))
    return len(judged_groups), len(groups) - len(judged_groups), rows


def _faults(group: AnswerGroup, rewards_G: NDArray[np.float64]) -> dict[str, float]:
    """Return the errors of a reward in one group, as shares."""
    inversion = advantage_inversion(group.quality_G, rewards_G)
    ties = share_of_ordered_ties(group.quality_G, rewards_G)
    shares = (inversion.flipped / inversion.answers, inversion.discordant / inversion.pairs, ties)
    return {name: share for name, share in zip(FAULTS, shares, strict=True) if share is not None}


def _scores(scalar: ScalarReward, group: AnswerGroup, batch_tokens: int) -> NDArray[np.float64]:
    answers = [(group.task, answer) for answer in group.answers]
    scores = scalar.scores(answers, batch_tokens)
    return np.array([scores[answer] for answer in answers])
