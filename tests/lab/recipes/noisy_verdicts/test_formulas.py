import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.advantages.centred import CentredAdvantage
from tasks.algorithms.advantages.grouped import GroupAdvantage
from tasks.algorithms.advantages.rloo import RLOO
from tasks.lab.recipes.noisy_verdicts.formulas import (
    corrected_reward,
    no_contrast_probability,
    noise_range,
)

SEEN = [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
RATES = st.tuples(st.floats(0.0, 0.45), st.floats(0.0, 0.45))


def corrected(scores, false_positive=0.1, false_negative=0.2):
    rewards = [corrected_reward(score, false_positive, false_negative) for score in scores]
    return torch.tensor([rewards], dtype=torch.float64)


def advantages(estimator, scores_PG, std_floor=0.0):
    nothing = torch.zeros_like(scores_PG)
    valid = torch.ones_like(scores_PG, dtype=torch.bool)
    return estimator().estimate(scores_PG, nothing, valid, std_floor=std_floor)


def test_accepted_is_worth_9_sevenths_and_rejected_minus_1_seventh_of_rates_10_and_20():
    assert [9 / 7, -1 / 7] == pytest.approx(corrected([1.0, 0.0])[0].tolist())


def test_rates_of_zero_change_nothing():
    assert SEEN == corrected(SEEN, 0.0, 0.0)[0].tolist()


@given(rates=RATES)
def test_the_expectation_over_injected_errors_is_the_true_verdict(rates):
    false_positive, false_negative = rates
    accepted, rejected = corrected([1.0, 0.0], *rates)[0].tolist()

    assert 1.0 == pytest.approx(accepted * (1 - false_negative) + rejected * false_negative)
    assert 0.0 == pytest.approx(
        accepted * false_positive + rejected * (1 - false_positive), abs=1e-9
    )


@pytest.mark.parametrize("estimator", [CentredAdvantage, RLOO])
def test_advantages_of_corrected_verdicts_are_unbiased_under_injected_errors(estimator):
    rng = np.random.default_rng(0)
    right = torch.tensor([SEEN], dtype=torch.float64)
    flips = torch.from_numpy(rng.random((200_000, len(SEEN))))
    seen_PG = torch.where(right > 0.5, (flips >= 0.2).double(), (flips < 0.1).double())
    rejected, accepted = corrected([0.0, 1.0])[0]

    mean = advantages(estimator, torch.where(seen_PG > 0.5, accepted, rejected)).mean(dim=0)

    assert torch.allclose(advantages(estimator, right)[0], mean, atol=0.01)
    uncorrected = advantages(estimator, seen_PG).mean(dim=0)
    assert not torch.allclose(advantages(estimator, right)[0], uncorrected, atol=0.05)


def test_division_by_the_deviation_of_the_group_cancels_the_correction():
    seen = torch.tensor([SEEN], dtype=torch.float64)

    assert torch.allclose(
        advantages(GroupAdvantage, seen), advantages(GroupAdvantage, corrected(SEEN)), atol=1e-5
    )


def test_centring_the_group_scales_it_by_10_sevenths():
    seen = torch.tensor([SEEN], dtype=torch.float64)

    assert torch.allclose(
        10 / 7 * advantages(CentredAdvantage, seen),
        advantages(CentredAdvantage, corrected(SEEN)),
        atol=1e-9,
    )


def learned(rate, known, seed):
    """Accuracy on new problems of a linear policy that chooses one of ten answers, after 60 steps.

    The verifier of every other problem errs at `rate`, both ways; `known` is the rate that rewards
    are corrected for. Groups of 8, advantages CentredAdvantage, plain policy gradient.
    """
    draw, world = np.random.default_rng(seed), np.random.default_rng(1000)
    size, truth = 24, world.normal(size=24) * 3
    trained_PKD, held_PKD = (world.normal(size=(n, 10, size)) / size**0.5 for n in (200, 1000))
    policy_D = np.zeros(size)
    for _ in range(60):
        rows = draw.choice(200, 24, replace=False)
        answers_PKD, noisy_P1 = trained_PKD[rows], (rows % 2 == 0)[:, None]
        logits_PK = answers_PKD @ policy_D
        odds_PK = np.exp(logits_PK - logits_PK.max(axis=1, keepdims=True))
        odds_PK /= odds_PK.sum(axis=1, keepdims=True)
        chosen_PG = np.stack([draw.choice(10, 8, p=odds) for odds in odds_PK])
        right_PG = chosen_PG == (answers_PKD @ truth).argmax(axis=1)[:, None]
        flips_PG = noisy_P1 & (draw.random(right_PG.shape) < rate)
        seen_PG = (right_PG ^ flips_PG).astype(float)
        corrected_PG = np.vectorize(corrected_reward)(seen_PG, known, known)
        rewards_PG = torch.from_numpy(np.where(noisy_P1, corrected_PG, seen_PG))
        advantages_PG1 = advantages(CentredAdvantage, rewards_PG).numpy()[:, :, None]
        taken_PGD = np.take_along_axis(answers_PKD, chosen_PG[:, :, None], axis=1)
        expected_P1D = (odds_PK[:, :, None] * answers_PKD).sum(axis=1, keepdims=True)
        policy_D += 20.0 * (advantages_PG1 * (taken_PGD - expected_P1D)).mean(axis=(0, 1))
    return ((held_PKD @ policy_D).argmax(axis=1) == (held_PKD @ truth).argmax(axis=1)).mean()


@pytest.mark.slow
def test_with_the_correction_up_to_ten_per_cent_of_noise_cost_at_most_a_point():
    seeds = range(12)
    clean = np.mean([learned(0.0, 0.0, seed) for seed in seeds])

    costs = {
        (rate, known): clean - np.mean([learned(rate, known, seed) for seed in seeds])
        for rate, known in ((0.0, 0.05), (0.02, 0.02), (0.05, 0.05), (0.1, 0.1))
    }

    assert 0.8 < clean < 0.95
    assert max(costs.values()) < 0.01, costs


@pytest.mark.parametrize(
    ("accepted", "probability"), [(1, 0.136524), (7, 0.072578), (0, 0.989796), (8, 0.979798)]
)
def test_how_likely_a_group_of_eight_has_no_contrast_is_that_of_the_vectors(accepted, probability):
    """Those of the mixed ones; the others are worked apart."""
    found = no_contrast_probability(accepted, 8, 0.02, 0.01)

    assert probability == pytest.approx(found, abs=1e-6)


def test_of_two_responses_it_is_worked_by_hand():
    """One accepted: 2 f (1 - f) if both are wrong, 2 n (1 - n) if both are right; if one is right,
    (1 - n)(1 - f) + n f."""
    f, n = 0.2, 0.1
    flat, mixed = 2 * f * (1 - f) + 2 * n * (1 - n), (1 - n) * (1 - f) + n * f

    assert flat / (flat + mixed) == pytest.approx(no_contrast_probability(1, 2, f, n))


@pytest.mark.parametrize("accepted", [0, 1, 5])
def test_verdicts_without_errors_are_what_they_are(accepted):
    assert float(accepted in (0, 5)) == no_contrast_probability(accepted, 5, 0.0, 0.0)


def test_large_groups_have_a_probability():
    assert 0.0 <= no_contrast_probability(512, 1024, 0.1, 0.1) < 1e-100
    assert no_contrast_probability(10, 1024, 0.01, 0.0) > 0.1


@given(rates=RATES, size=st.integers(2, 12), data=st.data())
def test_it_is_the_same_with_right_and_wrong_exchanged(rates, size, data):
    accepted = data.draw(st.integers(0, size))
    false_positive, false_negative = rates

    found = no_contrast_probability(accepted, size, false_positive, false_negative)

    exchanged = no_contrast_probability(size - accepted, size, false_negative, false_positive)
    assert found == pytest.approx(exchanged, abs=1e-12)


@pytest.mark.parametrize(("size", "deviations"), [(2, 2.77181), (4, 3.633173), (8, 4.286334)])
def test_noise_alone_exceeds_its_range_in_one_group_of_twenty(size, deviations):
    assert noise_range(size, 0.01) == pytest.approx(0.01 * deviations, abs=1e-6)
    ranges = torch.randn(20_000, size, generator=torch.Generator().manual_seed(0)).aminmax(dim=1)

    share = ((ranges.max - ranges.min) > noise_range(size, 1.0)).double().mean()

    assert float(share) == pytest.approx(0.05, abs=0.006)
    assert noise_range(size, 0.0) == 0.0
