import json
from pathlib import Path

import pytest
import torch
from scipy.stats import betabinom

from tasks.algorithms.zero_variance import (
    rl_zvp_advantages,
    shrunken_rate,
    zero_variance_expectation,
    zero_variance_probability,
)

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


@pytest.mark.parametrize(("key", "correct"), [("all_correct", True), ("all_wrong", False)])
def test_rl_zvp_gives_the_worked_numbers(key, correct):
    vector = VECTORS["rl_zvp"]
    rows = vector["inputs"]["entropy"]
    width = max(len(row) for row in rows)
    entropy = torch.tensor([row + [9.0] * (width - len(row)) for row in rows])  # padding is loud
    mask = torch.arange(width) < torch.tensor([[len(row)] for row in rows])

    found = rl_zvp_advantages(
        entropy, mask, torch.full((len(rows),), correct), alpha=vector["inputs"]["alpha"]
    )

    for row, expected in enumerate(vector[key]):
        assert expected == pytest.approx(found[row, : len(expected)].tolist(), abs=1e-6)
        assert not found[row, len(expected) :].any()


def test_the_most_uncertain_token_of_a_wrong_response_is_not_punished():
    found = rl_zvp_advantages(
        torch.tensor([[0.3, 2.0, 0.1]]),
        torch.ones(1, 3, dtype=torch.bool),
        torch.tensor([False]),
        alpha=0.1,
    )

    assert 0.0 == float(found[0, 1])
    assert (found <= 0).all()


@pytest.mark.parametrize("row", VECTORS["zero_variance_probability"]["table"], ids=str)
def test_chance_of_a_zero_variance_group(row):
    for size in (4, 8, 16, 32):
        assert row[f"N{size}"] == pytest.approx(zero_variance_probability(row["p"], size))


def test_an_uncertain_pass_rate_gives_the_worked_expectation():
    # Uniform: the number solved of N is equally likely to be 0 .. N.
    assert 2 / 9 == pytest.approx(zero_variance_expectation(1.0, 1.0, 8))
    # 2/4 * 3/5 + 2/4 * 3/5
    assert 0.6 == pytest.approx(zero_variance_expectation(2.0, 2.0, 2))


@pytest.mark.parametrize(("solved", "failed"), [(0.3, 4.0), (2.0, 2.0), (9.0, 1.5)])
def test_the_expectation_agrees_with_scipy_and_is_above_that_of_the_mean(solved, failed):
    pmf = betabinom.pmf([0, 8], 8, solved, failed)

    found = zero_variance_expectation(solved, failed, 8)

    assert float(pmf.sum()) == pytest.approx(found)
    assert zero_variance_probability(solved / (solved + failed), 8) < found
    assert found == pytest.approx(zero_variance_expectation(failed, solved, 8))


def test_a_rate_known_from_very_many_responses_is_certain():
    expected = zero_variance_probability(0.9, 8)

    assert expected == pytest.approx(zero_variance_expectation(9e8, 1e8, 8), rel=1e-6)


def test_a_small_group_is_drawn_to_the_one_around_it():
    assert 0.5 == shrunken_rate([], 4.0)
    assert 0.5 == shrunken_rate([(0.0, 0.0), (0.0, 0.0)], 4.0)
    # (30 + 4 * 0.5) / (36 + 4) = 0.8; (0 + 4 * 0.8) / (4 + 4) = 0.4
    assert 0.4 == pytest.approx(shrunken_rate([(30.0, 36.0), (0.0, 4.0)], 4.0))
