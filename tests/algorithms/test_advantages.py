import itertools
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.advantages import group_advantages, has_variance, two_part_advantages
from tasks.errors import DataError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def advantages(scores, penalties=None, valid=None, std_floor=0.0):
    scores = torch.tensor([scores], dtype=torch.float64)
    penalties = torch.zeros_like(scores) if penalties is None else torch.tensor([penalties])
    valid = torch.ones_like(scores, dtype=torch.bool) if valid is None else torch.tensor([valid])
    return group_advantages(scores, penalties, valid, std_floor=std_floor)[0].tolist()


def test_grpo_advantages_use_the_population_standard_deviation():
    vector = VECTORS["grpo_advantage"]

    assert vector["ddof0"] == pytest.approx(advantages([float(r) for r in vector["rewards"]]))


def test_a_rollout_without_verdict_gets_nothing_and_counts_in_no_mean():
    vector = VECTORS["espo"]["masked_advantage"]

    assert vector["expected"] == pytest.approx(
        advantages(vector["reward"], valid=vector["verifier_ok"])
    )


@pytest.mark.parametrize("reward", [0.7, 0.1, 1 / 3])
@pytest.mark.parametrize("size", [3, 7, 8, 12])
def test_equal_scores_that_differ_by_rounding_have_zero_advantage(reward, size):
    scores = torch.full((1, size), reward)
    valid = torch.ones_like(scores, dtype=torch.bool)

    found = group_advantages(scores, torch.zeros_like(scores), valid, std_floor=0.0)

    assert not found.any()
    assert not has_variance(scores, valid).any()


def test_a_small_penalty_on_an_all_wrong_group_stays_small():
    vector = VECTORS["penalty_amplification"]
    penalties = [reward + 1.0 for reward in vector["rewards"]]

    found = advantages([0.0] * 4, penalties)

    assert -1.73 == pytest.approx(vector["grpo"][3], abs=0.01)  # what dividing would give
    assert [0.005, 0.005, 0.005, -0.015] == pytest.approx(found)


def test_the_floor_bounds_how_far_a_narrow_group_is_stretched():
    scores = [0.50, 0.51, 0.50, 0.51]

    assert [-0.1, 0.1, -0.1, 0.1] == pytest.approx(advantages(scores, std_floor=0.05), rel=1e-3)


@given(
    scores=st.lists(st.floats(0, 1, width=32), min_size=2, max_size=12),
    seed=st.integers(0, 1000),
)
def test_advantages_sum_to_zero_and_follow_a_permutation(scores, seed):
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(seed)).tolist()

    straight = advantages(scores, std_floor=0.05)
    permuted = advantages([scores[i] for i in order], std_floor=0.05)

    assert 0.0 == pytest.approx(sum(straight), abs=1e-9)
    assert [straight[i] for i in order] == pytest.approx(permuted)


def test_dr_grpo_centres_and_does_not_divide():
    scores = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    penalties, valid = torch.tensor([[0.0, 0.0, -0.4, 0.0]]), torch.ones(1, 4, dtype=torch.bool)

    found = group_advantages(scores, penalties, valid, std_floor=0.05, scale_by_std=False)

    assert [0.85, -0.15, -0.55, -0.15] == pytest.approx(found[0].tolist())


def test_one_rollout_is_refused_by_name():
    with pytest.raises(DataError, match=r"G >= 2, got \(1, 1\)"):
        advantages([1.0])


CHOICES = {
    "a prompt that is rarely solved": ([0.0, 1.0], [0.9, 0.1]),
    "a prompt that is mostly solved": ([0.0, 1.0], [0.3, 0.7]),
    "partial credit": ([0.0, 0.4, 1.0], [0.6, 0.3, 0.1]),
}
"""Rewards of the responses that a policy can give, and their probabilities."""


def expectation(rewards, chances, size, first, rule):
    """Enumerate all responses of a group: E[sum of advantage x score], the mean size, gradient.

    The policy is a softmax over the responses, so the score function of response a is e_a - p.
    """
    rewards, chances = (torch.tensor(x, dtype=torch.float64) for x in (rewards, chances))
    drawn_PG = torch.tensor(list(itertools.product(range(len(rewards)), repeat=size)))
    scores_PG, chance_P = rewards[drawn_PG], chances[drawn_PG].prod(dim=1)
    at_once_PG = torch.ones_like(scores_PG, dtype=torch.bool)
    goes_on_P = has_variance(scores_PG[:, :first], at_once_PG[:, :first])
    valid_PG = at_once_PG & (goes_on_P[:, None] | (torch.arange(size) < first))
    advantages_PG = rule(scores_PG, torch.zeros_like(scores_PG), valid_PG)
    score_PGA = torch.eye(len(rewards), dtype=torch.float64)[drawn_PG] - chances
    found_A = torch.einsum("p,pg,pga->a", chance_P, advantages_PG, score_PGA)
    gradient_A = chances * (rewards - chances @ rewards)
    return found_A, float(chance_P @ valid_PG.sum(dim=1).double()), gradient_A


def in_two_parts(first):
    def rule(scores_PG, penalties_PG, valid_PG):
        first_P = torch.full((len(scores_PG),), first)
        return two_part_advantages(scores_PG, penalties_PG, valid_PG, first_P=first_P)

    return rule


def of_the_mean(scores_PG, penalties_PG, valid_PG):
    """The whole group's mean without the response itself: exact if the size is fixed."""
    size_P1 = valid_PG.sum(dim=1, keepdim=True)
    plain_PG = group_advantages(
        scores_PG, penalties_PG, valid_PG, std_floor=0.0, scale_by_std=False
    )
    return plain_PG * size_P1 / (size_P1 - 1)


@pytest.mark.parametrize("prompt", CHOICES)
@pytest.mark.parametrize(("size", "first"), [(3, 2), (6, 2), (7, 4)])
def test_a_group_in_two_parts_has_the_gradient_times_its_expected_size(prompt, size, first):
    found, num, gradient = expectation(*CHOICES[prompt], size, first, in_two_parts(first))

    assert first < num < size
    assert (num * gradient).tolist() == pytest.approx(found.tolist(), abs=1e-12)


@pytest.mark.parametrize("prompt", CHOICES)
def test_the_mean_of_a_group_that_may_stop_is_biased(prompt):
    """The same mean, where nothing stops, is not; with partial credit the direction is wrong."""
    fixed, six, gradient = expectation(*CHOICES[prompt], 6, 6, of_the_mean)
    stopped, num, _ = expectation(*CHOICES[prompt], 6, 2, of_the_mean)

    assert (six * gradient).tolist() == pytest.approx(fixed.tolist(), abs=1e-12)
    assert 0.02 < (stopped / num - gradient).norm() / gradient.norm()
    turned = 1.0 - float(torch.cosine_similarity(stopped, gradient, dim=0))
    assert ("partial" in prompt) == (turned > 1e-4)


def test_a_response_is_compared_with_those_that_were_there_before_its_part():
    scores = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.7, 0.7, 9.0, 9.0], [1.0, 0.0, 0.0, 1.0]])
    valid = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, True]])

    found = two_part_advantages(
        scores, torch.zeros_like(scores), valid, first_P=torch.tensor([2, 2, 4])
    )

    assert [[1.0, -1.0, pytest.approx(2 / 3), pytest.approx(-2 / 3)], [0.0] * 4, [0.0] * 4] == (
        found.tolist()
    )
