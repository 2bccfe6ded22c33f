import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.measures import (
    Verdicts,
    agreement,
    agreement_among_annotators,
    agreement_with_annotators,
    confusion,
    is_consistent,
    share_correct,
)

A, B, TIE = Label.A, Label.B, Label.TIE
LABELS = st.lists(st.tuples(*[st.sampled_from(Label)] * 2), min_size=1, max_size=20)


def test_a_verdict_counts_half_if_one_order_is_right():
    assert [1.0, 0.5, 0.0] == [
        share_correct(Verdicts(*verdicts), A) for verdicts in ((A, A), (A, None), (TIE, B))
    ]


def test_only_two_equal_readings_are_consistent():
    verdicts = [Verdicts(A, A), Verdicts(A, B), Verdicts(None, None), Verdicts(TIE, None)]

    assert [True, False, False, False] == [is_consistent(one) for one in verdicts]


def test_no_reading_has_its_own_column():
    found = confusion([Verdicts(A, B), Verdicts(None, TIE)], [A, TIE])

    assert {"A": 1, "B": 1, "TIE": 0, "none": 0} == found["A"]
    assert {"A": 0, "B": 0, "TIE": 1, "none": 1} == found["TIE"]


def test_cohens_kappa_by_hand():
    # Equal in 3 of 5; by chance (2*3 + 2*1 + 1*1) / 25 = 9/25; (15 - 9) / (25 - 9) = 0.375.
    found = agreement([A, A, B, B, TIE], [A, A, B, TIE, A])

    assert 0.6 == found.raw
    assert 0.375 == pytest.approx(found.kappa)


def test_one_label_throughout_agrees_by_chance_alone():
    assert (1.0, 0.0) == (agreement([A, A], [A, A]).raw, agreement([A, A], [A, A]).kappa)
    assert 0.0 == agreement([], []).raw


@given(LABELS)
def test_agreement_does_not_ask_who_came_first(rows):
    first, second = zip(*rows, strict=True)

    assert agreement(first, second) == agreement(second, first)


def test_a_judge_that_always_prefers_the_first_answer_agrees_by_chance():
    verdicts = [Verdicts(A, B)] * 4

    assert 0.5 == agreement_with_annotators(verdicts, [(A,), (B,), (A,), (B,)]).raw
    assert 0.0 == agreement_with_annotators(verdicts, [(A,), (B,), (A,), (B,)]).kappa


def test_annotators_are_the_mean_over_everybody_and_missing_votes_are_left_out():
    verdicts = [Verdicts(A, A), Verdicts(B, B), Verdicts(TIE, TIE)]
    votes = [(A, A, B), (B, B, B), ()]

    # Two of three annotators are always equal, the third in one pair of two.
    assert (1 + 1 + 0.5) / 3 == pytest.approx(agreement_with_annotators(verdicts, votes).raw)
    assert (1 + 0.5 + 0.5) / 3 == pytest.approx(agreement_among_annotators(votes).raw)
    assert agreement_with_annotators(verdicts[2:], votes[2:]) is None
    assert agreement_among_annotators([(A,)]) is None
