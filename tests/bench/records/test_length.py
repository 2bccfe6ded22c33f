"""The comparison finds a length that predicts, and none that does not."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from data_schemas.ledger import GroupOutcome, LedgerRow
from data_schemas.prompts import Domain
from tasks.errors import DataError
from tests.bench.records.length import auc, compare, relative
from tests.bench.records.replay import Draw


def draws(seed, prompt_matters):
    generator = np.random.default_rng(seed)
    found = []
    for number in range(300):
        solved, length = generator.uniform(0.5, 9.5), int(generator.integers(5, 100))
        chance = length / 110 if prompt_matters else 0.4
        zero = generator.random() < chance
        outcome = GroupOutcome.SURPLUS if zero else GroupOutcome.NON_ZERO_VARIANCE
        row = LedgerRow(
            step=1,
            round=0,
            problem_id=str(number),
            domain=Domain.MATHS,
            outcome=outcome,
            rollouts=8,
            prompt_tokens=length,
            generated_tokens=80,
            draft_tokens=0,
            saved_tokens=0,
            trained_tokens=0,
            solved=0,
            abstained=0,
            mean_score=0.0,
            advantage_mass=0.0,
            pass_rate_change=0.0,
        )
        family = (Domain.MATHS, "s", "v", number % 2)
        found.append(Draw(row, family, solved, 10.0 - solved, generator.uniform(5, 50)))
    return found


def gains(lines):
    return {line.name: line.gained for line in lines if line.gained}


def test_the_auc_is_that_of_scikit_learn_and_needs_both_kinds():
    generator = np.random.default_rng(0)
    scores, positive = generator.integers(0, 9, 50).astype(np.float64), generator.random(50) < 0.3

    assert roc_auc_score(positive, scores) == pytest.approx(auc(scores, positive))
    with pytest.raises(DataError, match="an AUC needs groups"):
        auc(scores, np.ones(50, dtype=bool))


def test_a_length_that_decides_is_found_and_one_that_does_not_gains_nothing():
    found = gains(compare(draws(0, True), draws(1, True)))
    none = gains(compare(draws(2, False), draws(3, False)))

    assert found["and prompt length"].low > 0.1
    assert abs(found["and recorded length"].mean) < 0.05
    assert none["and prompt length"].low < 0.0


def test_lengths_in_a_family_are_relative_to_its_mean():
    some = draws(0, False)
    inside = relative(lambda draw: draw.response_tokens, some)
    logs = [np.log(inside(draw)) for draw in some if draw.family[3] == 1]

    assert 0.0 == pytest.approx(np.mean(logs), abs=1e-12)
