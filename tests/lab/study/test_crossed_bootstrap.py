"""Two arms compared, against numbers of another program (crossed_bootstrap_vectors.json)."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from tasks.errors import DataError
from tasks.lab.study import crossed_bootstrap
from tasks.lab.study.crossed_bootstrap import AccuracyCurve, Draws

VECTORS = json.loads((Path(__file__).parent / "crossed_bootstrap_vectors.json").read_text())[
    "comparison"
]
DIFFERENCE_SP = np.array(VECTORS["difference_seed_by_problem"])


def every_draw(num_seeds: int, num_problems: int, *, seeds: bool = True) -> Draws:
    """All draws of seeds and problems, instead of a sample of them."""

    def weights(count):
        draws = itertools.product(range(count), repeat=count)
        return [np.bincount(draw, minlength=count) / count for draw in draws]

    same = [np.full(num_seeds, 1 / num_seeds)]
    pairs = itertools.product(weights(num_seeds) if seeds else same, weights(num_problems))
    seeds_B, problems_B = zip(*pairs, strict=True)
    return Draws(np.array(seeds_B), np.array(problems_B))


def test_seeds_and_problems_are_resampled_crossed():
    means_B = crossed_bootstrap.replicate_means(DIFFERENCE_SP, every_draw(3, 4))
    interval = crossed_bootstrap.percentile_interval(DIFFERENCE_SP.mean(), means_B)

    assert len(means_B) == 27 * 256
    assert means_B.var() == pytest.approx(VECTORS["variance"]["crossed"], abs=1e-6)
    assert interval.mean == pytest.approx(VECTORS["estimate"], abs=1e-6)
    assert [interval.low, interval.high] == pytest.approx(
        VECTORS["interval_95"]["crossed"], abs=1e-6
    )


def test_problems_alone_would_give_a_narrower_variance():
    means_B = crossed_bootstrap.replicate_means(DIFFERENCE_SP, every_draw(3, 4, seeds=False))

    assert means_B.var() == pytest.approx(VECTORS["variance"]["problems_only"], abs=1e-6)


def test_a_sample_of_the_draws_finds_the_same_interval():
    found = crossed_bootstrap.crossed_interval(DIFFERENCE_SP, seed=3)

    assert [found.low, found.high] == pytest.approx(VECTORS["interval_95"]["crossed"], abs=0.03)


def test_the_variance_by_moments_and_the_interval_of_the_seeds():
    found = crossed_bootstrap.t_interval(DIFFERENCE_SP.mean(axis=1))

    assert crossed_bootstrap.crossed_variance(DIFFERENCE_SP) == pytest.approx(
        VECTORS["variance"]["moments"], abs=1e-6
    )
    assert [found.low, found.high] == pytest.approx(
        VECTORS["interval_95"]["t_on_seed_means_df2"], abs=1e-5
    )


def test_a_test_over_seeds_agrees_with_its_interval_and_with_scipy():
    means_S = [0.3, 0.1, 0.25, -0.02]
    low = crossed_bootstrap.t_interval(means_S).low

    assert crossed_bootstrap.t_chance(means_S) == pytest.approx(ttest_1samp(means_S, 0.0).pvalue)
    assert 0.05 == pytest.approx(crossed_bootstrap.t_chance(np.array(means_S) - low))
    assert (0.0, 1.0) == (
        crossed_bootstrap.t_chance([0.2, 0.2]),
        crossed_bootstrap.t_chance([0.0, 0.0]),
    )


def test_one_seed_has_no_variance_between_seeds():
    assert math.isnan(crossed_bootstrap.crossed_variance(DIFFERENCE_SP[:1]))
    with pytest.raises(DataError, match="at least two seeds"):
        crossed_bootstrap.t_interval([0.2])
    with pytest.raises(DataError, match="at least two seeds"):
        crossed_bootstrap.t_chance([0.2])


def test_a_macro_average_weighs_domains_and_draws_within_them():
    values_SP = np.array([[1.0, 1.0, 1.0, 0.0]])
    domains = ["maths", "maths", "maths", "code"]

    found = crossed_bootstrap.crossed_interval(values_SP, domains)

    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    draws = crossed_bootstrap.draw(1, tuple(domains), seed=0, replicates=50)
    assert draws.problems_BP[:, 3] == pytest.approx(0.5)
    assert draws.problems_BP.sum(axis=1) == pytest.approx(1.0)


def test_the_cost_of_an_accuracy_is_read_between_the_points():
    cost = VECTORS["cost"]
    sides = {
        name: (cost[f"{name}_tokens"], cost[f"{name}_accuracy"]) for name in ("ours", "theirs")
    }
    grid = cost["mean_log_ratio_on_grid"]

    for name, side in sides.items():
        assert crossed_bootstrap.cost_of(*side, cost["target"]) == pytest.approx(cost[name])
    assert math.inf == crossed_bootstrap.cost_of(*sides["ours"], 0.7)
    ratios = crossed_bootstrap.log_ratios(sides["ours"], sides["theirs"], grid["grid"])
    assert ratios == pytest.approx(grid["log_ratios"], abs=1e-6)
    assert math.exp(ratios.mean()) == pytest.approx(grid["ratio"], abs=1e-5)


def test_noise_does_not_let_a_curve_cross_early():
    noise = VECTORS["noise"]

    assert crossed_bootstrap.isotonic(noise["accuracy"]) == pytest.approx(noise["isotonic"])
    assert crossed_bootstrap.cost_of(noise["tokens"], noise["accuracy"], 0.5) == pytest.approx(
        noise["isotonic_crossing_of_0.5"], abs=1e-6
    )


def test_equal_tokens_are_read_between_the_points():
    cost, equal = VECTORS["cost"], VECTORS["equal_tokens"]

    for name in ("ours", "theirs"):
        values_CSP = np.array(cost[f"{name}_accuracy"])[:, None, None]
        tokens_CS = np.array(cost[f"{name}_tokens"], dtype=float)[:, None]
        found = crossed_bootstrap.at_tokens(values_CSP, tokens_CS, equal["budget"])
        assert found.item() == pytest.approx(equal[name])
    with pytest.raises(DataError, match="41 is not in"):
        crossed_bootstrap.at_tokens(values_CSP, tokens_CS, 41)


def curve(levels, tokens, noise=0.0, seed=0) -> AccuracyCurve:
    """Three seeds and forty problems with these mean accuracies."""
    draws = np.random.default_rng(seed).normal(0.0, noise, (len(levels), 3, 40))
    accuracy_CSP = np.array(levels)[:, None, None] + draws
    return AccuracyCurve(accuracy_CSP, np.repeat(np.array(tokens, dtype=float)[:, None], 3, axis=1))


def test_half_of_the_tokens_for_the_same_accuracies_is_a_ratio_of_one_half():
    draws = crossed_bootstrap.draw(3, ("all",) * 40, seed=0, replicates=200)

    found = crossed_bootstrap.cost_ratio(
        curve([0.3, 0.5, 0.7], [0, 10, 20], 0.01),
        curve([0.3, 0.5, 0.7], [0, 20, 40], 0.01, seed=1),
        [0.4, 0.6],
        draws,
    )

    assert found.ratio.mean == pytest.approx(0.5, abs=0.02)
    assert found.ratio.low < found.ratio.mean < found.ratio.high


def test_a_plateau_has_no_ratio_of_costs():
    draws = crossed_bootstrap.draw(3, ("all",) * 40, seed=0, replicates=200)
    flat = curve([0.3, 0.7, 0.701], [0, 20, 40], 0.2)

    found = crossed_bootstrap.cost_ratio(
        flat, curve([0.3, 0.5, 0.8], [0, 20, 40], 0.2), [0.7005], draws
    )

    assert found.ratio is None
    assert "plateau" in found.reason
    assert crossed_bootstrap.cost_ratio(flat, flat, [], draws).ratio is None


def test_several_comparisons_are_adjusted_by_holm():
    assert crossed_bootstrap.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert crossed_bootstrap.holm([]) == []


def test_a_sign_that_every_replicate_has_is_as_clear_as_their_number_allows():
    assert crossed_bootstrap.two_sided_p([0.1] * 99) == pytest.approx(0.02)
    assert crossed_bootstrap.two_sided_p([0.1, -0.1]) == 1.0
