"""What users see in MLflow: executions with their stages nested, described, comparable."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_schemas.artifacts import Context, DatasetRef, Execution, StoreRef
from data_schemas.events import ExecutionEnded, ExecutionStarted, StageFinished, StageStarted
from data_schemas.settings import MergeSettings
from tasks.errors import DataError
from tasks.provenance.lineage import execution_runs
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.descriptions import run_tags
from tasks.provenance.lineage.shipping import attach_report, begin, end
from tasks.provenance.lineage.stage import stage
from tests.provenance.lineage.small_chain import make_raw, release, run_all, train


@pytest.fixture
def client(store):
    return connect(store.tracking_uri)


def experiment(client) -> str:
    return client.get_experiment_by_name("eachprompt").experiment_id


def find(client, query: str) -> list:
    return client.search_runs([experiment(client)], query)


def parent(client, execution: Execution):
    (run,) = find(client, f"tags.`eachprompt.key` = '{execution.id}'")
    return run


def report(store: StoreRef, execution: Execution, text: str = "<p>ok</p>") -> str:
    page = Path(store.uri) / "reports" / f"{execution.id}.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(text)
    attach_report(Context(store, execution), str(page))
    return str(page)


@pytest.fixture
def execution() -> Execution:
    return Execution(id="exec-1", started=1000.0, workflow="post_training")


def test_stages_are_nested_in_one_run_per_execution(store, execution, client):
    begin(Context(store, execution))
    run_all(store, execution)
    second = execution.model_copy(update={"id": "exec-2", "started": 2000.0})
    make_raw(store, second, b"c,d\n")

    first = parent(client, execution)
    assert "exec-1 post_training" == first.info.run_name
    assert ("FINISHED", 1_000_000) == (first.info.status, first.info.start_time)
    nested = find(client, f"tags.`mlflow.parentRunId` = '{first.info.run_id}'")
    assert {"ingest", "sft/reasoning", "release"} == {run.info.run_name for run in nested}
    assert first.info.end_time == max(run.info.end_time for run in nested)
    (other,) = find(client, f"tags.`mlflow.parentRunId` = '{parent(client, second).info.run_id}'")
    assert "ingest" == other.info.run_name


def test_a_run_names_the_execution_that_made_what_came_from_the_cache(store, execution, client):
    raw = make_raw(store, execution)
    second = execution.model_copy(update={"id": "exec-2"})
    train(store, second, raw)
    train(store, execution, raw)
    made = {
        run.data.tags["eachprompt.execution"]: run.data.tags.get("from.demonstrations")
        for run in find(client, "attributes.run_name = 'sft/reasoning'")
    }

    assert {"exec-2": "exec-1", "exec-1": None} == made


def test_a_run_says_what_it_does_and_who_started_which_code(store, execution, client):
    model = train(store, execution, make_raw(store, execution))
    (run,) = find(client, "attributes.run_name = 'sft/reasoning'")
    tags = run.data.tags

    assert "Supervised fine-tuning." == tags["mlflow.note.content"].splitlines()[0]
    assert model.statement in tags["mlflow.note.content"]
    assert f"made model `{model.digest[:12]}`" in tags["mlflow.note.content"]
    assert ("workflows/post_training.py", "LOCAL") == (
        tags["mlflow.source.name"],
        tags["mlflow.source.type"],
    )
    assert tags["mlflow.user"]
    shared = {"mlflow.user", "mlflow.source.name", "mlflow.source.type", "eachprompt.store"}
    above = parent(client, execution).data.tags
    assert {name: tags[name] for name in shared} == {name: above[name] for name in shared}


@pytest.mark.parametrize(
    ("variables", "node"),
    [
        ({"FLYTE_EXECUTION_URL": "https://f/executions/x7/nodeId/n3-0-dn2-1/nodes"}, "n3-0-dn2"),
        ({"FLYTE_INTERNAL_EXECUTION_ID": "x7", "HOSTNAME": "x7-n4-0"}, "n4"),
        ({"FLYTE_INTERNAL_EXECUTION_ID": "x7", "HOSTNAME": "fabc-0"}, ""),  # too long for a name
        ({"HOSTNAME": "laptop-4-0"}, ""),
    ],
)
def test_a_run_names_the_node_of_flyte_that_ran_it(monkeypatch, execution, variables, node):
    for name in ("FLYTE_EXECUTION_URL", "FLYTE_INTERNAL_EXECUTION_ID", "HOSTNAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert node == run_tags(execution, "curate", ["c"], "store").get("flyte.node", "")


def test_the_user_of_a_run_is_who_started_it_in_flyte(monkeypatch, execution):
    monkeypatch.setenv("EACHPROMPT_STARTED_BY", "ada")

    assert "ada" == run_tags(execution, "curate", ["c"], "store")["mlflow.user"]


def test_a_failed_stage_fails_its_execution_until_it_is_tried_again(store, execution, client):
    with (
        pytest.raises(DataError),
        stage("ingest", MergeSettings(), Context(store, execution), "code-1"),
    ):
        raise DataError("no rows")
    (run,) = find(client, "attributes.run_name = 'ingest'")
    assert "It failed:\n\n    DataError: no rows" in run.data.tags["mlflow.note.content"]
    assert "FAILED" == parent(client, execution).info.status

    make_raw(store, execution)
    assert "FINISHED" == parent(client, execution).info.status


def test_an_execution_is_running_while_one_of_its_stages_is(store, execution, client):
    with stage("curate", MergeSettings(), Context(store, execution), "c"):
        make_raw(store, execution)
        assert "RUNNING" == parent(client, execution).info.status
    assert "FINISHED" == parent(client, execution).info.status


@pytest.fixture
def evaluation(execution) -> Execution:
    """An execution that is over when two tasks have ended."""
    return execution.model_copy(update={"workflow": "evaluate", "last": ("export", "summary")})


def test_between_two_stages_an_execution_is_running(store, evaluation, client):
    make_raw(store, evaluation)

    run = parent(client, evaluation)
    assert "RUNNING" == run.info.status
    assert "export,summary" == run.data.tags["eachprompt.last"]


def test_an_execution_is_finished_by_its_last_task_alone(store, evaluation, client):
    context = Context(store, evaluation)
    make_raw(store, evaluation)
    end(context, "curation_page")  # the end of another workflow
    end(context, "summary")
    assert "RUNNING" == parent(client, evaluation).info.status

    end(context, "export")
    assert "FINISHED" == parent(client, evaluation).info.status


def test_the_end_may_arrive_before_what_came_before_it(store, evaluation, client):
    tags = {"eachprompt.execution": "exec-1", "eachprompt.last": "summary"}
    catalogue = Catalogue(store.tracking_uri)
    catalogue.apply("exec-1", [ExecutionStarted(tags=tags, time=1.0)])
    catalogue.apply("exec-1", [ExecutionEnded(message="", task="summary", time=9.0)])
    ingest = StageStarted(stage="ingest", params={}, tags=tags, time=2.0)
    catalogue.apply("exec-1.ingest", [ingest, StageFinished(status="FINISHED", time=3.0)])

    run = parent(client, evaluation)
    assert ("FINISHED", 9000) == (run.info.status, run.info.end_time)


def test_a_failed_execution_stays_failed_until_one_of_its_stages_begins_again(
    store, evaluation, client
):
    with (
        pytest.raises(DataError),
        stage("ingest", MergeSettings(), Context(store, evaluation), "code-1"),
    ):
        raise DataError("no rows")
    assert "FAILED" == parent(client, evaluation).info.status

    make_raw(store, evaluation)
    assert "RUNNING" == parent(client, evaluation).info.status


class Dying:
    """A client of a process that dies after so many writes."""

    def __init__(self, client, writes: int) -> None:
        self._client, self._left = client, writes

    def __getattr__(self, name: str):
        def write(*arguments: object, **named: object):
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
            return getattr(self._client, name)(*arguments, **named)

        return write if name in ("set_tag", "update_run") else getattr(self._client, name)


@pytest.mark.parametrize(
    ("writes", "status", "name"),
    [(0, "FAILED", "a/b/first"), (1, "FAILED", "a/b/second"), (2, "RUNNING", "a/b/second")],
)
def test_a_recovery_whose_pod_dies_as_it_begins_has_done_nothing_or_has_its_own_name(
    store, execution, client, writes, status, name
):
    begin(Context(store, execution))
    run = parent(client, execution).info.run_id
    client.set_tag(run, "flyte.execution", "a/b/first")
    execution_runs.ExecutionRuns(client, experiment(client)).close(run, "FAILED", "lost")

    dying: Any = Dying(client, writes)
    with suppress(KeyboardInterrupt):
        recovered = {"flyte.execution": "a/b/second"}
        execution_runs.ExecutionRuns(dying, experiment(client)).resume(run, recovered, 2**42)

    found = parent(client, execution)
    assert (status, name) == (found.info.status, found.data.tags["flyte.execution"])


def test_the_experiment_opens_in_the_view_for_training(store, execution, client):
    make_raw(store, execution)
    tags = client.get_experiment(experiment(client)).tags

    assert "custom_model_development" == tags["mlflow.experimentKind"]
    client.set_experiment_tag(experiment(client), "mlflow.experimentKind", "finetuning")
    make_raw(store, execution.model_copy(update={"id": "exec-2"}))
    chosen = client.get_experiment(experiment(client)).tags["mlflow.experimentKind"]
    assert "finetuning" == chosen  # what the user chose stays


def test_executions_have_the_same_metrics_at_the_same_steps(store, execution, client):
    for number, payload in enumerate([b"a,b\n", b"c,d\n"]):
        run_all(store, execution.model_copy(update={"id": f"exec-{number}"}), payload)

    def points(run) -> list[tuple[str, int]]:
        return sorted(
            (name, point.step)
            for name in run.data.metrics
            for point in client.get_metric_history(run.info.run_id, name)
        )

    for name in ("sft/reasoning", "release"):
        one, two = find(client, f"attributes.run_name = '{name}'")
        assert points(one) == points(two)
        assert points(one)


def test_facts_about_a_model_are_metrics_of_the_model(store, execution, client):
    model = train(store, execution, make_raw(store, execution))
    with stage("evaluate/sft", MergeSettings(), Context(store, execution), "c") as record:
        record.read("model", model)
        record.facts({"accuracy/all": 0.25})
    (found,) = client.search_logged_models([experiment(client)])

    shown = {metric.key: metric.value for metric in found.metrics}
    assert {"epochs": 3.0, "entropy_nats": 0.4, "accuracy/all": 0.25} == shown


def test_the_run_of_an_execution_shows_what_it_released_with_card_and_report(
    store, execution, client
):
    run_all(store, execution)
    report(store, execution)
    run = parent(client, execution)

    assert 1.0 == run.data.metrics["released"]
    assert "models:/eachprompt-tiny/1" == run.data.tags["model"]
    assert (
        "[eachprompt-tiny version 1](#/models/eachprompt-tiny/versions/1), released."
        in run.data.tags["mlflow.note.content"]
    )
    names = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {"README.md", "report.html"} == names
    (stage_run,) = find(client, "attributes.run_name = 'release'")
    assert ["README.md"] == [file.path for file in client.list_artifacts(stage_run.info.run_id)]


def test_a_file_that_mlflow_cannot_take_is_named_by_a_tag(store, execution, client, monkeypatch):
    monkeypatch.setattr(execution_runs, "MAX_ATTACHED_BYTES", 3)
    page = report(store, execution)
    run = parent(client, execution)

    assert page == run.data.tags["file.report.html"]
    assert [] == client.list_artifacts(run.info.run_id)


@pytest.mark.slow
def test_a_version_links_to_card_report_and_execution_and_has_scores(store, execution, client):
    model = train(store, execution, make_raw(store, execution))
    release(store, execution, model)
    (version,) = client.search_model_versions("name = 'eachprompt-tiny'")
    tags = version.tags

    assert "exec-1" == tags["eachprompt.execution"]
    assert f"{store.uri}/reports/exec-1.html" == tags["report"]
    assert tags["card"].endswith("/README.md")
    assert ("0.2500", "0.7500") == (tags["accuracy/all"], tags["accuracy/domain:maths"])
    assert "accuracy/source:gsm8k" not in tags


def test_runs_are_found_by_the_source_of_their_rows(store, execution, client):
    with stage("curate", MergeSettings(), Context(store, execution), "c") as record:
        with record.output("curated") as out:
            table = pa.table({"source": ["gsm8k", "mbpp", "gsm8k"], "id": ["a", "b", "c"]})
            pq.write_table(table, out / "problems.parquet")
        curated = record.ref("curated", DatasetRef)
    with stage("rl/one", MergeSettings(), Context(store, execution), "c") as record:
        record.read("curated", curated)
        with record.output("report") as out:
            (out / "steps.jsonl").write_text("{}")
    make_raw(store, execution)

    found = find(client, "tags.row_source = 'gsm8k,mbpp'")
    assert {"curate", "rl/one"} == {run.info.run_name for run in found}
    assert 2 == len(find(client, "tags.row_source LIKE '%mbpp%'"))


def test_an_execution_that_ends_without_a_stage_is_finished_and_says_why(store, execution, client):
    execution = execution.model_copy(update={"last": ("night_page",)})
    context = Context(store, execution)
    begin(context)
    assert "RUNNING" == parent(client, execution).info.status

    for _ in range(2):  # its task may be tried again
        end(context, "night_page", "Not retrained: no new file.")

    run = parent(client, execution)
    assert "FINISHED" == run.info.status
    assert 1 == run.data.tags["mlflow.note.content"].count("Not retrained: no new file.")
