"""Arguments of tasks, and stages of several processes; test_package has what is registered."""

import sys

import pytest
from flytekit import task, workflow
from flytekit.core.python_function_task import PythonFunctionTask

from tasks.errors import SettingsError
from tasks.platform import shell
from tasks.platform.shell import either, subworkflow, task_arguments


def evaluate(name: str) -> str:
    return name


@pytest.fixture
def without_plugin(monkeypatch):
    """Stages of two processes in an installation without the Elastic plugin."""
    monkeypatch.setattr(shell, "PROCESSES", 2)
    monkeypatch.setitem(sys.modules, "flytekitplugins", None)


@task
def answered(of: bool) -> bool:
    return of


@task
def ran(name: str, after: str) -> str:
    return f"{after} {name}".strip()


@subworkflow
def inside(of: bool) -> str:
    first = either(
        "first",
        answered(of=of),
        lambda: ran(name="yes", after=""),
        lambda: ran(name="no", after=""),
    )
    second = either(
        "second",
        answered(of=of),
        lambda: ran(name="yes", after=first),
        lambda: ran(name="no", after=first),
    )
    return ran(name="end", after=second)


@workflow
def outside(goes_in: bool, of: bool) -> str:
    return either(
        "outside",
        answered(of=goes_in),
        lambda: inside(of=of),
        lambda: ran(name="out", after=""),
    )


@pytest.mark.parametrize(
    ("goes_in", "of", "expected"),
    [
        (True, True, "yes yes end"),
        (True, False, "no no end"),
        (False, True, "out"),
        (False, False, "out"),
    ],
)
def test_a_side_of_a_branch_may_have_branches_of_its_own(goes_in, of, expected):
    assert expected == outside(goes_in=goes_in, of=of)


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
