import json
from fractions import Fraction
from pathlib import Path

import pytest

from tasks.lab.recipes.spell import formulas

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
QUESTIONER = VECTORS["questioner"]
TOLERANCE = 2e-6


@pytest.mark.parametrize("share", QUESTIONER["G4"])
def test_a_question_earns_most_where_half_of_the_answers_do(share):
    found = formulas.question_reward(float(Fraction(share)))

    assert pytest.approx(QUESTIONER["G4"][share], abs=TOLERANCE) == found


def test_the_band_of_questions_is_that_of_the_paper_for_eight_answers():
    found = [formulas.question_reward(solved / 8) for solved in range(9)]

    half = [0.0, 0.0796, 0.3247, 0.7548]
    assert pytest.approx([*half, 1.0, *reversed(half)], abs=5e-5) == found


def test_advantages_of_questions_are_of_their_task_alone():
    rewards = [QUESTIONER["task_a"], QUESTIONER["task_b"]]

    found = formulas.task_advantages([*rewards[0], *rewards[1]], ["a"] * 3 + ["b"] * 3)

    expected = [one for of_task in QUESTIONER["advantage_per_task"] for one in of_task]
    assert pytest.approx(expected, abs=TOLERANCE) == found
    pooled = QUESTIONER["advantage_whole_batch"]
    assert pytest.approx(pooled, abs=TOLERANCE) == formulas.standardised([*rewards[0], *rewards[1]])


def test_equal_rewards_and_a_single_one_have_no_advantage():
    assert [0.0, 0.0, 0.0] == formulas.task_advantages([0.5, 0.5, -1.0], ["a", "a", "b"])
    assert [] == formulas.standardised([])


@pytest.mark.parametrize("case", VECTORS["votes"], ids=lambda case: str(case["votes"]))
def test_a_majority_is_strict_and_an_unreadable_vote_abstains(case):
    votes = [{1: True, 0: False, -1: None}[vote] for vote in case["votes"]]

    assert bool(case["strict_majority"]) is formulas.majority(votes)
    if -1 not in case["votes"] and case["strict_majority"] == case["code_plurality"]:
        assert case["verifier_rewards"] == formulas.vote_rewards(votes)
        assert pytest.approx(case["agreeing_share_code"]) == sum(formulas.vote_rewards(votes)) / 8
    kept = [rule for rule in (True, False) if formulas.trains_verifier(votes, rule)]
    assert kept == [formulas.majority(votes)] * case["kept_by_share_code"]


def test_an_abstention_is_paid_nothing_and_does_not_lower_the_bar():
    assert [0.0, 0.0, 1.0] == formulas.vote_rewards([None, True, False])
    assert not formulas.majority([True, None])
    assert not formulas.majority([])


def test_unanimous_votes_train_nothing_and_neither_does_a_majority_against_the_rule():
    assert not formulas.trains_verifier([True] * 8, rule=True)
    assert formulas.trains_verifier([True] * 7 + [False], rule=True)
    assert not formulas.trains_verifier([True] * 7 + [False], rule=False)


@pytest.mark.parametrize("case", [*VECTORS["responder"], VECTORS["false_accept"]], ids=str)
def test_an_answer_is_paid_if_rule_or_majority_accepts_it(case):
    found = formulas.responder_reward(rule=bool(case["rule"]), accepted=bool(case["majority"]))

    assert case["reward"] == found


@pytest.mark.parametrize("case", VECTORS["memory"]["stored"], ids=lambda case: str(case["mean"]))
def test_what_all_answers_solve_is_not_remembered(case):
    assert case["paper"] is formulas.is_remembered(case["mean"])


def test_as_many_verifier_groups_train_as_published():
    published = VECTORS["update"]

    assert published["verifier_groups"] == formulas.verifier_quota(published["responder_groups"])
    assert 1 == formulas.verifier_quota(0)


def test_as_many_negatives_as_positives_train_balanced_over_tasks():
    tasks = ["a", "a", "a", "a", "b", "b", "c", "c"]
    rewards = [1.0, -1.0, -1.0, 0.0, 0.3, -0.5, 1.0, 0.5]
    contrast = [reward > 0.0 for reward in rewards]

    chosen = formulas.choose_questions(rewards, tasks, contrast)

    # One negative of each task that has any; the shortfall of c and b is made up by a.
    assert [0, 1, 2, 3, 4, 5, 6, 7] == chosen
    assert [0, 1, 2, 4, 5, 6] == formulas.choose_questions(rewards, tasks, [*contrast[:7], False])
    assert [] == formulas.choose_questions([-1.0, 0.0], ["a", "b"], [False, False])


def test_as_many_questions_train_as_published():
    groups = VECTORS["update"]["responder_groups"]
    rewards = [0.3] * groups + [-1.0] * 2 * groups

    chosen = formulas.choose_questions(rewards, "abc" * groups, [reward > 0 for reward in rewards])

    assert VECTORS["update"]["questioner"] == len(chosen)
