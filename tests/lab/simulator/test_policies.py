"""Policies on plans of the memory budget."""

from dataclasses import replace

import numpy as np

from tasks.capacity.plan import Plan, override_work, plan_of_preset
from tasks.lab.simulator.lengths import assumed
from tasks.lab.simulator.page import render, step_table
from tasks.lab.simulator.rates import Efficiency
from tasks.lab.simulator.variants import (
    VariantResult,
    compare,
    dedicated_plan,
    reason_against,
    variants,
    with_largest_claim,
)


def small() -> Plan:
    """A node with few and short responses."""
    return override_work(plan_of_preset("single_node"), 128, 256, 64)


def rows(plan: Plan) -> dict[str, VariantResult]:
    draw, limit = assumed(256), 64.0
    return {row.variant.name: row for row in compare(variants(plan), draw, Efficiency(), limit)}


def test_every_policy_is_simulated_or_says_why_it_does_not_fit():
    found = rows(small())

    assert all((row.outcome is None) == bool(row.reason) for row in found.values())
    assert "not a multiple" in found["dedicated GPUs, in turn"].reason
    assert found["longest first"].outcome
    assert found["shared queue"].outcome
    assert found["shared queue"].seconds < found["rewards after rollouts"].seconds


def test_the_claim_is_the_largest_that_fits():
    plan = with_largest_claim(plan_of_preset("full_scale"))
    more = plan.layout.model_copy(update={"rollout_memory": plan.layout.rollout_memory + 0.05})

    assert "" == reason_against(plan)
    assert reason_against(replace(plan, layout=more))


def test_half_of_a_node_is_dedicated():
    layout = dedicated_plan(plan_of_preset("full_scale")).layout

    assert (4, 4) == (layout.dedicated_rollout_gpus, layout.rollout_tensor)


def test_the_page_shows_every_policy_once_and_loads_nothing():
    plan = small()
    found = list(rows(plan).values())
    page = render(plan, found, Efficiency(), "lengths are assumed").decode()

    assert {2} == {page.count(f">{row.variant.name}<") for row in found if row.outcome}
    assert sum(row.outcome is not None for row in found) == page.count('class="track"')
    assert "http" not in page
    assert len(found) == step_table(found).row_count


def test_the_same_lengths_are_drawn_for_every_policy():
    draws = (assumed(256)(4, 2, np.random.default_rng(0)) for _ in range(2))
    first, second = ([group.lengths.tolist() for group in groups] for groups in draws)

    assert first == second
