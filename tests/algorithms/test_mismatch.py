"""Mismatch of trainer and rollout engine: worked numbers, and where the difference lies."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.algorithms.mismatch import k3_by_slice, mismatch_anatomy, mismatch_metrics

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def anatomy(gap_NT: torch.Tensor, mask_NT: torch.Tensor | None = None) -> dict[str, float]:
    """The anatomy of these differences, without the prefix of its names."""
    if mask_NT is None:
        mask_NT = torch.ones_like(gap_NT, dtype=torch.bool)
    found = mismatch_anatomy(gap_NT, torch.zeros_like(gap_NT), mask_NT)
    return {name.removeprefix("mismatch/"): value for name, value in found.items()}


def test_mismatch_metrics_are_the_worked_numbers():
    vector = VECTORS["mismatch_metrics"]
    train, rollout = torch.tensor([vector["logp_train"]]), torch.tensor([vector["logp_rollout"]])

    found = mismatch_metrics(train, rollout, torch.ones(1, 4, dtype=torch.bool))

    assert vector["k3_kl"] == pytest.approx(found["mismatch/k3"], abs=1e-6)
    assert vector["mean_abs"] == pytest.approx(found["mismatch/mean_abs_logprob"], abs=1e-6)
    assert vector["extreme_fraction_tau2"] == found["mismatch/extreme_share"]


def test_tokens_whose_logits_overflow_are_counted_and_left_out_of_the_means():
    train = torch.tensor([[-1.0, -2.0, -3.0, torch.nan, -0.5]])
    rollout = torch.tensor([[-1.1, torch.nan, -torch.inf, -1.0, torch.nan]])
    mask = torch.tensor([[True, True, True, True, False]])

    found = mismatch_metrics(train, rollout, mask)
    whole = mismatch_metrics(train[:, :1], rollout[:, :1], mask[:, :1])

    assert whole | {"mismatch/overflow_tokens": 3.0} == found
    assert (
        1.0
        == mismatch_metrics(train[:, 3:], rollout[:, 3:], mask[:, 3:])["mismatch/overflow_tokens"]
    )


def test_a_difference_in_the_last_quarter_of_a_response_is_found_there():
    gap_NT = torch.zeros(2, 10)
    mask_NT = torch.zeros(2, 10, dtype=torch.bool)
    mask_NT[0, 2:10] = True  # a prompt of two tokens; quarters of two tokens
    mask_NT[1, 1:5] = True  # quarters of one token
    gap_NT[0, 8:10] = 0.1
    gap_NT[1, 4] = 0.1

    found = anatomy(gap_NT, mask_NT)

    assert [0.0] * 3 == [found[f"k3_quarter_{index}"] for index in (1, 2, 3)]
    assert np.expm1(0.1) - 0.1 == pytest.approx(found["k3_quarter_4"], rel=1e-5)


def test_a_response_of_one_token_has_a_first_quarter_only():
    found = anatomy(torch.full((3, 1), 0.2))

    assert "k3_quarter_1" in found
    assert not {"k3_quarter_2", "k3_quarter_3", "k3_quarter_4"} & found.keys()


def test_small_differences_of_one_sign_add_up_over_a_sequence():
    gap_NT = torch.stack([torch.full((100,), 0.01), torch.tensor([0.01, -0.01] * 50)])

    found = anatomy(gap_NT)

    assert 0.5 == pytest.approx(found["sequence_log_ratio"], rel=1e-5)  # (1 + 0) / 2
    assert 1.0 == pytest.approx(found["sequence_log_ratio_max"], rel=1e-5)
    weights = np.exp([1.0, 0.0])
    share = weights.sum() ** 2 / (2 * (weights**2).sum())
    assert share == pytest.approx(found["sequence_effective_share"], rel=1e-5)


def test_the_effective_share_of_very_long_sequences_does_not_overflow():
    found = anatomy(torch.tensor([[900.0], [0.0]]))

    assert 0.5 == found["sequence_effective_share"]


@pytest.mark.parametrize("index", [1.5, 3.0])
def test_the_tail_index_is_that_of_a_pareto_distribution(index):
    draws = np.random.default_rng(0).pareto(index, 200_000) + 1.0

    found = anatomy(torch.from_numpy(draws).reshape(100, 2000) * 1e-3)

    assert index == pytest.approx(found["tail_index"], rel=0.1)


@pytest.mark.parametrize("gap", [torch.zeros(2, 1000), torch.full((2, 400), 0.5)])
def test_without_a_tail_there_is_no_tail_index(gap):
    assert "tail_index" not in anatomy(gap)


def test_quantiles_are_those_of_numpy():
    gap_NT = torch.linspace(-1.0, 0.5, 4000, dtype=torch.float64).reshape(4, 1000)
    sizes = np.abs(gap_NT.numpy())

    found = anatomy(gap_NT)

    assert np.quantile(sizes, 0.99) == pytest.approx(found["abs_logprob_p99"])
    assert np.quantile(sizes, 0.999) == pytest.approx(found["abs_logprob_p999"])
    assert 1.0 == found["abs_logprob_max"]


def test_the_order_of_sequences_changes_nothing():
    gap_NT = torch.from_numpy(np.random.default_rng(1).normal(0, 0.1, (50, 40)))
    mask_NT = torch.from_numpy(np.random.default_rng(2).random((50, 40)) < 0.7)
    turned = torch.from_numpy(np.random.default_rng(3).permutation(50))

    one, other = anatomy(gap_NT, mask_NT), anatomy(gap_NT[turned], mask_NT[turned])

    assert one == pytest.approx(other, rel=1e-12)


def test_tokens_without_a_finite_difference_are_left_out_of_the_anatomy():
    gap_NT = torch.tensor([[0.1, torch.nan, 0.1, torch.inf], [torch.nan] * 4])

    found = anatomy(gap_NT)

    assert 0.1 == pytest.approx(found["abs_logprob_max"])
    assert 0.2 == pytest.approx(found["sequence_log_ratio"])
    assert {} == anatomy(torch.full((1, 2), torch.nan))


def responses(gaps):
    """A response of four tokens for each difference between the engines."""
    train_NT = torch.tensor([[gap] * 4 for gap in gaps], dtype=torch.float64)
    return train_NT, torch.zeros_like(train_NT), torch.ones_like(train_NT, dtype=torch.bool)


def test_a_language_of_a_twentieth_whose_engines_disagree_is_found_in_a_quiet_step():
    noise = np.random.default_rng(0).normal(0.0, 0.02, 400)
    noise[:20] += 0.8
    slices = [("domain:maths", "language:th" if row < 20 else "language:en") for row in range(400)]

    found = {one.name: one for one in k3_by_slice(*responses(noise), slices)}

    assert {"domain:maths", "language:en", "language:th"} == found.keys()
    assert 20 == found["language:th"].responses
    assert found["language:th"].low > 0.1 > found["domain:maths"].k3
    assert found["language:en"].low < 1e-3
    assert found["language:th"].low < found["language:th"].k3


def test_small_slices_of_a_kind_are_judged_together_and_alone_only_reported():
    noise = np.random.default_rng(0).normal(0.6, 0.02, 24)
    slices = [(f"language:{'vi' if row % 2 else 'th'}",) for row in range(24)]

    found = {one.name: one for one in k3_by_slice(*responses(noise), slices)}

    assert {"language:th + language:vi", "language:th", "language:vi"} == found.keys()
    assert 0.0 == found["language:th"].low == found["language:vi"].low
    assert found["language:th + language:vi"].low > 0.1


def test_one_wild_response_makes_no_slice_certain():
    gaps = [0.0] * 39 + [4.0]
    (one,) = k3_by_slice(*responses(gaps), [("language:en",)] * 40)

    assert one.k3 > 1.0
    assert 0.0 == one.low


def test_rows_without_a_finite_token_are_in_no_slice():
    train_NT, rollout_NT, mask_NT = responses([0.1, float("inf")])
    found = k3_by_slice(train_NT, rollout_NT, mask_NT, [("language:en",), ("language:th",)])

    assert ["language:en"] == [one.name for one in found]
    assert [] == k3_by_slice(train_NT, rollout_NT, mask_NT & False, [(), ()])
