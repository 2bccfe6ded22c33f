import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.lab.recipes.promptcot import formulas
from tasks.lab.recipes.promptcot.formulas import (
    Majority,
    choose_rationale,
    concept_probabilities,
    majority,
    num_pairs,
    rationale_reward,
    tighter_bound,
)
from tasks.lab.recipes.promptcot.presets import SYNTHESIS
from tasks.lab.recipes.promptcot.settings import PartScore

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
ELBO = VECTORS["elbo"]
PRIOR, LIKELIHOOD = np.array(ELBO["p_z"]), np.array(ELBO["p_x_given_z"])
shares = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3).map(
    lambda values: np.array(values) / sum(values)
)


def bound(q, prior, likelihood):
    used = q > 0.0
    q, prior, likelihood = q[used], prior[used], likelihood[used]
    return formulas.bound(q, np.log(q), np.log(prior), np.log(likelihood))


def posterior(prior, likelihood):
    return prior * likelihood / (prior @ likelihood)


def as_printed(q, prior, likelihood):
    """The bound of the paper's equation 2, which counts log p(z|c) twice."""
    return bound(q, prior, likelihood) + float(np.sum(q * np.log(prior)))


def test_bound_and_posterior_are_those_of_the_worked_example():
    exact = posterior(PRIOR, LIKELIHOOD)
    hard = np.eye(3)[ELBO["hard_choice"]]

    assert ELBO["posterior"] == pytest.approx(exact.tolist(), abs=1e-6)
    assert ELBO["log_p_x"] == pytest.approx(math.log(PRIOR @ LIKELIHOOD), abs=1e-6)
    assert ELBO["bound_at_posterior"] == pytest.approx(bound(exact, PRIOR, LIKELIHOOD), abs=1e-6)
    assert ELBO["bound_at_prior"] == pytest.approx(bound(PRIOR, PRIOR, LIKELIHOOD), abs=1e-6)
    assert ELBO["bound_at_hard_choice"] == pytest.approx(bound(hard, PRIOR, LIKELIHOOD), abs=1e-6)


@given(q=shares, prior=shares, likelihood=shares)
def test_the_bound_is_never_above_log_p_and_equal_at_the_posterior(q, prior, likelihood):
    log_p = math.log(prior @ likelihood)

    assert bound(q, prior, likelihood) <= log_p + 1e-12
    assert log_p == pytest.approx(bound(posterior(prior, likelihood), prior, likelihood))


def test_the_bound_in_print_is_not_equal_at_the_posterior_and_has_another_maximiser():
    exact = posterior(PRIOR, LIKELIHOOD)
    theirs = np.array(ELBO["printed_maximiser"])

    at_posterior = as_printed(exact, PRIOR, LIKELIHOOD)

    assert ELBO["printed_at_posterior"] == pytest.approx(at_posterior, abs=1e-6)
    assert at_posterior < ELBO["log_p_x"] - 1.0
    assert theirs == pytest.approx(posterior(PRIOR * PRIOR, LIKELIHOOD))
    assert ELBO["printed_at_its_maximiser"] == pytest.approx(
        as_printed(theirs, PRIOR, LIKELIHOOD), abs=1e-6
    )
    assert ELBO["true_bound_at_printed_maximiser"] == pytest.approx(
        bound(theirs, PRIOR, LIKELIHOOD), abs=1e-6
    )


@given(q=shares)
def test_no_q_has_a_larger_value_of_the_bound_in_print_than_its_maximiser(q):
    assert as_printed(q, PRIOR, LIKELIHOOD) <= ELBO["printed_at_its_maximiser"] + 1e-6


def sampled_bounds(q, drawn):
    share = np.full(len(drawn), 1 / len(drawn))
    logs = (np.log(q[drawn]), np.log(PRIOR[drawn]), np.log(LIKELIHOOD[drawn]))
    return formulas.bound(share, *logs), tighter_bound(*logs, samples=len(drawn))


def test_both_bounds_are_exact_for_any_samples_of_the_posterior():
    found = sampled_bounds(posterior(PRIOR, LIKELIHOOD), [0, 1, 1, 2])

    assert (ELBO["log_p_x"],) * 2 == pytest.approx(found, abs=1e-6)


def test_the_bound_of_samples_is_the_bound_when_each_rationale_comes_as_often_as_q_says():
    lower, tighter = sampled_bounds(PRIOR, [0] * 6 + [1] * 3 + [2])

    assert ELBO["bound_at_prior"] == pytest.approx(lower, abs=1e-6)
    assert ELBO["log_p_x"] == pytest.approx(tighter, abs=1e-6)
    assert lower < tighter


def test_a_sample_that_did_not_end_has_weight_0():
    logs = (np.log([0.5]), np.log([0.4]), np.log([0.3]))

    assert math.log(0.24 / 2) == pytest.approx(tighter_bound(*logs, samples=2))


@pytest.mark.parametrize("part_score", PartScore)
def test_the_reward_of_a_rationale_sums_or_averages_each_part(part_score):
    given_ = VECTORS["best_of_k"]
    rewards = {
        name: rationale_reward(
            [one["z_per_token"]] * one["z_tokens"],
            [one["x_per_token"]] * one["x_tokens"],
            part_score,
        )
        for name, one in given_["candidates"].items()
    }
    lengths = [one["z_tokens"] for one in given_["candidates"].values()]

    assert given_[part_score.value] == pytest.approx(rewards)
    chosen = choose_rationale(list(rewards.values()), lengths, min_tokens=1)
    assert list(rewards).index(given_[f"{part_score.value}_picks"]) == chosen


def test_a_rationale_below_the_least_length_is_not_chosen():
    assert 0 == choose_rationale([-3.0, -1.0], [4, 3], min_tokens=4)
    assert choose_rationale([-3.0, -1.0], [3, 0], min_tokens=4) is None
    assert 1 == choose_rationale([-3.0, -1.0, -1.0], [4, 4, 4], min_tokens=0)


def test_the_next_concept_is_drawn_by_a_softmax():
    given_ = VECTORS["concepts"]

    found = concept_probabilities(given_["scores"], given_["temperature"])

    assert given_["probabilities"] == pytest.approx(found.tolist(), abs=1e-6)


@pytest.mark.parametrize(("answers", "name"), [("aaaabbcd", "clear"), ("abbacdef", "tie")])
def test_the_majority_is_the_first_of_the_most_frequent_answers(answers, name):
    assert Majority(**VECTORS["majority"][name]) == majority(list(answers))


@pytest.mark.parametrize("answer", ["no", "none", "node 7", "not enough"])
def test_whole_answers_are_compared_so_that_none_is_dropped_for_the_word_no_in_it(answer):
    assert Majority(answer, 2, tied=False, of=4) == majority(["7", answer, None, answer])


def test_without_an_answer_there_is_no_majority():
    assert Majority(None, 0, tied=False, of=2) == majority([None, None])
    assert Majority(None, 0, tied=False, of=0) == majority([])


@pytest.mark.parametrize("row", VECTORS["keep_for_self_play"])
def test_a_problem_has_as_many_pairs_as_its_rarer_kind_of_answer(row):
    assert row["pairs"] == num_pairs(row["solved"], 8)


@pytest.mark.parametrize("row", VECTORS["keep_for_self_play"])
def test_grading_drops_what_half_of_the_samples_solve_as_in_the_paper(row):
    bounds = SYNTHESIS.grading

    kept = bounds.drop_at_or_below < row["solved"] / 8 < bounds.drop_at_or_above

    assert row["paper"] is kept
