"""Candidate against parent, paired by problem."""

import logging

import numpy as np
import pytest
from scipy import stats

from data_schemas.reports import Comparison
from data_schemas.rows import Domain
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import compare
from tasks.algorithms.intervals import bootstrap_mean
from tasks.algorithms.slices import correct_interval, group_slices, least_share, pool_comparisons
from tasks.algorithms.suites import suite_scores
from tasks.errors import DataError

SETTINGS = EvaluationSettings(samples=2)


def test_the_difference_is_paired_by_id_whatever_the_order(make_samples):
    candidate = make_samples("a", [1.0, 1.0]) + make_samples("b", [0.0, 1.0])
    parent = make_samples("b", [0.0, 0.0]) + make_samples("a", [0.0, 1.0])

    overall, maths, *_ = compare(candidate, parent, "merged", SETTINGS)

    # Both problems gained a half, so resampling them shows no spread at all.
    assert ("all", "merged", 2) == (overall.suite, overall.parent, overall.problems)
    assert (0.5, 0.5, 0.5) == (overall.difference, overall.low, overall.high)
    assert ("domain:maths", 0.5) == (maths.suite, maths.difference)


def test_every_slice_that_a_report_scores_is_compared(make_samples):
    samples = make_samples("a", [1.0], domain=Domain.CODE) + make_samples("b", [0.0], language="th")
    suites = [score.suite for score in suite_scores(samples, SETTINGS)]

    assert {"all", "domain:code", "language:th", "source:hand"} <= set(suites)
    assert suites == [one.suite for one in compare(samples, samples, "merged", SETTINGS)]


def test_a_model_against_itself_gains_exactly_nothing(make_samples):
    samples = make_samples("a", [1.0, 0.0]) + make_samples("b", [0.0, 0.0])

    for comparison in compare(samples, samples, "merged", SETTINGS):
        assert (0.0, 0.0, 0.0) == (comparison.difference, comparison.low, comparison.high)


def test_problems_one_side_could_not_judge_are_left_out_and_counted(make_samples, caplog):
    candidate = make_samples("a", [1.0]) + make_samples("b", [None])
    parent = make_samples("a", [0.0]) + make_samples("b", [1.0])

    with caplog.at_level(logging.WARNING):
        overall = compare(candidate, parent, "merged", SETTINGS)[0]

    assert (1.0, 1) == (overall.difference, overall.problems)
    assert "all against merged: 1 of 2 problems left out" in caplog.text


def test_a_domain_nobody_could_judge_has_no_comparison(make_samples):
    candidate = make_samples("a", [1.0]) + make_samples("b", [None], domain=Domain.CODE)

    compared = [one.suite for one in compare(candidate, candidate, "merged", SETTINGS)]

    assert {"all", "domain:maths", "language:en"} <= set(compared)
    assert "domain:code" not in compared


def test_different_problems_are_refused(make_samples):
    with pytest.raises(DataError, match=r"answered different problems: 2 ids .* first 'a'"):
        compare(make_samples("a", [1.0]), make_samples("b", [1.0]), "merged", SETTINGS)


def of(suite: str, differences: np.ndarray) -> Comparison:
    """Compare on one slice, from the difference of every problem."""
    interval = bootstrap_mean(differences, seed=1)
    return Comparison(
        suite=suite,
        parent="base",
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        problems=len(differences),
    )


@pytest.mark.parametrize("sizes", [(1,) * 60, (3, 7, 20, 30), (60,)])
def test_slices_pooled_give_the_interval_of_their_problems_together(sizes):
    generator = np.random.default_rng(0)
    parts = [
        generator.choice([-0.5, 0.0, 0.25], size) + 0.2 * generator.standard_normal()
        for size in sizes
    ]
    whole = of("whole", np.concatenate(parts))

    pool = pool_comparisons([of(f"source:{i}", part) for i, part in enumerate(parts)], "whole")

    assert 60 == pool.problems
    assert pool.difference == pytest.approx(whole.difference)
    width = whole.high - whole.low
    # Bootstrap ends of the parts and of the whole differ by chance and skew.
    assert pool.low == pytest.approx(whole.low, abs=0.06 * width)
    assert pool.high == pytest.approx(whole.high, abs=0.06 * width)


def test_an_interval_is_corrected_by_students_quantile_at_the_divided_tail():
    one = Comparison(
        suite="language:th", parent="b", difference=-0.2, low=-0.4, high=-0.1, problems=25
    )

    corrected = correct_interval(one, tests=10)

    # t(24) at 1 - 0.05 / 20 is 3.0905; the normal quantile of the interval is 1.9600.
    ratio = 3.0905 / 1.9600
    assert corrected.high == pytest.approx(-0.2 + 0.1 * ratio, abs=1e-4)
    assert corrected.low == pytest.approx(-0.2 - 0.2 * ratio, abs=1e-4)


@pytest.mark.parametrize("shift", [0.0, -0.2])
def test_without_a_loss_few_families_of_slices_have_one_that_seems_to_lose(shift):
    """The false alarms of twelve slices of 24 problems stay near those of one interval."""
    generator = np.random.default_rng(3)

    def alarm() -> bool:
        draws = generator.choice([-1.0, -0.25, 0.0, 0.25, 1.0], (12, 24)) + shift
        means = draws.mean(axis=1)
        reaches = stats.norm.ppf(0.975) * draws.std(axis=1) / np.sqrt(24)  # of a bootstrap
        return any(
            correct_interval(
                Comparison(
                    suite="s", parent="b", difference=mean, low=0, high=mean + reach, problems=24
                ),
                tests=12,
            ).high
            < 0.0
            for mean, reach in zip(means, reaches, strict=True)
        )

    alarms = sum(alarm() for _ in range(200)) / 200

    assert alarms <= 0.06 if shift == 0.0 else alarms > 0.2


def test_small_slices_are_grouped_with_others_of_their_pool_whatever_the_order():
    sizes = {"b:1": 20, "a:1": 19, "a:2": 1, "c:1": 19, "b:2": 5}
    groups = ([("a:1", "a:2"), ("b:1",)], ["a:1", "a:2", "b:2", "c:1"])

    for order in (sizes, dict(reversed(sizes.items()))):
        assert groups == group_slices(order, lambda name: name[0])


def test_the_lower_end_of_a_share_is_that_of_the_exact_interval():
    exact = stats.binomtest(9, 30).proportion_ci(1 - 0.05 / 4, method="exact")

    assert least_share(9, 30, tests=4) == pytest.approx(exact.low)
    assert 0.0 == least_share(0, 30, tests=4)
    assert least_share(30, 30, tests=1) == pytest.approx(0.025 ** (1 / 30))
