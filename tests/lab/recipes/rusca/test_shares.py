"""Shares and choices of a scaffold, against the specification's vectors."""

import itertools
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.mismatch import mismatch_metrics
from tasks.algorithms.terms.icepop import IcePop
from tasks.algorithms.terms.tis import TIS
from tasks.lab.recipes.rusca.settings import Curve, ScaffoldSettings, WithinGroup
from tasks.lab.recipes.rusca.shares import (
    scaffold_ratios,
    scaffold_subset,
    share_of_step,
    shares_of_group,
)
from tests.algorithms.signals import signal_of

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
PUBLISHED = ScaffoldSettings()
CURVES = {
    "linear": ScaffoldSettings(curve=Curve.POWER, steepness=1.0),
    "power_2": ScaffoldSettings(curve=Curve.POWER, steepness=2.0),
    "power_5": ScaffoldSettings(curve=Curve.POWER, steepness=5.0),
    "sigmoid_125_0.2": PUBLISHED,
    "sigmoid_125_0.1": ScaffoldSettings(switch_at=0.1),
    "sigmoid_10_0.3_code_default": ScaffoldSettings(switch_at=0.3, steepness=10.0),
}
GROUPS = {"linear": WithinGroup.LINEAR, "first_4_full": WithinGroup.FIRST_HALF}
EVERY_SETTING = st.builds(
    ScaffoldSettings,
    curve=st.sampled_from(Curve),
    switch_at=st.floats(0, 1),
    steepness=st.floats(0.1, 10),
    within_group=st.sampled_from(WithinGroup),
)


def counts(step):
    return [round(10 * ratio) for ratio in scaffold_ratios(step, 350, 8, PUBLISHED)]


@pytest.mark.parametrize("name", CURVES)
def test_the_curves_have_the_vector_s_values(name):
    given_steps, total = (VECTORS["lambda_step"][key] for key in ("steps", "total"))
    found = [share_of_step(step, total, CURVES[name]) for step in given_steps]

    assert VECTORS["lambda_step"]["curves"][name] == pytest.approx(found, abs=2e-6)


@pytest.mark.parametrize("name", GROUPS)
def test_the_samples_of_a_group_have_the_vector_s_shares(name):
    found = shares_of_group(VECTORS["lambda_group"]["G"], GROUPS[name])

    assert VECTORS["lambda_group"][name] == pytest.approx(found, abs=2e-6)


@pytest.mark.parametrize("kind", WithinGroup)
def test_a_group_of_one_sees_nothing(kind):
    assert [VECTORS["lambda_group"]["group_of_one"]] == shares_of_group(1, kind)


def test_the_choice_by_digest_is_the_vector_s():
    shown = VECTORS["shown"]
    for row in shown["rows"]:
        found = scaffold_subset(
            shown["criteria"],
            row["ratio"],
            seed=shown["seed"],
            group=shown["group_key"],
            sample=row["sample"],
        )
        assert tuple(row["shown"]) == found


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (1, [10, 9, 7, 6, 4, 3, 1, 0]),
        (60, [10, 8, 7, 6, 4, 3, 1, 0]),
        (70, [6, 5, 4, 3, 2, 2, 1, 0]),
        (71, [5, 4, 3, 3, 2, 1, 1, 0]),
        (72, [4, 3, 3, 2, 2, 1, 1, 0]),
        (80, [0] * 8),
        (350, [0] * 8),
    ],
)
def test_the_published_scaffold_is_nearly_a_switch(step, shown):
    assert shown == counts(step)


def test_the_product_of_both_shares_is_that_of_the_vector():
    first, second, *_ = scaffold_ratios(1, 350, 8, PUBLISHED)

    assert 0.999999999986112 == pytest.approx(first, rel=1e-12)
    assert 0.8571428571309531 == pytest.approx(second, rel=1e-12)
    assert 0.48209934439034535 == pytest.approx(scaffold_ratios(71, 350, 8, PUBLISHED)[0], rel=1e-9)


@given(EVERY_SETTING, st.integers(2, 16), st.integers(2, 60))
def test_no_share_ever_rises(settings, size, total):
    grid = [scaffold_ratios(step, total, size, settings) for step in range(1, total + 1)]

    for row in grid:
        assert row == sorted(row, reverse=True)
        assert 0.0 <= row[-1] <= row[0] <= 1.0
        assert settings.within_group is WithinGroup.EVERY or row[-1] == 0.0
    for before, after in itertools.pairwise(grid):
        assert all(new <= old for old, new in zip(before, after, strict=True))


@given(st.integers(0, 12), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_less_of_a_scaffold_shows_a_part_of_what_more_of_it_shows(criteria, one, two, sample):
    low, high = sorted((one, two))
    few, many = (
        scaffold_subset(criteria, ratio, seed=1, group="3.0.2", sample=sample)
        for ratio in (low, high)
    )

    assert set(few) <= set(many) <= set(range(criteria))
    assert (round(criteria * low), round(criteria * high)) == (len(few), len(many))


def test_half_a_criterion_rounds_to_even():
    found = [scaffold_subset(n, 0.5, seed=0, group="g", sample=0) for n in (1, 3, 5)]

    assert [0, 2, 2] == [len(shown) for shown in found]


def test_the_ratios_of_the_vector_are_those_of_its_prompts():
    rows = {name: torch.tensor(value).double() for name, value in VECTORS["ratios"].items()}
    for name, new, old in (
        ("bare_over_bare", "new_bare", "old_bare"),
        ("bare_over_scaffold", "new_bare", "old_with_scaffold"),
        ("scaffold_over_scaffold", "new_with_scaffold", "old_with_scaffold"),
    ):
        assert rows[name].tolist() == pytest.approx(torch.exp(rows[new] - rows[old]).tolist(), 1e-5)


def test_the_prompts_themselves_would_stop_a_run_and_undo_the_method():
    ratios, gate = VECTORS["ratios"], VECTORS["gate"]
    bare, shown = (
        torch.tensor([ratios[name]]).double() for name in ("old_bare", "old_with_scaffold")
    )
    trainer = torch.tensor([gate["trainer_under_scaffold"]]).double()
    mask = torch.ones_like(bare, dtype=torch.bool)

    across = mismatch_metrics(bare, shown, mask)["mismatch/k3"]
    under_one = mismatch_metrics(trainer, shown, mask)["mismatch/k3"]

    assert gate["k3_if_rollout_logprobs_are_compared_with_bare"] == pytest.approx(across, abs=2e-6)
    assert gate["k3_under_the_same_prompt"] == pytest.approx(under_one, abs=2e-6)
    assert under_one < gate["pause_above"] < across
    signal = signal_of(mask, rollout_prompt_NT=bare, rollout_NT=shown)
    for term, name in (
        (TIS(), "tis_weights_if_not_excluded"),
        (IcePop(), "icepop_weights_cap_5"),
    ):
        weights = term.weigh(signal).weights_NT
        assert gate[name] == pytest.approx(weights[0].tolist(), abs=2e-6)
