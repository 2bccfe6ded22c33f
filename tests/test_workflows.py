"""Presets, what people type, and refusals before anything expensive.

The pipeline as a whole is run by test_pipeline.
"""

from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main
from pydantic import ValidationError

from data_schemas import presets
from data_schemas.machine_settings import RolloutKind
from data_schemas.settings import PipelineSettings, RetrainSettings, Source
from tasks.errors import SettingsError
from tasks.settings import options
from tasks.stages.curation import fit_settings
from tasks.stages.foundation import ingest_models
from tasks.store import location
from tests.tables import for_each
from workflows.post_training import post_training

WORKFLOWS = Path(__file__).parents[1] / "workflows"
NAMED = {name: presets.load(name) for name in presets.names()}


@for_each("name", NAMED)
def test_every_preset_is_valid_and_survives_json(name):
    preset = NAMED[name]

    assert preset == type(preset).model_validate_json(preset.model_dump_json())


def test_a_group_may_be_given_in_part():
    few = PipelineSettings.model_validate({"rl_two": {"steps": 3}, "grading": {"samples": 2}})

    assert presets.CPU_SMOKE.rl_two.model_copy(update={"steps": 3}) == few.rl_two
    assert presets.CPU_SMOKE.rl_one == few.rl_one
    assert (
        1.01 == RetrainSettings.model_validate({"grading": {"samples": 2}}).grading.drop_at_or_above
    )
    with pytest.raises(ValidationError, match="stepps"):
        PipelineSettings.model_validate({"rl_two": {"stepps": 3}})


def test_the_default_preset_is_the_defaults_so_that_partial_settings_mean_what_they_say():
    assert PipelineSettings() == presets.CPU_SMOKE


def test_full_scale_is_the_published_profile():
    for phase in (presets.FULL_SCALE.rl_one, presets.FULL_SCALE.rl_two):
        assert (512, 8, 32_768) == (
            phase.prompts_per_step,
            phase.group_size,
            phase.max_new_tokens,
        )
        assert phase.engines.rollout is RolloutKind.VLLM


def test_sources_are_read_in_order():
    assert options.parse_sources("gsm8k=a.jsonl, evaluation:gsm8k=c, ae110k = b ,sample_world") == (
        Source(adapter="gsm8k", path="a.jsonl"),
        Source(adapter="gsm8k", path="c", evaluation=True),
        Source(adapter="ae110k", path="b"),
        Source(adapter="sample_world"),
    )


@pytest.mark.parametrize("text", ["=a.jsonl", "gsm8k=", "gsm8k=a,,mbpp=b"])
def test_sources_that_are_not_adapter_and_path_are_refused_with_an_example(text):
    with pytest.raises(SettingsError, match=r"is not adapter=path\. Example: --sources gsm8k="):
        options.parse_sources(text)


def test_no_sources_keep_those_of_the_settings():
    assert options.with_sources(presets.CPU_SMOKE, " ") is presets.CPU_SMOKE


def test_one_seed_reaches_every_stage_that_draws():
    seeded = options.with_seed(presets.CPU_SMOKE, 7)

    seeds = {name: stage.seed for name, stage in seeded if hasattr(stage, "seed")}
    assert seeds == dict.fromkeys(
        ["curation", "sft", "grading", "rl_one", "rl_two", "general_sft", "evaluation"], 7
    )
    assert "eachprompt-tiny-seed-7" == seeded.release.name


def test_a_local_store_keeps_mlflow_beside_the_artifacts(tmp_path):
    store = location.absolute_store(f"{tmp_path}/runs/")

    assert store == str(tmp_path / "runs")
    assert location.tracking_uri(store, "") == f"sqlite:///{tmp_path}/runs/mlflow.db"
    assert location.tracking_uri(store, "http://mlflow") == "http://mlflow"


def test_a_remote_store_needs_an_mlflow_server():
    with pytest.raises(SettingsError, match="set MLFLOW_TRACKING_URI"):
        location.tracking_uri(location.absolute_store("s3://bucket/runs/"), "")


def test_the_help_says_what_can_be_set():
    runner = CliRunner(env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    done = runner.invoke(main, ["run", "workflows/post_training.py", "post_training", "--help"])

    assert 0 == done.exit_code, done.output
    said = " ".join(done.output.replace("│", " ").split())
    for words in ("released reasoning model", "adapter=path,adapter=path", "rl_two Stages 4 and 5"):
        assert words in said
    assert "$defs" not in said


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"curation": {"sources": [{"adapter": "gsm8k", "path": "/nowhere.jsonl"}]}},
            r"curation\.sources\[0\]\.path: /nowhere\.jsonl is no folder or file",
        ),
        (
            {"curation": {"sources": [{"adapter": "gsm9k", "path": "/nowhere.jsonl"}]}},
            r"curation\.sources\[0\]\.adapter is 'gsm9k'\. Did you mean `gsm8k`\? Use one of",
        ),
        (
            {"rl_two": {"domains": {"maths": 1}, "engines": {"rollout": "vllm"}}},
            r"engines\.rollout 'vllm' is not installed here",
        ),
    ],
    ids=["missing file", "unknown adapter", "missing engine"],
)
def test_what_cannot_run_is_refused_before_curation(tmp_path, settings, message):
    with pytest.raises(SettingsError, match=message):
        post_training(
            settings=PipelineSettings.model_validate(settings),
            store=str(tmp_path / "runs"),
            sources="",
        )

    assert not list((tmp_path / "runs").glob("executions/*/curate.json"))


def test_a_store_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "runs").write_text("")

    with pytest.raises(SettingsError, match=r"store .*runs cannot be written"):
        post_training(settings=presets.CPU_SMOKE, store=str(tmp_path / "runs"), sources="")


def test_suites_are_benchmarks_alone_with_prompts_of_any_length():
    settings = options.with_suites(PipelineSettings(), "gsm8k=a.jsonl,my.yaml=b.jsonl")

    assert [("gsm8k", "a.jsonl", True), ("my.yaml", "b.jsonl", True)] == [
        (one.adapter, one.path, one.evaluation) for one in settings.curation.sources
    ]
    assert options.LONGEST_PROMPT == settings.curation.max_prompt_tokens


def test_a_limit_of_prompts_that_was_set_stays():
    given = PipelineSettings.model_validate({"curation": {"max_prompt_tokens": 300}})

    assert 300 == options.with_suites(given, "gsm8k=a").curation.max_prompt_tokens
    assert given == options.with_suites(given, " ")


WIRED = {
    path.stem: chain
    for path in sorted(WORKFLOWS.glob("*.py"))
    if (chain := getattr(import_module(f"workflows.{path.stem}"), "CHAIN", None))
}


@for_each("name", WIRED)
def test_models_that_settings_name_are_copied_before_a_cached_stage_reads_them(name):
    """The key of a cached stage has the address of a judge or guard, not its content."""
    order = [one.result for one in WIRED[name]]
    judging = [
        one
        for one in WIRED[name]
        if str(one.reads.get("settings")).endswith((".curation", ".grading", ".evaluation"))
    ]

    copied = {one.result for one in WIRED[name] if one.stage in (ingest_models, fit_settings)}
    for one in judging:
        settings = str(one.reads["settings"]).partition(".")[0]
        assert settings in copied, one.result
        assert order.index(settings) < order.index(one.result)
    assert ("models" in order) == bool(judging)
