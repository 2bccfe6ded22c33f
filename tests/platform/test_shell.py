"""Arguments of tasks, and stages of several processes; test_package has what is registered."""

import sys

import pytest
from flytekit import task, workflow
from flytekit.core.python_function_task import PythonFunctionTask

from data_schemas.artifacts import Context, Execution, StoreRef
from tasks.errors import SettingsError
from tasks.platform import shell
from tasks.platform.literals import KeyedStore
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


@shell.shell("open_store")
def opened(workflow: str) -> Context:
    return Context(
        StoreRef(uri=workflow, id="i", tracking_uri="t"), Execution(id="first", started=0.0)
    )


@shell.shell("has_epochs")
def place(word: str, context: Context) -> str:
    """A cached stage."""
    return f"{word} in {context.store.uri} by {context.execution.id}"


@subworkflow
def handing_on(word: str, context: Context) -> str:
    return place(word=word, context=context)


@workflow
def at_work(word: str) -> str:
    return handing_on(word=word, context=opened(workflow="shop"))


def test_a_context_goes_through_workflows_as_two_inputs_of_flyte():
    assert "rows in shop by first" == at_work(word="rows")
    for entity in (place, handing_on):
        assert {"word", "store", "execution"} == set(entity.interface.inputs)
    assert {"store": KeyedStore, "execution": Execution} == opened.python_interface.outputs


def test_the_same_stage_in_another_execution_is_found_in_the_cache(tmp_path):
    store, other = (StoreRef(uri="s", id=one, tracking_uri="t") for one in ("one", "two"))
    contexts = [
        Context(where, Execution(id=name, started=0.0))
        for where, name in ((store, "first"), (store, "second"), (other, "third"))
    ]

    word = str(tmp_path)  # of this run of the test: Flyte's cache outlives it
    results = [place(word=word, context=one) for one in contexts]
    by = ["first", "first", "third"]

    assert [f"{word} in s by {name}" for name in by] == results


@pytest.mark.usefixtures("without_plugin")
def test_several_processes_need_what_starts_them():
    with pytest.raises(SettingsError, match="need the package flytekitplugins-kfpytorch"):
        shell.shell("evaluate")(evaluate)


@pytest.mark.usefixtures("without_plugin")
def test_a_pod_of_another_stage_does_without(monkeypatch):
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")

    assert PythonFunctionTask is type(shell.shell("evaluate")(evaluate))
