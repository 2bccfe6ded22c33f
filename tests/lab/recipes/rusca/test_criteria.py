"""Criteria in a prompt: their words, their place, and whether a response repeats them."""

import pytest

from data_schemas.rows import Message, Role
from tasks.gym.judging.rubric import Criterion
from tasks.lab.recipes.rusca.criteria import criteria_of, mentions, with_criteria
from tasks.lab.recipes.rusca.settings import Form

CRITERIA = [
    Criterion(criterion="Name the price.", points=5.0),
    Criterion(criterion="Shout.", points=-2.5),
]
ASK = (Message(role=Role.USER, content="Sell it."),)


def test_a_system_message_has_what_to_include_what_to_avoid_and_a_ban():
    system, user = with_criteria(ASK, CRITERIA, Form.SYSTEM)

    assert (Role.SYSTEM, ASK[0]) == (system.role, user)
    assert (
        "Points to include:\n- (5) Name the price.\nPoints to avoid:\n- (-2.5) Shout.\n"
        "Follow these points without mentioning them."
    ) == system.content


def test_points_of_one_sign_have_one_title():
    system, _ = with_criteria(ASK, CRITERIA[:1], Form.SYSTEM)

    assert "avoid" not in system.content


def test_a_system_message_that_is_there_is_kept_and_stays_the_only_one():
    rules = Message(role=Role.SYSTEM, content="You are a clerk.")

    system, user = with_criteria((rules, *ASK), CRITERIA[:1], Form.SYSTEM)

    assert system.content.startswith("You are a clerk.\n\nPoints to include:")
    assert ASK[0] == user


def test_the_user_form_adds_the_criteria_s_own_words_to_the_task():
    assert "Sell it. Name the price. Not: Shout." == (
        with_criteria(ASK, CRITERIA, Form.USER)[0].content
    )


@pytest.mark.parametrize("form", Form)
def test_nothing_shown_leaves_the_prompt_as_it_is(form):
    assert ASK == with_criteria(ASK, [], form)


@pytest.mark.parametrize(
    ("verifier", "gold", "count"),
    [
        ("rubric", {"criteria": [{"criterion": "a", "points": 1}], "aggregation": "ruscarl"}, 1),
        ("rule_rubric", {"criteria": [{"criterion": "a", "points": 1}], "aggregation": "x"}, 0),
        ("rubric", {"criteria": []}, 0),
        ("final_answer", {"value": "1"}, 0),
    ],
)
def test_only_a_rubric_that_can_be_read_has_criteria(problem, verifier, gold, count):
    assert count == len(criteria_of(problem(verifier, gold)))


def test_a_response_mentions_a_criterion_if_it_repeats_its_words():
    assert mentions("I will NAME THE PRICE. 5 dollars", CRITERIA)
    assert not mentions("5 dollars", CRITERIA)
