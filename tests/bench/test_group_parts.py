"""Rules for groups against laws that need no enumeration."""

import numpy as np
import pytest

from data_schemas.arrow import write_table
from data_schemas.ledger import GroupOutcome, LedgerRow
from data_schemas.prompts import Domain
from tasks.errors import DataError
from tests.bench.group_parts import RATES, Prompts, estimate, expected, main


def group(solved: int, length: int = 10, rollouts: int = 8) -> LedgerRow:
    return LedgerRow(
        step=1,
        round=0,
        problem_id="p",
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
        mean_score=solved / 8,
        advantage_mass=0.0,
        pass_rate_change=0.0,
    )


def only(rate: float) -> Prompts:
    shares = (np.abs(RATES - rate) < 1e-9).astype(float)
    return Prompts(shares, np.full(len(RATES), 10.0))


def test_pass_rates_and_lengths_are_found_again():
    found = estimate([group(0, 30)] * 30 + [group(8, 20)] * 70 + [group(1, rollouts=2)])

    assert [0.3, 0.7] == pytest.approx([found.shares[0], found.shares[-1]], abs=1e-3)
    assert [30.0, 20.0] == pytest.approx([found.tokens[0], found.tokens[-1]], abs=0.1)


def test_a_fixed_group_has_the_binomial_numbers():
    found = expected(only(0.2), 8, 8, own=True, on_contrast=True)
    learned = 8 * 0.16**2  # pq times the slope of centred rewards, 8 pq
    noise = 8 * 0.16 * 8 / 7  # each response is compared with the mean of seven others

    assert (8.0, 80.0) == pytest.approx((found.responses, found.tokens))
    assert found.contrast == pytest.approx(1.0 - 0.8**8 - 0.2**8)
    assert found.gain_per_token == pytest.approx(learned**2 / (noise * 80.0))


def test_a_prompt_goes_on_as_often_as_its_first_rewards_differ():
    going = 1.0 - 0.8**4 - 0.2**4
    found = expected(only(0.2), 4, 8, own=True, on_contrast=True)
    other = expected(only(0.2), 4, 8, own=True, on_contrast=False)

    assert (4 + 4 * going, going) == pytest.approx((found.responses, found.contrast))
    assert 12.0 == pytest.approx(found.responses + other.responses)


def test_the_table_reads_ledgers_and_refuses_one_without_groups(tmp_path, capsys):
    write_table(tmp_path / "ledger.parquet", LedgerRow, [group(k) for k in (0, 2, 4, 8, 8)])
    main([str(tmp_path / "ledger.parquet")])

    assert "4, 16 if they differ" in capsys.readouterr().out
    with pytest.raises(DataError, match="no group whose responses all have a verdict"):
        estimate([])
