"""Layouts that fit, ranked by a simulated step."""

from dataclasses import replace

import pytest
from rich.console import Console

from tasks.capacity.plan import Plan, override_work, plan_of_preset
from tasks.lab.simulator.layouts import (
    OWN,
    POLICY,
    fastest_layouts,
    fitting_layouts,
    layout_table,
)
from tasks.lab.simulator.lengths import assumed
from tasks.lab.simulator.rates import Efficiency
from tasks.lab.simulator.variants import VariantResult, reason_against, simulate

MEAN = 64.0


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A node with few and short responses of a 7B model whose feed-forwards are four experts."""
    plan = override_work(plan_of_preset("compass_thinker"), 128, 256, 64)
    model = replace(plan.model, width=4736, experts=4, experts_per_token=2)
    return replace(plan, model=model)


@pytest.fixture(scope="module")
def rows(plan) -> list[VariantResult]:
    return fastest_layouts(plan, assumed(256), Efficiency(), MEAN, 3)


def test_the_fastest_come_first_and_the_plans_own_is_among_them(plan, rows):
    assert [plan] == [row.variant.plan for row in rows if row.variant.name == OWN]
    assert 4 == len(rows)
    assert sorted(row.seconds for row in rows) == [row.seconds for row in rows]


def test_no_layout_that_fits_is_faster_than_the_first(plan, rows):
    fitting = list(fitting_layouts(plan))
    simulated = (simulate(one, POLICY, assumed(256), Efficiency(), MEAN) for one in fitting[::10])

    assert len(fitting) > 10
    assert {""} == {reason_against(one) for one in fitting}
    assert rows[0].seconds <= min(one.seconds for one in simulated)


def test_every_layout_divides_the_model(plan):
    layouts = [one.layout for one in fitting_layouts(replace(plan, gpus=16))]

    # 4 key-value heads, 28 layers, 4 experts, 28 heads.
    assert {1, 2, 4} == {one.tensor for one in layouts}
    assert {1, 2, 4} == {one.pipeline for one in layouts}
    assert {1, 2, 4} == {one.expert for one in layouts}
    assert {1, 2, 4} == {one.rollout_tensor for one in layouts}
    assert {False, True} == {one.recompute for one in layouts}


def test_a_plan_that_does_not_fit_is_last_and_says_so(plan):
    layout = plan.layout.model_copy(update={"rollout_memory": 0.95})
    rows = fastest_layouts(replace(plan, layout=layout), assumed(256), Efficiency(), MEAN, 2)
    console = Console(width=120, record=True)
    console.print(layout_table(rows))
    lines = console.export_text().rstrip().splitlines()

    assert OWN == rows[-1].variant.name
    assert lines[-1].split()[-3:] == ["does", "not", "fit"]
    assert 2 + 3 == len(lines)
