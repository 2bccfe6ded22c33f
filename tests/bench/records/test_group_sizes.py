"""Promises of group sizes against numbers by hand."""

import numpy as np
import pytest
from scipy.stats import binom

from data_schemas.ledger import GroupOutcome, LedgerRow
from data_schemas.prompts import Domain
from tasks.errors import DataError
from tests.bench.records.group_sizes import ceiling_size, promises, slope_moments
from tests.bench.records.replay import Draw


def draw(name, solved, beta, length=10, rollouts=8):
    row = LedgerRow(
        step=1,
        round=0,
        problem_id=name,
        domain=Domain.MATHS,
        outcome=GroupOutcome.NON_ZERO_VARIANCE,
        rollouts=rollouts,
        prompt_tokens=5,
        generated_tokens=rollouts * length,
        draft_tokens=0,
        saved_tokens=0,
        trained_tokens=0,
        solved=solved,
        abstained=0,
        mean_score=0.0,
        advantage_mass=0.0,
        pass_rate_change=0.0,
    )
    return Draw(row, (Domain.MATHS, "s", "v", 0), *beta, float(length))


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 1.0])
def test_the_moments_have_no_bias(rate):
    solved = np.arange(9)
    chance = binom.pmf(solved, 8, rate)
    first, second = slope_moments(solved, np.full(9, 8))

    assert rate * (1 - rate) == pytest.approx(chance @ first)
    assert (rate * (1 - rate)) ** 2 == pytest.approx(chance @ second, abs=1e-12)


def test_alike_prompts_gain_nothing_and_twice_the_size_gains_what_its_baseline_does():
    found = {one.name: one for one in promises([draw(str(n), 4, (5.0, 5.0)) for n in range(6)])}

    assert (8.0, 0.0, 1.0) == (
        found["by prompt"].mean,
        found["by prompt"].deviation,
        found["by prompt"].gain.mean,
    )
    assert (15 / 16) / (7 / 8) == pytest.approx(found["twice as large"].gain.mean)
    assert 2.0 == found["twice as large"].tokens


def test_a_prompt_that_is_known_to_be_decided_leaves_its_responses_to_others():
    known = [draw(str(n), 8, (400.0, 1.0)) for n in range(5)]
    open_ones = [draw(str(n), 4, (5.0, 5.0)) for n in range(5)]
    (first, *_) = promises([*known, *open_ones])

    # 4 and 12 responses instead of 8 and 8: the noise of the open ones is 7 / 11.
    assert (8.0, 4.0) == (first.mean, first.deviation)
    assert 11 / 7 == pytest.approx(first.gain.mean)


def test_the_ceiling_asks_for_more_responses_of_certain_prompts():
    assert 3 == ceiling_size(draw("a", 4, (50.0, 50.0)))
    assert 32 == ceiling_size(draw("a", 8, (400.0, 1.0)))
    with pytest.raises(DataError, match="no group has four verdicts"):
        promises([draw("a", 1, (1.0, 1.0), rollouts=3)])
