"""The first task of every workflow refuses what no later stage could use."""

import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from flytekit import LaunchPlan

from data_schemas import presets
from data_schemas.artifacts import Execution, StoreRef
from tasks.algorithms.choices import complete
from tasks.errors import SettingsError
from tasks.platform import resources
from tasks.platform.local_execution import local_execution
from tasks.provenance.lineage.closing import close_ended, lease_of
from tasks.provenance.lineage.connection import connect
from tasks.stages.opening import check_settings, end_execution, open_night, open_store
from tasks.store.interface import store_at
from tests.processes import run_process
from tests.provenance.lineage import small_chain
from workflows import launch_plans


@pytest.mark.parametrize("uri", ["nonsense", "htp://mlflow.example", "sqlite:///relative.db"])
def test_a_tracking_uri_without_meaning_is_refused_before_any_work(tmp_path, monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    with pytest.raises(SettingsError, match="Correct MLFLOW_TRACKING_URI"):
        open_store.task_function(store=str(tmp_path / "store"), workflow="post_training")
    assert not (tmp_path / "store").exists()


CHECK = """
from data_schemas import presets
from tasks.algorithms.choices import complete
from tasks.stages.opening import check_settings

checked = check_settings.task_function(settings=presets.CPU_SMOKE, sources="")
print(checked == complete(presets.CPU_SMOKE))
"""


@pytest.mark.slow
def test_the_smoke_test_of_a_cluster_passes_its_own_check_without_gpus():
    done = run_process(
        [sys.executable, "-c", CHECK],
        cwd=Path(__file__).parents[2],
        variables={"EACHPROMPT_SMOKE": "1"},
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
        elif name == "cpu_smoke":
            assert complete(given["settings"]) == check_settings.task_function(**given)
        else:  # its volumes are not mounted here
            place = r"curation\.sources\[0\]\.path: /mnt/data/\w+ is no|base_model: /mnt/models/"
            with pytest.raises(SettingsError, match=place):
                check_settings.task_function(**given)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"sources": "gsm8k=s3://bucket/rows/none"}, r"sources\[0\]\.path: .*/none has no file"),
        ({"sources": "gsm8k=s3://bucket/rows/b.jsonl"}, r"there is no s3://bucket/rows/b\.jsonl"),
        ({"sources": "gsm8k=s3://elsewhere/rows"}, r"sources\[0\]\.path: .*NoSuchBucket"),
        ({"sources": "gsm8k=/mnt/none"}, r"sources\[0\]\.path: /mnt/none is no folder or file"),
        ({"base_model": "s3://bucket/rows"}, r"base_model: s3://bucket/rows has no config\.json"),
        ({"base_model": "/mnt/none"}, r"base_model: /mnt/none is not a folder"),
        ({"base_model": "models:/shop@released"}, r"base_model: nothing was released as shop in"),
        ({"model": "/mnt/a,b=/mnt/b"}, r"--model: /mnt/a is not a folder"),
        ({"model": "http://host/v1#a,s3://bucket/rows"}, r"--model: s3://bucket/rows has no conf"),
        ({"model": "models:/shop@released"}, r"--model: nothing was released as shop in"),
        ({"teacher": "s3://elsewhere/x"}, r"--teacher: .*NoSuchBucket"),
        ({"teacher": "/mnt/none"}, r"--teacher: /mnt/none is not a folder"),
    ],
)
def test_the_first_pod_of_a_cluster_looks_for_sources_and_models(
    bucket, tmp_path, monkeypatch, changes, problem
):
    bucket.put_object(Bucket="bucket", Key="rows/a.jsonl", Body=b"{}")
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    monkeypatch.setenv("EACHPROMPT_SIGNING_KEY", "")
    given = {"settings": presets.CPU_SMOKE, "sources": "gsm8k=s3://bucket/rows"}

    with pytest.raises(SettingsError, match=problem):
        check_settings.task_function(**given | {"store": str(tmp_path)} | changes)


