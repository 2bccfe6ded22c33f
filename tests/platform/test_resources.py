"""Retries and cache keys; what reaches the cluster is asserted in test_package."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flytekit.exceptions.user import FlyteRecoverableException

from tasks.errors import DataError, EngineError, Preempted
from tasks.platform import resources


@resources.recoverable
def fail(error: Exception) -> str:
    """Raise what it is given."""
    raise error


@pytest.mark.parametrize("error", [EngineError("node lost"), Preempted("step 7 is safe")])
def test_an_error_of_the_machine_is_tried_again(error):
    with pytest.raises(FlyteRecoverableException, match=f"{type(error).__name__}: {error}"):
        fail(error)


def test_an_error_of_the_data_is_final():
    with pytest.raises(DataError, match="row 3"):
        fail(DataError("row 3"))


def test_flyte_still_sees_the_shells_own_signature():
    assert ["error"] == list(inspect.signature(fail).parameters)
    assert "fail" == fail.__name__


def test_only_what_looks_outside_is_never_served_from_the_cache():
    uncached = {name for name, stage in resources.STAGES.items() if not stage.cached}

    assert uncached == {
        "check_settings",
        "with_seed",
        "open_store",
        "ingest",
        "ingest_base",
        "agreement",
        "tabulate",
        "collect_comparisons",
        "release",
        "summary",
        "audit",
        "ledger",
        "replay",
        "mismatch",
        "fit_settings",
        "find_start",
        "watch",
        "leave",
        "weigh",
        "stop",
        "conclude",
        "retrain_summary",
    }


def test_the_cache_forgets_which_execution_asked():
    assert ("execution",) == resources.task_arguments("merge")["cache"].ignored_inputs


def test_preemptible_stages_have_retries_and_time_to_commit():
    for stage in resources.STAGES.values():
        assert not stage.interruptible or (stage.retries >= 3 and stage.grace_s > 0)


def imported(**environment: str) -> subprocess.CompletedProcess:
    """Import a file with stages of both kinds in an installation without the Elastic plugin."""
    hide = "import sys; sys.modules['flytekitplugins'] = None\n"
    hide += "import importlib.util as found, functools\nplain = found.find_spec\n"
    hide += "found.find_spec = lambda name: None if name == 'flytekitplugins' else plain(name)\n"
    return subprocess.run(
        [sys.executable, "-c", hide + "import tasks.evaluation.task"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"EACHPROMPT_PROCESSES": "2"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_several_processes_need_what_starts_them():
    words = " ".join(imported().stderr.split())

    assert "need the package flytekitplugins-kfpytorch" in words


def test_a_pod_of_another_stage_does_without():
    assert 0 == imported(FLYTE_INTERNAL_EXECUTION_ID="run").returncode


def test_a_number_of_processes_is_a_number():
    done = imported(EACHPROMPT_PROCESSES="two")

    assert "EACHPROMPT_PROCESSES is 'two'" in done.stderr
