"""A stage on record, from its inputs to MLflow, with MLflow there and away."""

import errno
import json
import logging
import os
import shutil
from pathlib import Path

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, StoreRef
from data_schemas.settings import MergeSettings, SFTSettings
from data_schemas.statements import ExecutionRecord
from tasks.errors import DataError, EngineError, TamperError
from tasks.platform.source import commit
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.registry import KEY
from tasks.provenance.lineage.shipping import sync, workplace
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.provenance.lineage.signatures.working import unseal
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_executions, load_statement
from tasks.store.interface import store_at
from tasks.store.location import identity
from tests.provenance.lineage.small_chain import make_raw, train


def runs(store: StoreRef) -> dict:
    client = connect(store.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt")
    found = client.search_runs([experiment.experiment_id], "tags.`eachprompt.stage` LIKE '%'")
    return {run.info.run_name: client.get_run(run.info.run_id) for run in found}


def test_the_statement_says_what_was_read_and_made(store, execution):
    raw = make_raw(store, execution)
    model = train(store, execution, raw)
    statement = load_statement(store.uri, model.statement)

    assert "sft/reasoning" == statement.stage
    assert ("code-2", "code-3") == statement.code
    assert SFTSettings() == SFTSettings.model_validate_json(statement.settings)
    assert [("demonstrations", raw.uri, raw.digest, raw.statement)] == [
        (item.role, item.uri, item.digest, item.statement) for item in statement.inputs
    ]
    assert [("model", model.uri, model.digest)] == [
        (item.role, item.uri, item.digest) for item in statement.outputs
    ]
    assert {"epochs": 3, "entropy_nats": 0.4, "chosen": "epoch-2"} == statement.facts
    assert b"a,b\n" * 10 == (Path(model.uri) / "model.safetensors").read_bytes()


def test_the_same_work_in_another_execution_gives_the_same_references(store, execution):
    first = train(store, execution, make_raw(store, execution))
    later = execution.model_copy(update={"id": "exec-2"})

    assert first == train(store, later, make_raw(store, later))


def test_the_signed_attestation_of_a_pod_says_what_flyte_ran(store, execution, monkeypatch):
    told = {
        "EXECUTION_PROJECT": "shop",
        "EXECUTION_DOMAIN": "production",
        "EXECUTION_ID": "f1",
        "EXECUTION_LAUNCHPLAN": "shop:production:nightly",
        "TASK_VERSION": "0.2.0",
        "IMAGE": "registry/cpu@sha256:1",
    }
    assert find_signer()  # in a pod the key has to be there
    for name, value in told.items():
        monkeypatch.setenv(f"FLYTE_INTERNAL_{name}", value)
    make_raw(store, execution)
    name = f"{execution.id}/ingest.json"
    place = store_at(f"{store.uri}/attestations/{name}")
    signed_name = f"{identity(store.uri)}/{name}"
    payload = unseal("execution", signed_name, place.read_bytes(), place.uri)
    record = ExecutionRecord.model_validate_json(payload)

    assert {
        "flyte.execution": "shop/production/f1",
        "flyte.launch_plan": "shop/production/nightly",
        "flyte.version": "0.2.0",
        "mlflow.docker.image.uri": "registry/cpu@sha256:1",
        "mlflow.source.git.commit": commit(),
    }.items() <= record.tags.items()
    assert load_executions(store.uri, execution.id) == [record]


def test_the_execution_record_has_time_rows_and_run(store, execution):
    train(store, execution, make_raw(store, execution))
    ingest, sft = load_executions(store.uri, "exec-1")

    assert ("ingest", 0, 1) == (ingest.stage, ingest.rows_in, ingest.rows_out)
    assert ("sft/reasoning", 7, 5) == (sft.stage, sft.rows_in, sft.rows_out)
    assert 0.0 < sft.seconds < 60.0
    assert 0.0 <= sft.cpu_seconds < 60.0
    assert runs(store)["sft/reasoning"].info.run_id == sft.run_id


@pytest.mark.slow
def test_mlflow_links_runs_by_dataset_and_model(store, execution):
    raw = make_raw(store, execution)
    model = train(store, execution, raw)
    with stage("merge", MergeSettings(), Context(store, execution), "code-4") as record:
        record.read("parent", model)
    found = runs(store)
    client = connect(store.tracking_uri)
    sft = found["sft/reasoning"]

    (data,) = sft.inputs.dataset_inputs
    assert ("demonstrations", raw.digest[:36]) == (data.dataset.name, data.dataset.digest)
    assert {
        "mlflow.data.context": "input/demonstrations",
        "sha256": raw.digest,
        "statement": raw.statement,
        "uri": raw.uri,
    } == {tag.key: tag.value for tag in data.tags}
    (made,) = sft.outputs.model_outputs
    (read,) = found["merge"].inputs.model_inputs
    assert made.model_id == read.model_id
    tags = client.get_logged_model(made.model_id).tags
    assert (model.digest, model.uri, model.statement) == (
        tags["sha256"],
        tags["uri"],
        tags["statement"],
    )
    assert [raw.digest] == json.loads(tags["parents"])
    (out,) = found["ingest"].inputs.dataset_inputs
    assert "output/raw" == {tag.key: tag.value for tag in out.tags}["mlflow.data.context"]


def test_mlflow_shows_settings_facts_curves_and_digests(store, execution):
    model = train(store, execution, make_raw(store, execution))
    run = runs(store)["sft/reasoning"]
    client = connect(store.tracking_uri)

    assert "FINISHED" == run.info.status
    assert "3" == run.data.params["epochs"]
    assert 3.0 == run.data.metrics["epochs"]
    assert "epoch-2" == run.data.tags["fact.chosen"]
    assert "code-2,code-3" == run.data.tags["eachprompt.code"]
    assert model.statement == run.data.tags["eachprompt.statement"]
    assert store.id == run.data.tags["eachprompt.store"]
    assert [1.0, 0.5, 1 / 3] == [
        point.value for point in client.get_metric_history(run.info.run_id, "loss/nats")
    ]
    assert 0.5 == run.data.metrics["pass_at_1"]


def test_an_error_marks_the_run_failed_and_passes_through(store, execution):
    with (
        pytest.raises(DataError, match="no rows"),
        stage("curate", MergeSettings(), Context(store, execution), "c") as record,
        record.output("curated"),
    ):
        raise DataError("no rows")
    run = runs(store)["curate"]

    assert "FAILED" == run.info.status
    assert "DataError: no rows" == run.data.tags["eachprompt.error"]
    assert [] == load_executions(store.uri, "exec-1")
    assert not (Path(store.uri) / "statements").exists()


@pytest.mark.parametrize(
    ("code", "problem"),
    [(errno.ENOSPC, r"is full \(\d+ MiB left\)"), (errno.EROFS, "is read-only")],
)
def test_a_stage_whose_disk_is_full_or_read_only_says_which_and_what_to_do(
    store, execution, code, problem
):
    """What a library raises names no folder."""
    with (
        pytest.raises(EngineError, match=rf"the disk of .* {problem}: .*(Free|Mount)"),
        stage("rl/one", MergeSettings(), Context(store, execution), "c"),
    ):
        raise OSError(code, os.strerror(code))


def test_a_retry_of_a_failed_stage_continues_its_run(store, execution):
    with (
        pytest.raises(ZeroDivisionError),
        stage("ingest", MergeSettings(), Context(store, execution), "code-1") as record,
    ):
        record.metrics(1, {"a": 1 / 0})
    make_raw(store, execution)

    assert ["FINISHED"] == [run.info.status for run in runs(store).values()]


def test_an_unreachable_mlflow_stops_nothing_and_gets_everything_once_later(
    store, execution, caplog
):
    away = store.model_copy(update={"tracking_uri": "http://127.0.0.1:9"})
    with caplog.at_level(logging.WARNING):
        model = train(away, execution, make_raw(away, execution), steps=40)
    spool = Path(store.uri) / "spool"
    (waiting,) = spool.glob("exec-1.sft.reasoning.*.jsonl")
    steps = [json.loads(line) for line in waiting.read_text().splitlines()]

    assert "MLflow does not answer" in caplog.text
    assert list(range(1, 41)) == [event["step"] for event in steps if event["kind"] == "metrics"]
    assert ["", ""] == [record.run_id for record in load_executions(store.uri, "exec-1")]
    assert load_statement(store.uri, model.statement)

    assert sync(store)
    assert sync(store)
    client = connect(store.tracking_uri)
    run = runs(store)["sft/reasoning"]
    assert list(range(1, 41)) == [
        point.step for point in client.get_metric_history(run.info.run_id, "loss/nats")
    ]
    assert {"FINISHED"} == {run.info.status for run in runs(store).values()}
    assert [] == list(spool.glob("*.jsonl"))


@pytest.mark.slow
def test_events_sent_twice_are_recorded_once(store, execution):
    train(store, execution, make_raw(store, execution))
    spool = Path(store.uri) / "spool"
    for filed in list((spool / "shipped").iterdir()):
        filed.rename(spool / filed.name)
    sync(store)
    client = connect(store.tracking_uri)
    run = runs(store)["sft/reasoning"]

    assert 2 == len(runs(store))
    assert 3 == len(client.get_metric_history(run.info.run_id, "loss/nats"))
    assert 1 == len(run.outputs.model_outputs)
    assert 1 == len(run.inputs.dataset_inputs)


def test_a_reference_closes_the_statement(store, execution):
    with stage("ingest", MergeSettings(), Context(store, execution), "c") as record:
        with record.output("raw") as out:
            (out / "a").write_text("x")
        raw = record.ref("raw", DatasetRef)
        record.metrics(1, {"late": 1.0})
        with pytest.raises(AssertionError, match="cannot read 'more' any more"):
            record.read("more", raw)
        with pytest.raises(AssertionError, match="cannot write 'more' any more"):
            record.output("more").__enter__()
        with pytest.raises(AssertionError, match="cannot add facts any more"):
            record.facts({"a": 1})
        with pytest.raises(AssertionError, match="has no output 'other'"):
            record.ref("other", DatasetRef)

        assert raw == record.ref("raw", DatasetRef)


def test_a_damaged_input_stops_the_stage_before_its_work(store, execution):
    raw = make_raw(store, execution)
    (Path(raw.uri) / "rows.csv").write_bytes(b"a,c\n")

    with pytest.raises(TamperError, match=r"rows\.csv"):
        train(store, execution, raw)


def test_a_fact_that_is_not_finite_is_refused(store, execution):
    with (
        pytest.raises(DataError, match="fact 'loss' of sft is nan"),
        stage("sft", MergeSettings(), Context(store, execution), "c") as record,
    ):
        record.facts({"loss": float("nan")})


def test_a_source_from_outside_is_recorded_by_content(store, execution, tmp_path):
    base = tmp_path / "base model"
    base.mkdir()
    (base / "config.json").write_text("{}")
    with stage("foundation", MergeSettings(), Context(store, execution), "c") as record:
        assert base == record.source("shipped", base)
        with record.output("base") as out:
            (out / "config.json").write_text("{}")
        ref = record.ref("base", CheckpointRef)
    (item,) = load_statement(store.uri, ref.statement).inputs

    assert "" == item.statement
    assert base.as_uri() == item.uri
    assert ref.digest == item.digest  # a folder counts as the object of the same files


def test_a_source_that_is_not_there_is_named(store, execution, tmp_path):
    with (
        pytest.raises(DataError, match="nowhere is gone"),
        stage("foundation", MergeSettings(), Context(store, execution), "c") as record,
    ):
        record.source("shipped", tmp_path / "nowhere")


@pytest.fixture
def s3_store(monkeypatch, store, bucket, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    uri = "s3://bucket/store"
    return StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri=store.tracking_uri)


@pytest.mark.slow
def test_a_store_in_s3_carries_objects_statements_and_the_unsent_spool(s3_store, execution):
    away = s3_store.model_copy(update={"tracking_uri": "http://127.0.0.1:9"})
    raw = make_raw(away, execution)
    shutil.rmtree(workplace(s3_store))  # the next stage runs on another machine
    model = train(s3_store, execution, raw)
    shutil.rmtree(workplace(s3_store))

    assert raw.uri.startswith("s3://bucket/store/objects/")
    assert raw.statement == load_statement(s3_store.uri, model.statement).inputs[0].statement
    assert {"ingest", "sft/reasoning"} == runs(s3_store).keys()
    kept = sorted(store_at(f"{s3_store.uri}/spool").list_files())
    assert ["shipped/exec-1.ingest", "shipped/exec-1.sft.reasoning", "sync.lease"] == [
        name.rsplit(".", 2)[0] if name.endswith(".jsonl") else name for name in kept
    ]
    assert 2 == len(load_executions(s3_store.uri, "exec-1"))
    assert "exec-1.ingest" == runs(s3_store)["ingest"].data.tags[KEY]


def test_a_stage_and_its_curves_reach_opentelemetry(tmp_path, migrated, execution, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    spans, points = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([points]))
    shutil.copy(migrated, tmp_path / "mlflow.db")
    store = StoreRef(
        uri=str(tmp_path),
        id=store_at(str(tmp_path)).open(),
        tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}",
    )

    train(store, execution, make_raw(store, execution))

    assert ["ingest", "sft/reasoning"] == [span.name for span in spans.get_finished_spans()]
    found = points.get_metrics_data()
    assert found
    shown = found.resource_metrics[0].scope_metrics[0].metrics
    assert ["loss/nats", "pass_1"] == sorted(metric.name for metric in shown)
