"""What pyflyte sends when it starts a launch plan, here and on a cluster."""

import json
from textwrap import dedent

import msgpack
import pytest
from click.testing import CliRunner
from flytekit import LaunchPlan
from flytekit.clis.sdk_in_container.pyflyte import main

from data_schemas import presets
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.platform.literals import unpacked
from tests.compiler import Platform
from tests.packages import ROOT, run_remotely
from workflows import launch_plans

PRESETS = {
    "cpu_smoke": presets.CPU_SMOKE,
    "single_node": presets.SINGLE_NODE,
    "full_scale": presets.FULL_SCALE,
    "compassmax": presets.COMPASSMAX,
    "ring_lite": presets.RING_LITE,
    "compass_thinker": presets.COMPASS_THINKER,
    "nightly_retrain": presets.NIGHTLY_SINGLE_NODE,
}
PROBE = '''\
from data_schemas import presets
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point, plan
from tasks.platform.shell import subworkflow
from flytekit import task


@task
def told(settings: PipelineSettings, store: str) -> str:
    return f"{settings.release.name} {settings.rl_one.steps} {settings.base_model} in {store}"


@entry_point
def probe(settings: PipelineSettings = presets.CPU_SMOKE, store: str = "runs") -> str:
    """Say what arrived.

    Args:
        settings: of the pipeline.
        store: of the run.
    """
    return told(settings=settings, store=store)


large = plan("large", probe, {"settings": presets.RING_LITE, "store": "s3://bucket/large"})
'''


def started_remotely(folder, plan, *options):
    path = str(ROOT / "workflows" / "launch_plans.py")
    command = [path, plan, *options]
    (request,) = run_remotely(folder, command, Platform()).started
    return request.inputs.literals


def settings_of(literals, model=PipelineSettings):
    packed = literals["settings"].scalar.binary.value
    return model.model_validate(unpacked(msgpack.unpackb(packed)))


def test_every_plan_is_in_this_list():
    plans = {name for name, one in vars(launch_plans).items() if isinstance(one, LaunchPlan)}

    assert PRESETS.keys() == plans


@pytest.mark.slow
def test_a_plan_that_is_started_on_a_cluster_sends_its_own_preset(tmp_path):
    sent = started_remotely(tmp_path, "ring_lite", "--store", "s3://bucket/ring")

    assert presets.RING_LITE == settings_of(sent)
    assert "s3://bucket/ring" == sent["store"].scalar.primitive.string_value


@pytest.mark.slow
def test_a_release_team_names_its_base_model_and_its_release(tmp_path):
    sent = started_remotely(
        tmp_path, "single_node", "--base_model", "s3://bucket/base", "--release", "shop"
    )

    assert "s3://bucket/base" == sent["base_model"].scalar.primitive.string_value
    assert "shop" == sent["release"].scalar.primitive.string_value
    assert "s3://eachprompt/single_node" == sent["store"].scalar.primitive.string_value


@pytest.mark.slow
def test_a_night_is_started_on_another_inbox_and_model(tmp_path):
    sent = started_remotely(
        tmp_path, "nightly_retrain", "--inbox", "s3://bucket/new", "--model", "shop"
    )

    assert presets.NIGHTLY_SINGLE_NODE == settings_of(sent, RetrainSettings)
    assert "s3://bucket/new" == sent["inbox"].scalar.primitive.string_value
    assert "shop" == sent["model"].scalar.primitive.string_value


@pytest.mark.parametrize("name", PRESETS)
def test_a_plan_offers_its_own_preset_which_part_of_settings_keeps(name):
    kind, default = getattr(launch_plans, name).python_interface.inputs_with_defaults["settings"]

    assert PRESETS[name] == default
    part = json.dumps({"release": {"name": "shop"}})
    release = default.release.model_copy(update={"name": "shop"})
    assert default.model_copy(update={"release": release}) == kind.model_validate_json(part)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ([], "eachprompt-ring-lite 1000 /mnt/models/base in s3://bucket/large"),
        (["--store", "here"], "eachprompt-ring-lite 1000 /mnt/models/base in here"),
        (
            ["--settings", '{"rl_one": {"steps": 7}}'],
            "eachprompt-ring-lite 7 /mnt/models/base in s3://bucket/large",
        ),
    ],
)
def test_a_plan_that_is_started_here_runs_its_own_preset(tmp_path, monkeypatch, options, answer):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"probe_{abs(hash(tuple(options)))}"  # an import of its own for each case
    text = dedent(PROBE).replace('"large"', f'"{name}"')
    (tmp_path / f"{name}.py").write_text(text)

    done = CliRunner().invoke(main, ["run", f"{name}.py", "large", *options])

    assert 0 == done.exit_code, done.output
    assert answer == done.output.strip().splitlines()[-1]


def test_a_plan_for_gpus_does_not_run_on_a_machine_without_them(tmp_path):
    command = ["run", str(ROOT / "workflows" / "launch_plans.py"), "ring_lite"]

    done = CliRunner().invoke(main, [*command, "--store", str(tmp_path / "runs")])

    assert 0 != done.exit_code
    assert not (tmp_path / "runs").exists()