def test_the_first_pod_takes_models_that_were_released_in_the_store(folder, monkeypatch):
    tracking = f"sqlite:///{folder}/mlflow.db"
    store = StoreRef(uri=folder, id=store_at(folder).open(), tracking_uri=tracking)
    small_chain.run_all(store, Execution(id="first", started=1.0))
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")
    registered = ("models:/eachprompt-tiny@released", "models:/eachprompt-tiny/1")

    def checked(**given: str):
        where = {"sources": "", "store": folder} | given
        return check_settings.task_function(settings=presets.CPU_SMOKE, **where)

    assert list(registered) == [checked(base_model=one).base_model for one in registered]
    for one in registered:
        assert complete(presets.CPU_SMOKE) == checked(model=one, teacher=one)
    with pytest.raises(SettingsError, match=r"base_model: .*eachprompt-tiny/2"):
        checked(base_model="models:/eachprompt-tiny/2")


@pytest.fixture
def folder(tmp_path, migrated, monkeypatch):
    """A store with an MLflow of its own, of an execution on this machine."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("FLYTE_INTERNAL_EXECUTION_ID", raising=False)
    (tmp_path / "store").mkdir()
    shutil.copy(migrated, tmp_path / "store" / "mlflow.db")
    return str(tmp_path / "store")


def opened(folder, workflow="curate", last="curation_page"):
    """What the first task of a workflow returns."""
    return open_store.task_function(store=folder, workflow=workflow, last=last)


def run_of(context):
    """The run of an execution in MLflow."""
    client = connect(context.store.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    (run,) = client.search_runs([experiment], f"tags.`eachprompt.key` = '{context.execution.id}'")
    return run


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), "KILLED"), (OSError("no disk"), "FAILED")]
)
def test_a_run_on_this_machine_that_is_stopped_between_two_stages_says_so(folder, error, status):
    contexts = []

    def end_between_two_stages():
        with local_execution():
            contexts.append(opened(folder))
            raise error

    with pytest.raises(type(error)):
        end_between_two_stages()
    run = run_of(contexts[0])
    assert status == run.info.status
    assert f"{type(error).__name__}: {error}" == run.data.tags["eachprompt.error"]


def test_a_workflow_that_names_no_last_task_is_finished_with_its_process(folder):
    with local_execution():
        context = opened(folder, "judge", "")
        assert "RUNNING" == run_of(context).info.status

    assert "FINISHED" == run_of(context).info.status


def test_an_execution_whose_last_stages_may_be_cached_is_over_with_a_task_of_its_own(folder):
    context = opened(folder, "judge", "end_execution")
    assert "RUNNING" == run_of(context).info.status

    end_execution.task_function(
        store=context.store, execution=context.execution, results=["runs/objects/report"]
    )

    assert "FINISHED" == run_of(context).info.status


HOLDS_A_LEASE = """
import sys
from tasks.store.lease import lease

with lease(sys.argv[1], "exec"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_whoever_opens_next_closes_the_run_of_a_process_that_was_killed_and_of_no_other(folder):
    context = opened(folder)  # the lease is another process's
    place = lease_of(context.store, context.execution.id)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_LEASE, place],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert b"held\n" == process.stdout.readline()

    opened(folder)
    assert "RUNNING" == run_of(context).info.status

    process.send_signal(signal.SIGKILL)
    process.communicate()
    opened(folder)
    run = run_of(context)
    assert ("KILLED", "its process was killed") == (
        run.info.status,
        run.data.tags["eachprompt.error"],
    )


def test_an_execution_of_another_machine_is_left_as_it_is(folder):
    context = opened(folder)

    assert [] == close_ended(context.store, "", lambda _: None)
    assert "RUNNING" == run_of(context).info.status


def test_an_mlflow_that_does_not_answer_stops_no_opening(folder):
    context = opened(folder)
    nowhere = context.store.model_copy(update={"tracking_uri": "http://127.0.0.1:1"})

    assert [] == close_ended(nowhere, "", lambda _: None)
