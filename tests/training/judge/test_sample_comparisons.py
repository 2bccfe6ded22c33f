from collections import Counter

import pytest

from tasks.curation.marketplace.items import is_problem_prompt
from tasks.gym.judging.comparison_prompt import Label
from tasks.gym.reference_text import chrf, normalised
from tasks.training.judge.inversion import ranked_groups
from tasks.training.judge.sample_comparisons import (
    ANSWERS,
    RIGHT,
    TASKS,
    WRONG,
    analysis,
    sample_comparisons,
)


def rule(pair, answer) -> float:
    """The score of the open-text family's rule verifier."""
    return chrf(normalised(pair.requirements), normalised(answer))


@pytest.mark.slow
def test_the_seed_alone_decides_the_sample():
    assert sample_comparisons(1) == sample_comparisons(1)
    assert sample_comparisons(1) != sample_comparisons(2)


def test_every_two_answers_of_a_task_are_compared_and_fit_one_ranking():
    pairs = sample_comparisons(0)
    groups = ranked_groups(pairs)

    assert TASKS * ANSWERS * (ANSWERS - 1) // 2 == len(pairs)
    assert TASKS == len(groups)
    assert {ANSWERS} == {len(group.answers) for group in groups}


def test_no_task_is_a_problem_of_rl_or_of_the_held_out_suites():
    assert not any(is_problem_prompt(pair.task) for pair in sample_comparisons(0))


def test_the_rule_verifier_never_contradicts_a_label():
    for pair in sample_comparisons(0):
        first, second = rule(pair, pair.answer_a), rule(pair, pair.answer_b)

        match pair.label:
            case Label.A:
                assert first == 1.0 > second
            case Label.B:
                assert first < 1.0 == second
            case Label.TIE:
                assert (first == 1.0) == (second == 1.0)


@pytest.mark.slow
def test_the_label_follows_from_the_analyses_and_these_from_the_answers():
    for pair in sample_comparisons(0):
        said = [text.split(" ")[-1] for text in (pair.analysis_a, pair.analysis_b)]

        assert analysis(pair.requirements, pair.answer_a) == pair.analysis_a
        assert ([RIGHT, WRONG] == said) == (pair.label is Label.A)
        assert ([WRONG, RIGHT] == said) == (pair.label is Label.B)


def test_most_comparisons_are_with_the_reference_as_those_of_rl_are_and_ties_are_not_rare():
    pairs = sample_comparisons(0)
    counts = Counter(pair.label for pair in pairs)
    with_reference = [p for p in pairs if p.requirements in (p.answer_a, p.answer_b)]

    assert 2 * len(pairs) == 3 * len(with_reference)
    assert 0.2 < counts[Label.TIE] / len(pairs) < 0.4
    assert any(pair.label is Label.TIE for pair in with_reference)  # the title in another case
