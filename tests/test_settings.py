"""Every value of the settings has an effect, or is refused or warned of by name."""

from collections.abc import Iterator
from typing import get_args

import pytest
from annotated_types import Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from data_schemas import presets
from data_schemas.faults import explain
from data_schemas.machine_settings import (
    LayoutSettings,
    LoRASettings,
    MachineSettings,
    TrainingEngines,
)
from data_schemas.rl_settings import EngineSettings, RLSettings
from data_schemas.settings import EvaluationSettings, PipelineSettings, ReleaseSettings
from tasks.algorithms.losses.table import LOSSES
from tasks.algorithms.phase_choices import require_fit, without_effect
from tasks.engines import select
from tasks.errors import SettingsError

REAL = {"rollout": "vllm", "trainer": "megatron"}
OTHER = {
    "tensor": 2,
    "pipeline": 2,
    "expert": 2,
    "context": 2,
    "recompute": True,
    "precision": "bf16",
    "rollout_tensor": 2,
    "rollout_memory": 0.9,
    "hang_s": 30.0,
}
"""Another value than the default for every field of the layout that is of one kind of engine."""
READ_BY_ALL = {"micro_batch_tokens", "dedicated_rollout_gpus"}


def test_every_field_of_the_layout_is_judged_here():
    assert set(LayoutSettings.model_fields) == READ_BY_ALL | set(OTHER)


@pytest.mark.parametrize("name", OTHER)
def test_a_layout_of_another_engine_is_refused_by_name(name):
    with pytest.raises(ValidationError) as refused:
        MachineSettings.model_validate({"layout": {name: OTHER[name]}})

    value = str(OTHER[name])
    assert f"layout.{name} is {value}, which" in explain(refused.value, MachineSettings)
    assert "does not have; use" in explain(refused.value, MachineSettings)


@pytest.mark.parametrize("name", OTHER)
def test_the_engine_that_has_a_value_takes_it(name):
    dedicated = {"dedicated_rollout_gpus": 2} if name in {"hang_s", "rollout_tensor"} else {}
    settings = REAL | {"layout": {name: OTHER[name]} | dedicated}

    assert OTHER[name] == MachineSettings.model_validate(settings).layout.model_dump()[name]


def test_routers_in_fp32_are_refused_where_everything_is_in_fp32():
    half = {"layout": {"precision": "bf16"}}
    for engines in ({}, REAL):
        with pytest.raises(ValidationError) as refused:
            MachineSettings.model_validate(engines | {"fp32_router": True})
        assert "fp32_router is set, but rollout engine and trainer are in fp32" in explain(
            refused.value, MachineSettings
        )
    for engines in ({"precision": "bf16"}, REAL | half, REAL | half | {"precision": "fp16"}):
        assert MachineSettings.model_validate(engines | {"fp32_router": True}).fp32_router


@pytest.mark.parametrize("name", OTHER)
def test_a_default_that_is_written_out_is_no_request(name):
    default = LayoutSettings().model_dump(mode="json")[name]

    assert MachineSettings() == MachineSettings.model_validate({"layout": {name: default}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "fp8"}, "precision is fp8, which rollout 'hf' does not have"),
        ({"fp8_ignored_layers": ["a"]}, "fp8_ignored_layers is set, but precision is fp32"),
        (
            REAL | {"precision": "bf16", "fp8_ignored_layers": ["a"]},
            "fp8_ignored_layers is set, but precision is bf16",
        ),
        (
            REAL | {"layout": {"precision": "fp8"}},
            "layout.precision is fp8; the trainer computes in fp32, bf16 or fp16",
        ),
        (REAL | {"layout": {"hang_s": 9}}, "set layout.dedicated_rollout_gpus, or leave it out"),
    ],
)
def test_a_machine_without_the_thing_a_value_is_about_is_refused(settings, message):
    with pytest.raises(ValidationError) as refused:
        MachineSettings.model_validate(settings)

    assert message in explain(refused.value, MachineSettings)


def test_adapters_are_of_the_embedded_trainer_with_either_rollout_engine():
    with pytest.raises(ValidationError) as refused:
        RLSettings.model_validate(
            {"domains": {"maths": 1.0}, "engines": REAL | {"lora": {"rank": 8}}}
        )

    assert "lora.rank is 8, which trainer 'megatron' does not have" in str(refused.value)
    for rollout in ("hf", "vllm"):
        engines = TrainingEngines.model_validate({"rollout": rollout, "lora": {"rank": 8}})
        assert 8 == engines.lora.rank


@pytest.mark.parametrize("rank", [-8, 4, 12, 2048])
def test_a_rank_is_a_multiple_of_eight(rank):
    with pytest.raises(ValidationError, match="rank"):
        LoRASettings(rank=rank)


@pytest.mark.parametrize("group", ["grading", "evaluation"])
def test_a_stage_that_trains_nothing_refuses_adapters(group):
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate({group: {"engines": {"lora": {"rank": 8}}}})

    assert f"{group}.engines.lora" in explain(refused.value, PipelineSettings)


