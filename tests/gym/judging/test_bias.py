"""What a judge prefers that is not the answer: the place, or the length."""

import json

import pytest

from data_schemas.rows import Domain
from data_schemas.verdicts import abstain, scored
from tasks.gym.judging.bias import complaints, judge_bias
from tasks.gym.judging.comparison_prompt import Label, completion
from tasks.gym.judging.comparisons import group_verifier
from tasks.gym.judging.scripted import ScriptedJudge, preferring
from tests.records import problem_of

ANSWERS = ["a", "bbbb", "cc"]


def judged(script, gold, answers=ANSWERS):
    """Let a scripted judge score a group."""
    problem = problem_of(
        "Name it.", json.dumps(gold), domain=Domain.OPEN_TEXT, verifier="generative_judge"
    )
    verdicts = group_verifier(ScriptedJudge(script))(problem, answers)
    return list(zip(answers, verdicts, strict=True))


GOLDS = [{"reference": "ddd"}, {"mode": "round_robin"}, {"mode": "anchor"}]
PAIRS = [3, 3, 2]
"""Comparisons of each mode among three answers."""


@pytest.mark.parametrize(("gold", "pairs"), zip(GOLDS, PAIRS, strict=True))
def test_a_judge_that_takes_the_first_answer_is_never_consistent(gold, pairs):
    found = judge_bias([judged(lambda _: completion(Label.A), gold)])

    assert (pairs, 0.0, 1.0) == tuple(
        found[f"judge/{name}"] for name in ("comparisons", "swap_consistency", "first_preference")
    )
    assert 1.0 == found["judge/tied_groups"]


@pytest.mark.parametrize("gold", GOLDS)
def test_a_judge_of_length_is_consistent_and_its_rewards_follow_the_length(gold):
    found = judge_bias([judged(preferring(len), gold)])

    assert (1.0, 0.0) == (found["judge/swap_consistency"], found["judge/first_preference"])
    assert 0.5 < found["judge/length_correlation"] <= 1.0
    assert 0.0 == found["judge/tied_groups"]


def test_a_judge_of_something_else_does_not_correlate_with_the_length():
    answers = ["a", "bbb", "c!", "d!"]
    found = judge_bias([judged(preferring(lambda text: text.count("!")), GOLDS[0], answers)])

    assert 0.0 == pytest.approx(found["judge/length_correlation"])


def test_ties_count_as_agreement_and_as_no_preference():
    found = judge_bias([judged(lambda _: completion(Label.TIE), GOLDS[0])])

    assert (1.0, 0.0, 0.0, 1.0) == tuple(
        found[f"judge/{name}"]
        for name in ("swap_consistency", "first_preference", "length_correlation", "tied_groups")
    )


def test_a_rubric_has_no_places_but_a_length():
    group = [("a", scored(0.0, "rubric")), ("aaa", scored(1.0, "rubric"))]

    found = judge_bias([group])

    assert 0.0 == found["judge/comparisons"]
    assert 1.0 == pytest.approx(found["judge/length_correlation"])


def test_without_a_verdict_there_is_nothing_to_report():
    assert {} == judge_bias([]) == judge_bias([[("a", abstain("judge_unavailable"))]])


def test_a_judge_by_place_ties_right_and_wrong_answers_and_is_complained_about():
    group = judged(lambda _: completion(Label.B), {"reference": "cc"})

    found = judge_bias([group])

    assert [0.5, 0.5, 0.5] == [verdict.score for _, verdict in group]  # "cc" is the reference
    (line,) = complaints(found, found)
    assert line.startswith(
        "the judge gave 100 % of the groups one reward, which trains nothing; it says the same in "
        "both orders in 0 % of its comparisons and prefers the first answer by -100 points"
    )
    fair = judge_bias([judged(preferring(len), {"reference": "cc"})])
    assert [] == [*complaints(fair, fair)] == [*complaints({}, {})]


def test_a_judge_that_likes_answers_better_than_their_references_is_complained_about():
    long, short = ({"reference": text} for text in ("dddd", "x"))
    first, last = (judge_bias([judged(preferring(len), gold)]) for gold in (long, short))

    assert -2 / 3 == pytest.approx(first["judge/over_reference"])  # "bbbb" is as long
    assert [] == [*complaints(first, first)]
    (line,) = complaints(first, last)
    assert "at the end the judge prefers answers to their references: +67 points" in line


@pytest.mark.parametrize("mode", ["anchor", "round_robin"])
def test_only_comparisons_with_a_reference_count_as_over_it(mode):
    # "bbbb" and "cc" are longer than the anchor "a", and two of three are longer than "x".
    of_mode = judged(preferring(len), {"mode": mode, "reference": "ddd"})
    of_reference = judged(preferring(len), {"reference": "x"})
    alone, both = judge_bias([of_mode]), judge_bias([of_mode, of_reference])

    assert 0.0 == alone["judge/over_reference"]
    assert judge_bias([of_reference])["judge/over_reference"] == both["judge/over_reference"]
    assert both["judge/comparisons"] == alone["judge/comparisons"] + 3
    assert [] == [*complaints(alone, alone)]


def test_orders_that_disagree_count_as_comparisons_with_the_reference():
    group = [
        ("a", scored(1.0, "wins", "as A: A, as B: B")),
        ("b", scored(0.5, "orders_disagree", "as A: A, as B: A")),
    ]

    assert 1 / 2 == judge_bias([group])["judge/over_reference"]
