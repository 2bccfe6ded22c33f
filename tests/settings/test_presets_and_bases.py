"""Each recipe's preset runs on its paper's base: published keys, shrunk in width."""

import json
from pathlib import Path

import pytest

from data_schemas import presets
from data_schemas.public_sets import BENCHMARKS, SETS
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.algorithms.choices import complete
from tasks.capacity.model_shape import shape_of
from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.errors import SettingsError
from tasks.models.architectures import read_architecture
from tasks.platform import resources
from tasks.settings import check, fit, options
from tasks.stages.opening import check_settings
from tests.published_bases import COMPASSMAX_V3, LING_LITE, QWEN2_5_MATH_7B

BOUND = {
    "ring_lite": (presets.RING_LITE, LING_LITE),
    "compass_thinker": (presets.COMPASS_THINKER, QWEN2_5_MATH_7B),
    "compassmax": (presets.COMPASSMAX, COMPASSMAX_V3),
}
FULL = {
    name: value
    for name, value in vars(presets).items()
    if isinstance(value, PipelineSettings) and value.base_model and not name.startswith("_")
}


@pytest.fixture(params=BOUND)
def bound(request, tmp_path):
    preset, config = BOUND[request.param]
    (tmp_path / "config.json").write_text(json.dumps(config))
    return preset.model_copy(update={"base_model": str(tmp_path)}), tmp_path


def test_a_preset_passes_the_checks_with_its_papers_base(bound):
    settings, folder = bound

    check.require_positions(settings)
    fit.require_router(settings)
    fit.require_layers(settings)
    check.require_roles(settings)

    assert settings == fit.fit_to_base(settings)
    for stage in ("sft", "rl_one", "rl_two"):
        read_geometry(folder).check(getattr(settings, stage).engines.layout)
    assert shape_of(json.loads((folder / "config.json").read_text())).parameters


@pytest.fixture
def cluster(bound, monkeypatch):
    """The preset with the nodes and processes that the guide has it registered with."""
    settings, folder = bound
    nodes = 32 if settings.release == presets.COMPASSMAX.release else 1
    monkeypatch.setattr(resources, "NODES", nodes)
    monkeypatch.setattr(resources, "PROCESSES", 8)
    return settings, folder


def with_files(settings: PipelineSettings, folder: Path) -> tuple[PipelineSettings, list[Path]]:
    """Return the settings with other places of their sources, and these places."""
    files = [folder / f"{Path(one.path).name}.jsonl" for one in settings.curation.sources]
    sources = tuple(
        one.model_copy(update={"path": str(file)})
        for one, file in zip(settings.curation.sources, files, strict=True)
    )
    curation = settings.curation.model_copy(update={"sources": sources})
    return settings.model_copy(update={"curation": curation}), files


def test_a_pod_that_checks_a_preset_with_its_papers_base_changes_no_value(cluster, monkeypatch):
    settings, files = with_files(*cluster)
    for file in files:
        file.touch()
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")

    assert complete(settings) == check_settings.task_function(settings=settings, sources="")


@pytest.mark.slow
def test_outside_a_pod_a_preset_passes_where_its_sources_and_engines_are(cluster, monkeypatch):
    settings, folder = cluster
    monkeypatch.delenv("FLYTE_INTERNAL_EXECUTION_ID", raising=False)
    for package in ("vllm", "megatron"):  # an engine is installed if its package is found
        (folder / "packages" / package).mkdir(parents=True)
        (folder / "packages" / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder / "packages")
    # A pod checks the tokenizer as it copies the base; here its files are looked at first.
    (folder / "tokenizer.json").write_text("{}")
    tokenizer = {"chat_template": "{{ messages }}", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    settings, files = with_files(settings, folder)
    with pytest.raises(SettingsError, match=r"sources\[0\]\.path: .* is no folder or file"):
        check_settings.task_function(settings=settings, sources="")

    for file in files:
        file.touch()

    assert complete(settings) == check_settings.task_function(settings=settings, sources="")


def test_a_preset_with_longer_responses_than_its_base_is_refused(bound):
    settings, folder = bound
    positions = read_architecture(folder).positions
    longer = settings.rl_two.model_copy(update={"max_new_tokens": positions})

    with pytest.raises(SettingsError, match=r"rl_two\.max_new_tokens .* positions"):
        check.require_positions(settings.model_copy(update={"rl_two": longer}))


@pytest.mark.parametrize("name", FULL)
def test_no_preset_trains_on_a_benchmark(name):
    check.require_roles(FULL[name])
    trained = {one.adapter for one in FULL[name].curation.sources if not one.evaluation}

    assert not trained & BENCHMARKS
    if FULL[name].sft.epochs and Parent.REASONING not in FULL[name].sft.parents:
        assert FULL[name].sft.min_thinking_words >= 400
        assert {"open_thoughts3", "s1k_1_1", "marco_o1"} <= trained


def test_a_benchmark_among_the_sources_is_refused_with_what_to_write():
    settings = options.with_sources(presets.CPU_SMOKE, "sample_world,bfcl=/nowhere")

    with pytest.raises(SettingsError, match=r"trains on bfcl, which is a benchmark.*:bfcl"):
        check.require_roles(settings)
    check.require_roles(options.with_sources(settings, "sample_world,evaluation:bfcl=/nowhere"))


def test_a_set_with_files_of_both_roles_is_no_benchmark():
    assert "evaluation:gsm8k=gsm8k/test.jsonl" in SETS
    assert not {"gsm8k", "knights_knaves", "ae110k"} & BENCHMARKS
    assert {"mgsm", "ifeval", "bfcl", "xcopa", "humaneval"} <= BENCHMARKS
