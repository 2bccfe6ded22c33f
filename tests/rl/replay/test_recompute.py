"""What a snapshot proves: every byte a step made follows from what it holds."""

from dataclasses import replace

import numpy as np
import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.machine_settings import Precision
from data_schemas.rl_settings import (
    AdvantageSettings,
    EngineSettings,
    LossSettings,
    MismatchSettings,
    OldPolicy,
    RouterReplay,
    SkipSettings,
    ZeroVarianceSettings,
)
from tasks.rl.replay.recompute import compare, first_difference
from tests.algorithms.signals import terms_of

BUDGET_AND_REFERENCE = terms_of(
    {"kind": "token_budget", "tokens_per_response": 20 / 8}, {"kind": "kl", "weight": 0.01}
)
STEPS = {
    "espo": {},
    "gspo without replay, corrected, in bf16": {
        "loss": LossSettings(kind="gspo"),
        "router_replay": RouterReplay.OFF,
        "engines": EngineSettings(precision=Precision.BF16),
        "terms": terms_of({"kind": "tis"}),
    },
    "recorded log-probs as the old ones, in bf16": {
        "group_size": 16,  # so that some have contrast under any processor's kernels
        "loss": LossSettings(kind="dapo"),
        "terms": (),
        "engines": EngineSettings(
            precision=Precision.BF16, mismatch=MismatchSettings(old_policy=OldPolicy.ROLLOUT)
        ),
    },
    "top-p with a token budget and a reference": {
        "top_p": 0.9,
        "loss": LossSettings(kind="grpo"),
        "terms": BUDGET_AND_REFERENCE,
    },
    "clip-cov and kl-cov": {
        "loss": LossSettings(kind="grpo"),
        "terms": terms_of(
            {"kind": "tasks/lab/terms/clip_cov.py:ClipCov", "share": 0.2},
            {"kind": "tasks/lab/terms/kl_cov.py:KLCov", "share": 0.1},
        ),
    },
    "prompts that are weighed against skips, with a reference": {
        "zero_variance": ZeroVarianceSettings(skip=SkipSettings(mode="draw")),
        "terms": terms_of({"kind": "kl", "weight": 0.01}),
    },
    "groups of several sizes": {
        "group_bounds": (2, 8),
        "advantage": AdvantageSettings(kind="rloo"),
        "terms": (),
    },
    "dapo with a token budget and a reference": {
        "loss": LossSettings(kind="dapo"),
        "terms": BUDGET_AND_REFERENCE,
    },
}


def wrong(rows) -> dict[str, str]:
    return {row.name: row.difference for row in rows if row.difference}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_a_step_repeats_byte_for_byte(snapshot, name):
    rows = compare(snapshot(**STEPS[name]))

    assert {} == wrong(rows)
    names = {row.name for row in rows}
    assert {
        "gate",
        "response_NT",
        "advantages_NT",
        "correction_NT",
        "plan/weights_NT",
        "loss/loss_C",
        "loss/clipped_tokens_C",
    } <= names
    assert ("loss/kl_C" in names) == ("reference" in name)


def test_one_penalty_that_was_changed_is_seen_in_the_advantages(snapshot):
    step = snapshot()
    place = [entry.outcome for entry in step.groups].index(GroupOutcome.NON_ZERO_VARIANCE)
    entry = step.groups[place]
    first, *others = entry.group.rollouts
    group = replace(entry.group, rollouts=(replace(first, penalty=-0.3), *others))
    groups = (*step.groups[:place], replace(entry, group=group), *step.groups[place + 1 :])

    differences = wrong(compare(replace(step, groups=groups)))

    assert {"scalar_advantages_N", "advantages_NT", "loss/loss_C"} <= differences.keys()
    assert "response_NT" not in differences


def test_one_bit_of_an_output_is_found(snapshot):
    step = snapshot()
    advantages_NT = step.outputs["advantages_NT"].copy()
    at = tuple(index[0] for index in np.nonzero(advantages_NT))
    advantages_NT[at] = np.nextafter(advantages_NT[at], np.float32(9))
    changed = replace(step, outputs={**step.outputs, "advantages_NT": advantages_NT})

    differences = wrong(compare(changed))

    assert ["advantages_NT"] == list(differences)
    assert f"1 differ, first [{at[0]}, {at[1]}]" in differences["advantages_NT"]


def test_a_changed_log_prob_is_seen_in_the_loss_and_nowhere_else(snapshot):
    step = snapshot()
    logprobs_NT = step.inputs["logprobs_NT"].copy()
    logprobs_NT[step.outputs["advantages_NT"] != 0] -= 0.5
    differences = wrong(compare(replace(step, inputs={**step.inputs, "logprobs_NT": logprobs_NT})))

    assert "loss/loss_C" in differences
    assert all(name.startswith("loss/") for name in differences)


def test_an_output_that_is_missing_is_named(snapshot):
    step = snapshot()
    outputs = {name: array for name, array in step.outputs.items() if name != "correction_NT"}

    differences = wrong(compare(replace(step, outputs=outputs)))

    assert {"correction_NT": "not recorded"} == differences


def test_the_first_difference_is_that_of_bytes():
    assert "" == first_difference(np.array([np.nan]), np.array([np.nan]))
    assert "1 differ, first [1]" in first_difference(np.array([0.0, 0.0]), np.array([0.0, -0.0]))
    assert "repeated as float64 (2,)" == first_difference(np.zeros(3), np.zeros(2))
    assert "" == first_difference(np.zeros((0, 3)), np.zeros((0, 3)))
