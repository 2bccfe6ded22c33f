"""Arguments of tasks, and stages of several processes; test_package has what is registered."""

import sys

import pytest
from flytekit.core.python_function_task import PythonFunctionTask

from tasks.errors import SettingsError
from tasks.platform import shell
from tasks.platform.shell import task_arguments


def evaluate(name: str) -> str:
    return name


@pytest.fixture
def without_plugin(monkeypatch):
    """Stages of two processes in an installation without the Elastic plugin."""
    monkeypatch.setattr(shell, "PROCESSES", 2)
    monkeypatch.setitem(sys.modules, "flytekitplugins", None)


def test_the_cache_forgets_which_execution_asked():
    assert ("execution",) == task_arguments("merge")["cache"].ignored_inputs


@pytest.mark.usefixtures("without_plugin")
def test_several_processes_need_what_starts_them():
    with pytest.raises(SettingsError, match="need the package flytekitplugins-kfpytorch"):
        shell.shell("evaluate")(evaluate)


@pytest.mark.usefixtures("without_plugin")
def test_a_pod_of_another_stage_does_without(monkeypatch):
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")

    assert PythonFunctionTask is type(shell.shell("evaluate")(evaluate))
