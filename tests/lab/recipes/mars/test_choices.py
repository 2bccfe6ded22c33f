import json
from pathlib import Path

import pytest
import torch

from tasks.algorithms.advantages.grouped import group_advantages
from tasks.lab.recipes.mars.choices import (
    accepted_at,
    choose_reports,
    choose_solutions,
    most_accepted,
)
from tasks.lab.recipes.mars.settings import ResponseChoice

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def right(rewards):
    return [bool(one) for one in rewards]


@pytest.mark.parametrize("choice", ["adaptive", "balanced"])
def test_the_verifier_takes_the_solutions_of_the_worked_example(choice):
    given = VECTORS["verifier_inputs"]

    chosen = choose_solutions(right(given["solver_rewards"]), 2, ResponseChoice(choice), "key")

    assert given[choice] == chosen


def test_a_right_solution_fills_the_place_of_a_wrong_one_that_is_missing():
    given = VECTORS["verifier_inputs"]

    chosen = choose_solutions(right(given["one_wrong_only"]), 2, ResponseChoice.ADAPTIVE, "key")

    assert given["adaptive_then"] == chosen


@pytest.mark.parametrize("kind", [True, False])
def test_balanced_choice_takes_no_solution_where_all_are_alike(kind):
    """Otherwise a verifier of a good solver would be paid for accepting everything."""
    assert [] == choose_solutions([kind] * 8, 2, ResponseChoice.BALANCED, "key")
    assert 2 == len(choose_solutions([kind] * 8, 2, ResponseChoice.ADAPTIVE, "key"))


def test_the_corrector_takes_correct_reports_of_an_error_first():
    given = VECTORS["corrector_inputs"]
    errors, kinds = right(given["says_error"]), right(given["verifier_rewards"])

    assert given["adaptive"] == choose_reports(errors, kinds, 2, ResponseChoice.ADAPTIVE, "key")


@pytest.mark.parametrize("choice", ResponseChoice)
def test_without_a_report_of_an_error_the_chain_ends(choice):
    assert [] == choose_reports([False] * 8, [True] * 8, 2, choice, "key")


def test_a_single_place_goes_to_either_kind():
    kinds = [True, True, False, False]

    taken = {choose_solutions(kinds, 1, ResponseChoice.BALANCED, f"key {n}")[0] for n in range(20)}

    assert {0, 2} == taken


@pytest.mark.parametrize("choice", [ResponseChoice.ADAPTIVE, ResponseChoice.BALANCED])
def test_a_response_without_a_verdict_is_taken_at_random_only(choice):
    assert [1, 2] == sorted(choose_solutions([None, True, False], 2, choice, "key"))
    assert 2 == len(choose_solutions([None, True, None], 2, ResponseChoice.RANDOM, "key"))


def test_random_choice_follows_from_the_key_and_takes_every_response():
    taken = [choose_solutions([True] * 8, 2, ResponseChoice.RANDOM, f"key {n}") for n in range(40)]

    assert taken == [
        choose_solutions([True] * 8, 2, ResponseChoice.RANDOM, f"key {n}") for n in range(40)
    ]
    assert set(range(8)) == {index for pair in taken for index in pair}


def test_an_input_is_compared_with_its_own_responses_only():
    """Pooling the groups of two inputs would pay for the easier one."""
    given = VECTORS["two_inputs"]
    scores_PG = torch.tensor([given["hard"], given["easy"]], dtype=torch.float32)
    none = torch.zeros_like(scores_PG)

    found_PG = group_advantages(
        scores_PG,
        none,
        torch.ones_like(scores_PG, dtype=torch.bool),
        std_floor=0.0,
        scale_by_std=True,
    )

    expected = torch.tensor([given["advantage_hard"], given["advantage_easy"]])
    assert torch.allclose(expected, found_PG, atol=2e-6)


@pytest.mark.parametrize("case", VECTORS["accepted_at"], ids=str)
def test_a_solution_is_accepted_at_the_call_of_the_worked_example(case):
    assert 4 == case["needed_in_a_row"]
    assert case["call"] == accepted_at(right(case["verdicts"]))


def test_without_acceptances_the_solvers_solution_is_the_most_accepted():
    assert "a" == most_accepted(["a", "b"], [])
    assert "b" == most_accepted(["a", "b"], ["b"])
    assert "a" == most_accepted(["a", "b"], ["b", "a"])
