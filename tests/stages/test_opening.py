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
from data_schemas import presets
from tasks.errors import SettingsError
from tasks.stages.opening import check_settings, open_night

try:
    nightly = presets.NIGHTLY_SINGLE_NODE
    open_night.task_function(settings=nightly, from_inbox="", model="", store="STORE")
except SettingsError as error:
    print("Nothing was released under that name" in str(error) or error)
for preset in (presets.SINGLE_NODE, presets.RING_LITE):
    print(check_settings.task_function(settings=preset, sources="") == preset)
"""


@pytest.mark.skipif(find_spec("vllm") is not None, reason="an environment without the engines")
def test_the_pod_that_checks_a_cluster_preset_needs_no_engine_but_a_laptop_does(tmp_path):
    cluster = os.environ | {"EACHPROMPT_PROCESSES": "8"}
    pod, laptop = (
        subprocess.run(
            [sys.executable, "-c", CHECK_CLUSTER.replace("STORE", str(tmp_path / "store"))],
            cwd=Path(__file__).parents[2],
            env=cluster | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        # A pod without a key signs nothing; it makes none.
        for variables in (
            {"FLYTE_INTERNAL_EXECUTION_ID": "run", "EACHPROMPT_SIGNING_KEY": ""},
            {},
        )
    )

    assert ["True"] * 3 == pod.stdout.split()[-3:], pod.stderr[-2000:]
    assert "engines.rollout 'vllm' is not installed here" in laptop.stdout