def test_the_group_is_named_where_the_settings_are_nested():
    given = {"sft": {"engines": {"layout": {"precision": "bf16"}}}}
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate(given)

    assert "sft.engines: layout.precision is bf16" in explain(refused.value, PipelineSettings)


def test_micro_batches_of_the_embedded_trainer_have_the_size_that_was_set(tiny_moe):
    small = MachineSettings(layout=LayoutSettings(micro_batch_tokens=64))

    assert 64 == select.open_trainer(small, tiny_moe)._micro_batch_tokens  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"staleness": 0}, "set engines.staleness to the most versions"),
        ({"rollout": "vllm", "layout": {"dedicated_rollout_gpus": 1}}, "gpus to 0"),
    ],
)
def test_free_running_rollouts_that_would_not_be_bounded_or_exact_are_refused(changes, reason):
    with pytest.raises(ValidationError) as refused:
        EngineSettings.model_validate({"segment_tokens": "free", "staleness": 2} | changes)

    assert reason in str(refused.value)


def test_a_segment_is_a_number_of_tokens_or_free():
    for wrong in (-1, "long"):
        with pytest.raises(ValidationError, match="segment_tokens"):
            EngineSettings.model_validate({"segment_tokens": wrong})


def settings_with(**changes) -> RLSettings:
    return RLSettings.model_validate({"domains": {"maths": 1.0}} | changes)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"loss": {"kind": "espo", "clip_scale": 0.02, "clip_high": 0.4}},
            "loss.clip_high 0.4 has no effect: loss.clip_scale sets ESPO's widths",
        ),
        (
            {"loss": {"entropy_edges": [0.5], "high_entropy_share": 0.3}},
            "loss.high_entropy_share 0.3 has no effect: loss.entropy_edges replaces it",
        ),
        (
            {"loss": {"kind": "dr_grpo"}, "zero_variance": {"std_floor": 0.1}},
            "zero_variance.std_floor 0.1 has no effect: "
            "loss.kind 'dr_grpo' divides by no deviation",
        ),
        (
            {"rewards": {"overlong_weight": 0, "overlong_buffer": 5}},
            "rewards.overlong_buffer 5 has no effect: rewards.overlong_weight is 0",
        ),
        (
            {"engines": {"mismatch": {"old_policy": "rollout", "correct_above": 1e-4}}},
            "engines.mismatch.correct_above 0.0001 has no effect: the policy ratio is to the "
            "rollout engine, so no step is corrected",
        ),
        (
            {
                "engines": {"mismatch": {"corrected_by": {"kind": "icepop"}}},
                "terms": [{"kind": "tis"}],
            },
            "engines.mismatch.corrected_by {'kind': 'icepop'} has no effect: a term that is listed "
            "weighs by the same ratio",
        ),
        (
            {"domains": {"code": 1.0}, "rewards": {"maths": "rule"}},
            "rewards.maths rule has no effect: domains has no maths",
        ),
        (
            {"num_mini_batches": 1, "terms": [{"kind": "tasks/lab/terms/kl_cov.py:KLCov"}]},
            "the term tasks/lab/terms/kl_cov.py:KLCov has no effect: num_mini_batches is 1: no "
            "update starts away from the old policy",
        ),
        (
            {"num_mini_batches": 1, "loss": {"kind": "grpo", "clip_low": 0.1}},
            "loss.clip_low 0.1 has no effect: num_mini_batches is 1: no update starts away from "
            "the old policy",
        ),
    ],
)
def test_a_value_without_effect_is_named_with_the_reason(changes, line):
    assert [line] == without_effect(settings_with(**changes))


def test_a_single_update_starts_away_from_a_policy_that_only_the_rollouts_know():
    mismatch = {"engines": {"mismatch": {"old_policy": "rollout"}}}

    assert [] == without_effect(
        settings_with(
            num_mini_batches=1,
            loss={"kind": "grpo", "clip_low": 0.1},
            terms=[{"kind": "tasks/lab/terms/kl_cov.py:KLCov"}],
            **mismatch,
        )
    )


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_alone_leaves_nothing_without_effect(kind):
    terms = {} if LOSSES[kind].token_advantages else {"terms": []}

    assert [] == without_effect(settings_with(loss={"kind": kind}, **terms))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"loss": {"kind": "gmpo"}}, r"'rl_zvp' gives tokens their own; leave it out of terms"),
        (
            {"terms": [{"kind": "kl"}, {"kind": "rl_zvp"}]},
            r"'rl_zvp' gives advantages, which the terms before it would not see; list it first",
        ),
        (
            {"zero_variance": {"rl_zvp_alpha": 0.0}},
            r"terms: \[\{kind: rl_zvp, alpha: 0\.1\}\]; \[\] = none",
        ),
        ({"advantage": "maxrl", "rewards": {"maths": "rule"}}, r"scores below 0; use 'value'"),
        (
            {"rewards": {"error_rates": {"choice": {"false_positive": 0.1}}}},
            r"recipe: \{implementation: tasks\.lab\.recipes\.noisy_verdicts\.rewards:",
        ),
        (
            {"group_dro": 2.0, "domains": {"maths": 1, "code": 1}},
            r"skip 'threshold' both move the shares",
        ),
        ({"group_dro": 2.0}, r"there is one; set 0"),
        (
            {"router_replay": "r2", "engines": {"mismatch": {"routes": True}}},
            r"router_replay 'r2' hands it none; use 'r3'",
        ),
    ],
)
def test_a_loss_or_advantage_that_does_not_fit_is_refused_with_the_fix(changes, reason):
    with pytest.raises((ValidationError, SettingsError), match=reason):
        require_fit(settings_with(**changes))


