"""Candidate against parent, paired by problem."""

import logging

import pytest

from data_schemas.rows import Domain
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.intervals import compare
from tasks.errors import DataError

SETTINGS = EvaluationSettings(samples=2)


def test_the_difference_is_paired_by_id_whatever_the_order(make_samples):
    candidate = make_samples("a", [1.0, 1.0]) + make_samples("b", [0.0, 1.0])
    parent = make_samples("b", [0.0, 0.0]) + make_samples("a", [0.0, 1.0])

    overall, maths, _ = compare(candidate, parent, "merged", SETTINGS)

    # Both problems gained a half, so resampling them shows no spread at all.
    assert ("all", "merged", 2) == (overall.suite, overall.parent, overall.problems)
    assert (0.5, 0.5, 0.5) == (overall.difference, overall.low, overall.high)
    assert ("domain:maths", 0.5) == (maths.suite, maths.difference)


def test_every_domain_and_language_is_compared_and_nothing_else(make_samples):
    samples = make_samples("a", [1.0], domain=Domain.CODE) + make_samples("b", [0.0], language="th")

    assert ["all", "domain:maths", "domain:code", "language:en", "language:th"] == [
        comparison.suite for comparison in compare(samples, samples, "merged", SETTINGS)
    ]


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

    assert ["all", "domain:maths", "language:en"] == [
        comparison.suite for comparison in compare(candidate, candidate, "merged", SETTINGS)
    ]


def test_different_problems_are_refused(make_samples):
    with pytest.raises(DataError, match=r"answered different problems: 2 ids .* first 'a'"):
        compare(make_samples("a", [1.0]), make_samples("b", [1.0]), "merged", SETTINGS)
