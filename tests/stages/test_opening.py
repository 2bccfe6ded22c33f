"""The first task of every workflow refuses what no later stage could use."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from flytekit import LaunchPlan

from data_schemas import presets
from tasks.algorithms.choices import complete
from tasks.errors import SettingsError
from tasks.platform import resources
from tasks.stages.opening import check_settings, open_night, open_store
from workflows import launch_plans


@pytest.mark.parametrize("uri", ["nonsense", "htp://mlflow.example", "sqlite:///relative.db"])
def test_a_tracking_uri_without_meaning_is_refused_before_any_work(tmp_path, monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    with pytest.raises(SettingsError, match="Correct MLFLOW_TRACKING_URI"):
        open_store.task_function(store=str(tmp_path / "store"), workflow="post_training")
    assert not (tmp_path / "store").exists()


CHECK = """
from data_schemas import presets
from tasks.stages.opening import check_settings

checked = check_settings.task_function(settings=presets.CPU_SMOKE, sources="")
print(checked == presets.CPU_SMOKE)
"""


@pytest.mark.slow
def test_the_smoke_test_of_a_cluster_passes_its_own_check_without_gpus():
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"EACHPROMPT_SMOKE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "True" == done.stdout.strip().rpartition("\n")[2], done.stderr[-2000:]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="an environment without the engines")
def test_the_pod_that_checks_a_plan_of_a_cluster_needs_no_engine_but_a_laptop_does(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(resources, "PROCESSES", 8)
    with pytest.raises(SettingsError, match=r"engines\.rollout 'vllm' is not installed here"):
        check_settings.task_function(settings=presets.SINGLE_NODE, sources="")

    # A pod without a key signs nothing; it makes none.
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")
    monkeypatch.setenv("EACHPROMPT_SIGNING_KEY", "")
    plans = {name: one for name, one in vars(launch_plans).items() if isinstance(one, LaunchPlan)}
    assert 7 == len(plans)
    for name, plan in plans.items():
        given = {one: value for one, value in plan.saved_inputs.items() if one != "store"}
        # Each with the nodes and processes that the guide has it registered with.
        monkeypatch.setattr(resources, "NODES", 32 if name in ("full_scale", "compassmax") else 1)
        monkeypatch.setattr(resources, "PROCESSES", 1 if name == "cpu_smoke" else 8)
        if "inbox" in given:
            night = {"settings": given["settings"], "from_inbox": "", "model": given["model"]}
            with pytest.raises(SettingsError, match=r"nothing was released as [^ ]+ in /"):
                open_night.task_function(**night, store=str(tmp_path / "store"))
        else:
            assert complete(given["settings"]) == check_settings.task_function(**given)
