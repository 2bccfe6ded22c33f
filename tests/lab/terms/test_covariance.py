"""Worked by hand: log-probs -0.5, -3.5, -4, -4 (mean -3), advantages 2, 2, -2, -2 (mean 0)."""

import pytest
import torch

from tasks.lab.terms.clip_cov import drawn_in_band
from tasks.lab.terms.covariance import covariances
from tasks.lab.terms.kl_cov import largest

LOGPROBS = torch.tensor([[-0.5, -3.5, -9.0], [-4.0, -4.0, -9.0]])
ADVANTAGES = torch.tensor([[2.0, 2.0, 7.0], [-2.0, -2.0, 7.0]])
MASK = torch.tensor([[True, True, False], [True, True, False]])
COVARIANCES = torch.tensor([[5.0, -1.0, 0.0], [2.0, 2.0, 0.0]])


def test_the_parts_are_those_worked_by_hand_and_their_mean_is_the_covariance():
    found = covariances(LOGPROBS, ADVANTAGES, MASK)

    assert torch.equal(COVARIANCES, found)
    both = torch.stack((LOGPROBS[MASK], ADVANTAGES[MASK]))
    assert float(torch.cov(both, correction=0)[0, 1]) == pytest.approx(float(found[MASK].mean()))


def test_the_band_has_neither_of_its_ends():
    assert [[1, 0], [1, 1]] == drawn_in_band(COVARIANCES, MASK, 1.0, seed=0).nonzero().tolist()


def test_a_share_is_drawn_by_seed():
    drawn = [drawn_in_band(COVARIANCES, MASK, 0.25, seed) for seed in range(20)]

    assert {1} == {int(one.sum()) for one in drawn}
    assert {(1, 0), (1, 1)} == {tuple(one.nonzero()[0].tolist()) for one in drawn}
    assert torch.equal(drawn[3], drawn_in_band(COVARIANCES, MASK, 0.25, 3))


def test_the_largest_share_is_held_with_all_that_tie():
    assert [[0, 0]] == largest(COVARIANCES, MASK, 0.25).nonzero().tolist()
    assert [[0, 0], [1, 0], [1, 1]] == largest(COVARIANCES, MASK, 0.5).nonzero().tolist()


def test_no_token_has_none():
    nothing = torch.zeros_like(MASK)
    found = covariances(LOGPROBS, ADVANTAGES, nothing)

    assert not found.any()
    assert not drawn_in_band(found, nothing, 0.5, 0).any()
    assert not largest(found, nothing, 0.5).any()