PHASES = {
    f"{name}.{phase}": getattr(preset, phase)
    for name, preset in vars(presets).items()
    for phase in ("rl", "rl_one", "rl_two")
    if isinstance(preset, presets.PipelineSettings | presets.RetrainSettings)
    and phase in type(preset).model_fields
}


@pytest.mark.parametrize("name", PHASES)
def test_every_value_of_a_preset_has_an_effect(name):
    assert [] == without_effect(PHASES[name])


@pytest.mark.parametrize(
    "name", ["", "a/b", "a:b", "it's", '"a"', "[bold]a", "<b>a</b>", "a b", "..", "a\n"]
)
def test_a_model_name_that_mlflow_or_a_uri_cannot_carry_is_refused(name):
    with pytest.raises(ValidationError) as refused:
        ReleaseSettings(name=name)
    assert "name" in explain(refused.value, ReleaseSettings)


@pytest.mark.parametrize("name", ["eachprompt-tiny", "Qwen3-30B-A3B_v1.2", "7b"])
def test_a_model_name_of_letters_digits_and_dashes_is_taken(name):
    assert name == ReleaseSettings(name=name).name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0, "top_p": 0.9}, "top_p is 0.9, but temperature is 0"),
        ({"temperature": 0.0, "min_p": 0.1}, "min_p is 0.1, but temperature is 0"),
        ({"stop": ["a", ""]}, "stop contains an empty string"),
    ],
)
def test_a_truncation_or_stop_string_without_a_meaning_is_refused(changes, message):
    with pytest.raises(ValidationError) as refused:
        EvaluationSettings.model_validate(changes)

    assert message in explain(refused.value, EvaluationSettings)


@pytest.mark.parametrize(("name", "value"), [("min_p", 0.1), ("stop", ["a"])])
def test_what_the_trainer_does_not_replay_is_of_evaluation_and_refused_in_training(name, value):
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate({"rl_one": {name: value}})

    assert f"rl_one: {name} is a setting of evaluation" in explain(refused.value, PipelineSettings)
    assert f"Set evaluation.{name}" in explain(refused.value, PipelineSettings)


def test_sets_that_nothing_bounds_are_refused_where_the_engine_records_bounded_ones():
    engines = {"rollout": "vllm"}
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate({"rl_one": {"top_p": 0.9, "engines": engines}})

    assert "rl_one: top_p is 0.9, and engines.rollout 'vllm' records what it drew from" in explain(
        refused.value, PipelineSettings
    )
    PipelineSettings.model_validate({"rl_one": {"top_p": 0.9}})
    PipelineSettings.model_validate({"rl_one": {"top_p": 0.9, "top_k": 512, "engines": engines}})


def test_a_set_of_one_token_for_every_draw_is_refused():
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate({"rl_two": {"top_k": 1}})

    assert "rl_two: top_k is 1, which draws the likeliest token only" in explain(
        refused.value, PipelineSettings
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sft": {"epochs": True}}, "true and false are none"),
        ({"release": {"min_gain": False}}, "true and false are none"),
        ({"sft": {"epochs": 10**9}}, "less than or equal to 1000"),
        ({"rl_one": {"steps": 10**9}}, "less than or equal to 1000000"),
    ],
)
def test_truth_is_no_number_and_counts_have_an_end(given, problem):
    with pytest.raises(ValidationError, match=problem):
        PipelineSettings.model_validate(given)


def counts_of(kind: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield every whole number of a settings model and of those in it."""
    for name, field in kind.model_fields.items():
        parts = [field.annotation, *get_args(field.annotation)]
        if int in parts:
            yield f"{kind.__name__}.{name}", field
        for part in parts:
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from counts_of(part)


def test_every_count_has_a_largest_value():
    """One beyond what a machine could hold is refused as it is read, not after hours."""
    unbounded = [
        name
        for name, field in counts_of(PipelineSettings)
        if not any(isinstance(one, Le | Lt) for one in field.metadata)
    ]

    assert [] == unbounded
