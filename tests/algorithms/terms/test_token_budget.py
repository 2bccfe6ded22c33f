import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import table
from tasks.algorithms.losses.surrogate import clipped_objective
from tasks.algorithms.terms.token_budget import TokenBudget, fill, select
from tests.algorithms.signals import signal_of

VECTOR = json.loads((Path(__file__).parents[1] / "loss_vectors.json").read_text())["c3po"]
LENGTHS = torch.tensor(VECTOR["inputs"]["lengths"])
PHI = VECTOR["inputs"]["phi"]
GRPO = LossSettings(kind="grpo")


def cut(settings, entropy, mask, totals, budget, *, truncate_last=True):
    """The plan of a loss, cut to a budget of an update."""
    totals = replace(totals, responses_per_update=1)
    plan = table.plan(settings, entropy, mask, vocabulary=8, step=totals)
    term = TokenBudget(tokens_per_response=budget, truncate_last=truncate_last)
    return term.weigh(signal_of(mask, plan=plan, totals=totals)).plan


def in_order(lengths, *, truncate_last):
    return fill(lengths, torch.arange(len(lengths)), PHI, truncate_last)


def test_whole_responses_are_taken_until_the_budget_is_reached():
    kept = in_order(LENGTHS, truncate_last=False)

    assert VECTOR["selected"] == kept.nonzero()[:, 0].tolist()
    assert VECTOR["selected_tokens"] == int(kept.sum())


def test_the_last_response_is_cut_to_the_budget_exactly():
    kept = in_order(LENGTHS, truncate_last=True)

    assert [*VECTOR["kept_tokens_with_truncation"], 0, 0] == kept.tolist()


def test_an_exact_hit_takes_no_further_response():
    exact = VECTOR["exact_hit"]

    kept = in_order(torch.tensor(exact["lengths"]), truncate_last=False)

    assert exact["selected"] == kept.nonzero()[:, 0].tolist()
    assert exact["tokens"] == int(kept.sum())


def test_a_response_keeps_the_same_share_of_its_tokens_whatever_its_length():
    """A heavy tail, whose longest response is an eighth of the budget, and half of the tokens."""
    lengths = torch.exp(5 + torch.randn(64, generator=torch.Generator().manual_seed(0))).long() + 1
    budget = int(lengths.sum()) // 2
    kept = sum(select(lengths, budget, seed).double() / lengths for seed in range(1500)) / 1500
    scaled = lengths.double().log()

    slope = torch.cov(torch.stack([scaled, kept]))[0, 1] / scaled.var()

    assert 0.5 == pytest.approx(float(kept.mean()), abs=0.01)
    assert abs(float(slope)) < 0.01  # of the tokens, for a response e times as long


def test_the_sum_is_divided_by_the_budget_even_where_it_is_not_reached():
    lengths = VECTOR["underfull"]["lengths"]
    mask = torch.arange(600) < torch.tensor(lengths)[:, None]

    plan = cut(GRPO, torch.zeros(2, 600), mask, table.whole_step(mask), PHI)

    assert 1 / PHI == pytest.approx(float(plan.weights_NT[0, 0]) / 2)  # two sequences
    assert 1000 / PHI == pytest.approx(float(plan.weights_NT.sum()) / 2)


@pytest.mark.parametrize(
    ("truncate_last", "expected"),
    [(True, "objective_truncated_div_phi"), (False, "objective_whole_responses_div_phi")],
)
def test_the_objective_is_that_of_the_worked_numbers(truncate_last, expected):
    mask = torch.arange(2500) < LENGTHS[:, None]
    advantages = torch.tensor(VECTOR["inputs"]["token_objective"])[:, None] * mask
    zero = torch.zeros(6, 2500)
    # A seed whose shuffle starts with the vector's four responses in their order.
    seed = next(
        number
        for number in range(10_000)
        if [0, 1, 2, 3]
        == torch.randperm(6, generator=torch.Generator().manual_seed(number * 1_000_003))[
            :4
        ].tolist()
    )
    step = table.StepTotals(6, int(mask.sum()), 2500, (torch.arange(6),), seed, 6)

    plan = cut(GRPO, zero, mask, step, PHI, truncate_last=truncate_last)
    objective, _ = clipped_objective(
        zero, zero, advantages, plan, ratio_mode=table.find(GRPO).ratio_form
    )

    assert VECTOR[expected] == pytest.approx(float(objective.sum()) / 6, rel=1e-5)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=20),
    budget=st.integers(1, 300),
    seed=st.integers(0, 1000),
)
def test_a_draw_reaches_the_budget_or_takes_everything(lengths, budget, seed):
    lengths = torch.tensor(lengths)
    whole, exact = (select(lengths, budget, seed, truncate) for truncate in (False, True))

    assert int(exact.sum()) == min(budget, int(lengths.sum()))
    assert int(whole.sum()) >= int(exact.sum())
    assert ((whole == 0) | (whole == lengths)).all()
    assert (exact <= whole).all()
    assert int((exact < whole).sum()) <= 1
    assert exact.tolist() == select(lengths, budget, seed, True).tolist()


def test_no_response_is_favoured_for_its_place_or_length():
    lengths = torch.tensor([10, 10, 90, 90])
    taken = sum((select(lengths, 1, seed) > 0).double() for seed in range(2000)) / 2000

    assert [0.25] * 4 == pytest.approx(taken.tolist(), abs=0.03)


def test_every_update_has_its_own_budget():
    mask = torch.ones(6, 10, dtype=torch.bool)
    updates = (torch.tensor([5, 0, 2]), torch.tensor([1, 3, 4]))
    step = table.StepTotals(8, 60, 10, updates, seed=3, responses_per_update=4)

    plan = cut(GRPO, torch.zeros(6, 10), mask, step, 15)

    for rows in updates:
        assert 15 == int((plan.weights_NT[rows] > 0).sum())
        assert 1.0 == pytest.approx(float(plan.weights_NT[rows].sum()) / (8 / 2))


@pytest.mark.parametrize("kind", list(table.LOSSES))
def test_a_step_without_trainable_sequences_has_an_empty_plan(kind):
    none = torch.zeros(0, 0)
    step = table.StepTotals(8, 60, 10, (), seed=3, responses_per_update=4)

    plan = cut(LossSettings(kind=kind), none, none.bool(), step, 15)

    assert (0, 0) == tuple(plan.weights_NT.shape)


def test_groups_keep_their_weights_relative_to_each_other():
    entropy = torch.tensor([[3.0, 0.1, 0.2, 0.3, 0.4]])
    mask = torch.ones(1, 5, dtype=torch.bool)

    plan = cut(LossSettings(), entropy, mask, table.whole_step(mask), 5)

    assert [0.5, 0.125, 0.125, 0.125, 0.125] == pytest.approx(plan.weights_NT[0].tolist())
