import itertools
import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.advantages.grouped import group_advantages, has_variance, signed_scores
from tasks.algorithms.advantages.maxrl import MaxRL
from tasks.errors import DataError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
OFF_POLICY = json.loads((Path(__file__).parent / "off_policy_vectors.json").read_text())["losses"]


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


def test_right_and_wrong_are_plus_and_minus_one():
    assert [1.0, -1.0] == signed_scores(torch.tensor([1.0, 0.0])).tolist()


@pytest.mark.parametrize("group", OFF_POLICY["maxrl"]["groups"])
def test_maxrl_gives_the_worked_numbers(group):
    scores = torch.tensor([json.loads(group.replace("[.", "[0.").replace(",.", ",0."))])

    found = MaxRL().estimate(
        scores.float(), torch.zeros(scores.shape), torch.ones_like(scores).bool(), std_floor=0.0
    )

    assert OFF_POLICY["maxrl"]["groups"][group] == pytest.approx(found[0].tolist(), abs=2e-6)


@pytest.mark.parametrize(
    "case", [one for one in OFF_POLICY["maxrl"]["expectation"] if one["N"] > 1], ids=str
)
def test_the_expected_update_of_maxrl_is_of_the_order_below_the_group(case):
    """By enumeration of all groups of N independent verdicts, as a weight of the gradient of p."""
    size, p = case["N"], case["p"]
    weight = 0.0
    for verdicts in itertools.product((0.0, 1.0), repeat=size):
        scores = torch.tensor([verdicts])
        advantages = MaxRL().estimate(
            scores, torch.zeros_like(scores), torch.ones_like(scores).bool(), std_floor=0.0
        )[0]
        chance = math.prod(p if one else 1.0 - p for one in verdicts)
        # The score function of a verdict is 1 / p if it is right and -1 / (1 - p) if it is not.
        slopes = torch.tensor([1.0 / p if one else -1.0 / (1.0 - p) for one in verdicts])
        weight += chance * float((advantages * slopes).mean())

    expected = case["weight_of_grad_p"]
    assert expected["zeros_when_all_wrong"] == pytest.approx(weight, rel=1e-4)
    assert expected["order_N_minus_1"] == pytest.approx(weight, rel=1e-4)


def test_maxrls_floor_is_never_above_the_mean_of_binary_scores():
    scores = torch.zeros(2, 32)
    scores[0, 0], scores[1, 0] = 1.0, 0.01
    nothing, all_valid = torch.zeros_like(scores), torch.ones_like(scores).bool()

    binary, graded = MaxRL().estimate(scores, nothing, all_valid, std_floor=0.05)[:, 0].tolist()

    assert 31.0 == pytest.approx(binary)  # (1 - 1/32) / (1/32)
    assert 0.01 * 31.0 == pytest.approx(graded)  # the floor is 1/32, its mean 0.01/32


def test_penalties_are_no_part_of_maxrls_divisor():
    scores = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    penalties = torch.tensor([[0.0, -0.4, 0.0, 0.0]])

    found = MaxRL().estimate(scores, penalties, torch.ones_like(scores).bool(), std_floor=0.0)

    mean = (1.0 - 0.4) / 4
    assert [(one - mean) / 0.25 for one in (1.0, -0.4, 0.0, 0.0)] == pytest.approx(
        found[0].tolist()
    )
