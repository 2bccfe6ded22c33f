"""The sampled reverse KL as an advantage: worked numbers, its mean over the policy, the control."""

import json
from pathlib import Path

import pytest
import torch

from tasks.algorithms.distillation import Blend, entropy_weights, least_probable, with_teacher

VECTORS = json.loads((Path(__file__).parent / "distillation_vectors.json").read_text())
ALL = torch.ones(1, 4, dtype=torch.bool)


def advantages(rewards: list[float], blend: Blend, mask: torch.Tensor = ALL) -> torch.Tensor:
    """Advantages of the four tokens of the vectors, each drawn once, in one response."""
    student = torch.tensor([VECTORS["student_logits"]]).log_softmax(dim=1)
    teacher = torch.tensor([VECTORS["teacher_logits"]]).log_softmax(dim=1)
    return with_teacher(torch.tensor([rewards]), student, teacher, mask, blend)


def test_the_advantage_is_minus_the_published_log_ratio():
    own = advantages([0.0] * 4, Blend(weight=1.0, bound=5.0))

    torch.testing.assert_close(
        -own[0], torch.tensor(VECTORS["sampled"]["log_ratio"]), atol=2e-6, rtol=0
    )


def test_its_mean_gradient_over_the_policy_is_that_of_the_reverse_kl():
    own = advantages([0.0] * 4, Blend(weight=1.0, bound=5.0))[0]
    logits = torch.tensor(VECTORS["student_logits"], requires_grad=True)
    logprobs = logits.log_softmax(dim=0)

    (-(logprobs.exp().detach() * own * logprobs)).sum().backward()

    expected = torch.tensor(VECTORS["sampled"]["mean_over_student_is_exact_gradient"])
    torch.testing.assert_close(logits.grad, expected, atol=2e-6, rtol=0)


def test_a_hybrid_is_the_weighted_sum_and_untaught_tokens_stay():
    mask = torch.tensor([[True, True, False, True]])
    alone = advantages([0.0] * 4, Blend(weight=1.0, bound=5.0))
    mixed = advantages([-1.0, -1.0, -1.0, -1.0], Blend(weight=0.1, bound=5.0), mask)

    torch.testing.assert_close(mixed[mask], -0.9 + 0.1 * alone[mask])
    assert mixed[0, 2] == -1.0


def test_the_bound_holds_and_a_teacher_that_is_the_policy_says_nothing():
    bounded = advantages([0.0] * 4, Blend(weight=1.0, bound=0.5))
    assert bounded.abs().max() == 0.5
    same = torch.tensor([[-1.0, -2.0]])
    mask = torch.ones(1, 2, dtype=torch.bool)

    still = with_teacher(torch.zeros(1, 2), same, same, mask, Blend(weight=1.0, bound=5.0))

    assert not still.any()


@pytest.mark.parametrize("broken", [torch.nan, -torch.inf])
def test_a_token_whose_logits_overflowed_is_not_taught(broken: float):
    old, teacher = torch.tensor([[-1.0, -2.0]]), torch.tensor([[broken, -1.5]])
    rewarded = torch.tensor([[-1.0, -1.0]])
    mask = torch.ones(1, 2, dtype=torch.bool)

    mixed = with_teacher(rewarded, old, teacher, mask, Blend(weight=1.0, bound=5.0))

    assert mixed.tolist() == [[-1.0, 0.5]]


def test_the_control_is_about_the_least_probable_fifth_of_the_taught_tokens():
    old = -torch.arange(1.0, 11.0).reshape(2, 5)
    taught = torch.ones(2, 5, dtype=torch.bool)
    taught[1, 4] = False  # the least probable of all
    mixed = with_teacher(torch.zeros(2, 5), old, old, taught, Blend(1.0, 5.0, control=True))

    assert mixed.tolist() == [[0.0] * 5, [0.0, 0.0, 0.0, -0.5, 0.0]]


def test_tokens_weigh_more_where_the_teacher_is_sure_at_a_mean_of_one():
    found = VECTORS["routing"]
    entropy, taught = torch.tensor([found["teacher_entropy"] + [9.0]]), ALL[:, :3].clone()
    taught[0, 2] = False

    weights = entropy_weights(entropy, taught)

    torch.testing.assert_close(weights[0, :2], torch.tensor(found["weight"]), atol=2e-6, rtol=0)
    assert weights[0, 2] == 0.0
    assert weights.sum().item() == pytest.approx(2.0)


@pytest.mark.parametrize("entropy", [0.0, 3.0, 200.0])
def test_a_teacher_that_is_equally_sure_everywhere_weighs_as_without(entropy: float):
    weights = entropy_weights(torch.full((2, 3), entropy), torch.ones(2, 3, dtype=torch.bool))

    assert weights.tolist() == [[1.0] * 3] * 2


def test_where_nothing_is_taught_nothing_weighs():
    weights = entropy_weights(torch.ones(1, 2), torch.zeros(1, 2, dtype=torch.bool))

    assert not weights.any()


def test_the_loss_over_the_union_of_routed_and_weighted_tokens_is_the_published_one():
    """A rewarded response of 3 tokens, a taught one of 2 and one of 4: one mean over all nine."""
    found = VECTORS["routing"]
    rewarded = torch.tensor(found["advantage"]).repeat_interleave(torch.tensor(found["tokens"]))
    taught = torch.zeros(1, 9, dtype=torch.bool)
    taught[0, 3:5] = True
    entropy, old = torch.zeros(1, 9), torch.zeros(1, 9)
    entropy[taught] = torch.tensor(found["teacher_entropy"])
    teacher = old.clone()  # A is minus the divergence of the token
    teacher[taught] = -torch.tensor(found["token_kl_of_response_1"])
    blend = Blend(weight=1.0, bound=5.0, by_entropy=True)

    mixed = with_teacher(rewarded[None], old, teacher, taught, blend, entropy)

    expected = pytest.approx(found["loss_over_union_of_tokens"], abs=2e-6)
    assert expected == float(-mixed.mean())


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_token_of_unknown_entropy_is_not_taught_and_not_in_the_mean(broken: float):
    old, teacher = torch.tensor([[-1.0, -2.0, -2.0]]), torch.tensor([[-1.0, -1.5, -1.5]])
    taught = torch.ones(1, 3, dtype=torch.bool)
    blend = Blend(weight=1.0, bound=5.0, by_entropy=True)
    entropy = torch.tensor([[broken, 1.0, 1.0]])

    mixed = with_teacher(torch.full((1, 3), -1.0), old, teacher, taught, blend, entropy)

    assert mixed.tolist() == [[-1.0, 0.5, 0.5]]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_token_and_every_token_can_be_the_least_probable(share: float):
    old, mask = -torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)

    assert least_probable(old, mask, share).all() == bool(share)
