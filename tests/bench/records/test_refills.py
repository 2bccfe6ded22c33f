"""Replacements by hand: groups with contrast, tokens, and the gain of the update."""

import pytest

from data_schemas.ledger import GroupOutcome, LedgerRow
from data_schemas.prompts import Domain
from tasks.errors import DataError
from tests.bench.records.refills import record, rules
from tests.bench.records.replay import Draw


def draw(number, contrast, tokens, expected):
    row = LedgerRow(
        step=1,
        round=number,
        problem_id=f"{number}{tokens}",
        domain=Domain.MATHS,
        outcome=GroupOutcome.NON_ZERO_VARIANCE if contrast else GroupOutcome.SURPLUS,
        rollouts=8,
        prompt_tokens=5,
        generated_tokens=tokens,
        draft_tokens=0,
        saved_tokens=0,
        trained_tokens=0,
        solved=0,
        abstained=0,
        mean_score=0.0,
        advantage_mass=0.0,
        pass_rate_change=0.0,
    )
    return Draw(row, (Domain.MATHS, "s", "v", 0), 5.0, 5.0, expected)


STEP = [
    draw(0, True, 100, 10.0),
    draw(0, False, 100, 20.0),
    draw(1, True, 50, 5.0),
    draw(1, False, 250, 40.0),
]


def test_every_rule_has_the_numbers_of_its_draws():
    found = {rule.name: rule for rule in rules(record({"0": STEP}))}
    first, every = 1 / 200, 1 / 300

    means = {name: rule.contrast_per_token.mean for name, rule in found.items()}
    assert means["replace: all"] == pytest.approx(every / first)
    assert means["replace: more contrast per token"] == pytest.approx((1 / 50) / first)
    assert means["first draws: more contrast per token"] == pytest.approx((1 / 100) / first)
    assert 0.5 == found["replace: more contrast per token"].taken
    # One of two groups is missing; half a group comes for 150 tokens, or one for 50.
    assert 1.5 / (350 / 200) == pytest.approx(found["replace: all"].gains[0].mean)
    assert 2.0**0.8 / (250 / 200) == pytest.approx(
        found["replace: more contrast per token"].gains[1].mean
    )


def test_phases_that_replace_nothing_are_refused():
    with pytest.raises(DataError, match="the phases replaced no group"):
        record({"0": STEP[:2]})
    with pytest.raises(DataError, match="the phases replaced no group"):
        record({})
