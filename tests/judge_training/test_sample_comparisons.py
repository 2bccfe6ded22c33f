from collections import Counter

from tasks.judge_training.groups import ranked_groups
from tasks.judge_training.sample_comparisons import ANALYSES, ANSWERS, TASKS, sample_comparisons
from tasks.rewards.judging.form import Label


def test_the_seed_alone_decides_the_sample():
    assert sample_comparisons(1) == sample_comparisons(1)
    assert sample_comparisons(1) != sample_comparisons(2)


def test_every_two_answers_of_a_task_are_compared_and_fit_one_ranking():
    pairs = sample_comparisons(0)
    groups = ranked_groups(pairs)

    assert TASKS * ANSWERS * (ANSWERS - 1) // 2 == len(pairs)
    assert TASKS == len(groups)
    assert {ANSWERS} == {len(group.answers) for group in groups}


def test_the_label_follows_from_the_analyses_and_these_from_the_answers():
    for pair in sample_comparisons(0):
        qualities = [ANALYSES.index(text) for text in (pair.analysis_a, pair.analysis_b)]
        shouts = ["!" in answer for answer in (pair.answer_a, pair.answer_b)]

        assert (qualities[0] > qualities[1]) == (pair.label is Label.A)
        assert (qualities[0] < qualities[1]) == (pair.label is Label.B)
        assert [quality < 2 for quality in qualities] == shouts


def test_ties_are_real_wordings_of_one_quality_and_not_rare():
    pairs = sample_comparisons(0)
    counts = Counter(pair.label for pair in pairs)

    assert 0.2 < counts[Label.TIE] / len(pairs) < 0.4
    for pair in pairs:
        shouts = ["!" in answer for answer in (pair.answer_a, pair.answer_b)]
        assert pair.answer_a != pair.answer_b
        if pair.label is Label.TIE:
            assert shouts[0] == shouts[1]
