"""The first task of every workflow refuses what no later stage could use."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tasks.errors import SettingsError
from tasks.stages.opening import open_store


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


CHECK_CLUSTER = """
from flytekit import LaunchPlan

from tasks.errors import SettingsError
from tasks.platform import resources
from tasks.stages.opening import check_settings, open_night
from workflows import launch_plans

for name, plan in vars(launch_plans).items():
    if not isinstance(plan, LaunchPlan):
        continue
    given = plan.saved_inputs
    resources.NODES = 32 if name in ("full_scale", "compassmax") else 1
    resources.PROCESSES = 1 if name == "cpu_smoke" else 8
    try:
        if "inbox" in given:
            inbox = {"settings": given["settings"], "from_inbox": "", "model": given["model"]}
            open_night.task_function(**inbox, store="STORE")
        else:
            checked = check_settings.task_function(
                **{one: value for one, value in given.items() if one != "store"}
            )
            print(name, checked == given["settings"])
    except SettingsError as error:
        print(name, "Nothing was released under that name" in str(error) or error)
"""


CHECK_LAPTOP = """
from data_schemas import presets
from tasks.stages.opening import check_settings

check_settings.task_function(settings=presets.SINGLE_NODE, sources="")
"""


@pytest.mark.skipif(find_spec("vllm") is not None, reason="an environment without the engines")
def test_the_pod_that_checks_a_plan_of_a_cluster_needs_no_engine_but_a_laptop_does(tmp_path):
    # A pod without a key signs nothing; it makes none.
    pod = {"FLYTE_INTERNAL_EXECUTION_ID": "run", "EACHPROMPT_SIGNING_KEY": ""}
    of_pod, of_laptop = (
        subprocess.run(
            [sys.executable, "-c", script.replace("STORE", str(tmp_path / "store"))],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"EACHPROMPT_PROCESSES": "8"} | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        for script, variables in ((CHECK_CLUSTER, pod), (CHECK_LAPTOP, {}))
    )

    # Each with the nodes and processes that the guide has it registered with.
    answers = [line for line in of_pod.stdout.splitlines() if not line.startswith("{")]
    assert 7 == len(answers), of_pod.stderr[-2000:]
    assert {"True"} == {answer.partition(" ")[2] for answer in answers}, answers
    assert "engines.rollout 'vllm' is not installed here" in of_laptop.stderr
