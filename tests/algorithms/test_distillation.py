"""The sampled reverse KL as an advantage: worked numbers, its mean over the policy, the control."""

import json
from pathlib import Path

import pytest
import torch

from tasks.algorithms.distillation import Blend, least_probable, with_teacher

VECTORS = json.loads((Path(__file__).parent / "distillation_vectors.json").read_text())
ALL = torch.ones(1, 4, dtype=torch.bool)


def advantages(rewards: list[float], blend: Blend, mask: torch.Tensor = ALL) -> torch.Tensor:
    """Of the four tokens of the vectors, each drawn once, in one response."""
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


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_token_and_every_token_can_be_the_least_probable(share: float):
    old, mask = -torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)

    assert least_probable(old, mask, share).all() == bool(share)
