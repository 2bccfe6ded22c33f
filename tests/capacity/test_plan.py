"""The memory budget as it is asked for, and that the layouts of the presets fit their GPUs."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from data_schemas import presets
from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.capacity import budget_table
from tasks.capacity import plan as plans
from tasks.capacity.budget_table import HEADROOM
from tasks.capacity.memory import GIB, budget
from tasks.durability.states import KEPT_STATES
from tasks.errors import SettingsError
from tasks.rl import codec

KEEP = {"layout": "{}", "precision": "", "gpus": 0, "gpu_gib": 0.0}


@pytest.mark.parametrize("name", plans.PRESETS)
def test_the_layout_of_a_preset_fits_its_gpus(name):
    preset, model, gpus = plans.PRESETS[name]
    for phase in (preset.rl_one, preset.rl_two):
        engines = phase.engines
        found = budget(model, engines.layout, engines.precision, plans.work_of(preset), gpus=gpus)

        assert found.fits(HEADROOM), (found.phases, found.rollout.cached_tokens)


def test_the_table_has_the_disk_of_the_states_that_are_there_while_one_is_written():
    console = Console(width=160, record=True, file=StringIO())
    plan = plans.plan_of_preset("full_scale")
    console.print(budget_table.budget_table(plan, plan.budget()))

    # Weights in bf16, fp32 weights and two moments: 3.43 TB of 245B.
    found = plan.states_on_disk
    assert (KEPT_STATES + 1) * 14 * plan.model.parameters == found
    assert pytest.approx(10.3e12, rel=0.01) == found
    assert f"disk: states {found / 2**30:,.2f} GiB" in " ".join(console.export_text().split())


def test_the_table_has_the_disk_of_the_rollouts_that_are_kept_until_their_step_is_committed():
    plan = plans.override_work(plans.plan_of_preset("single_node"), 40, 400, 2)
    model = plan.model
    rollouts = [
        Rollout(
            problem_id="p",
            sample=sample,
            prompt_tokens=np.ones(40, np.int32),
            response_tokens=np.ones(400, np.int32),
            logprobs=np.zeros(400, np.float32),
            trace=RouterTrace(np.zeros((439, model.layers, model.experts_per_token), np.uint8)),
            stop_reason=StopReason.LENGTH,
            policy_version=0,
        )
        for sample in range(2)
    ]

    # Names of arrays, lengths and reasons beside them are a few hundred bytes.
    kept = len(codec.pack(*codec.rollout_arrays(rollouts)))
    assert pytest.approx(2 * kept, rel=0.01) == plan.rollouts_on_disk


def test_a_preset_is_named_with_its_parameters_and_gpus():
    title = plans.plan_of_preset("full_scale").title()

    assert title.startswith("full_scale: 245.3B parameters, 71.4B active, on 256 GPUs")


def test_no_option_changes_nothing():
    plan = plans.plan_of_preset("single_node")

    assert plan == plans.override_work(plans.override_layout(plan, **KEEP), 0, 0, 0)


def test_options_change_what_a_preset_brings():
    plan = plans.override_layout(
        plans.plan_of_preset("full_scale"),
        layout='{"expert": 8}',
        precision="bf16",
        gpus=128,
        gpu_gib=39.0,
    )

    assert (8, 8, "bf16") == (plan.layout.expert, plan.layout.tensor, plan.precision.value)
    assert (128, 39 * GIB) == (plan.gpus, plan.gpu)
    assert not plan.budget().fits(HEADROOM)


def test_a_model_directory_is_measured_by_its_config(tiny_moe):
    plan = plans.override_work(plans.plan_of_model(tiny_moe), 32, 32, 4)

    assert plan.title().startswith(f"{tiny_moe}: ")
    assert plan.budget().fits(HEADROOM)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"layout": '{"tensors": 2}'}, "--layout: tensors is not a setting; did you mean `tensor`"),
        ({"layout": '{"tensor": 0}'}, "--layout: tensor is 0; it must be greater than or equal"),
        ({"layout": "{"}, r"--layout \{ is not JSON"),
        ({"layout": "[]"}, r"--layout \[\] is not a JSON object"),
        ({"precision": "fp64"}, "--precision 'fp64' is not one of fp32, bf16, fp16, fp8"),
    ],
    ids=lambda value: str(value),
)
def test_what_makes_no_sense_is_refused_with_the_reason(option, message):
    with pytest.raises(SettingsError, match=message):
        plans.override_layout(plans.plan_of_preset("full_scale"), **(KEEP | option))


def test_a_layout_that_does_not_divide_the_model_is_refused():
    plan = plans.override_layout(
        plans.plan_of_preset("full_scale"), **(KEEP | {"layout": '{"pipeline": 7}'})
    )

    with pytest.raises(SettingsError, match="multiple"):
        plan.budget()


def test_an_unknown_preset_is_refused_with_the_likely_one():
    with pytest.raises(SettingsError, match="did you mean `single_node`"):
        plans.plan_of_preset("single_nod")


def test_the_sources_of_work_are_the_larger_phase():
    work = plans.work_of(presets.FULL_SCALE)

    assert (1024, 32_768, 4096) == (work.prompt_tokens, work.response_tokens, work.sequences)
