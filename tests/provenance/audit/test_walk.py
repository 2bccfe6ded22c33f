"""The audit: green on an untouched chain; after any one change it names exactly that."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from data_schemas.audits import AuditReport, NodeKind
from tasks.errors import EngineError, SettingsError
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.connection import connect
from tests.slices import sliced

pytestmark = pytest.mark.attack

RELEASED = "models:/tiny@released"


def run(chain) -> AuditReport:
    return audit(RELEASED, chain.tracking_uri, str(chain.store))


def objects(report: AuditReport) -> list[str]:
    return [finding.object for finding in report.findings]


def flip(path: Path, position: int = -1) -> None:
    payload = bytearray(path.read_bytes())
    payload[position] ^= 1
    path.write_bytes(bytes(payload))


@contextmanager
def restored(path: Path) -> Iterator[None]:
    before = path.read_bytes()
    try:
        yield
    finally:
        path.write_bytes(before)


def model_of(chain, name: str) -> str:
    client = connect(chain.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    digest = chain.refs[name].digest
    (model,) = client.search_logged_models([experiment], f"tags.sha256 = '{digest}'")
    return model.model_id


def test_an_untouched_chain_is_proved_down_to_the_raw_files(chain):
    report = run(chain)
    titles = [node.title for node in report.nodes]

    assert () == report.findings
    assert report.proved
    # ingest, foundation, curate, 2 sft, merge, rl, evaluate, release
    assert (9, 9) == (report.statements, report.objects)
    # one copied, one outside, one shipped folder
    assert 3 == report.raw_files
    assert "tiny version 1" == titles[0]
    assert "release" == titles[1]
    assert titles.index("release") < titles.index("merge") < titles.index("ingest")
    assert {"2 raw files", "1 raw file"} == {
        node.title for node in report.nodes if node.kind == NodeKind.ORIGIN
    }
    assert audit("models:/tiny/1", chain.tracking_uri, str(chain.store)).proved


@pytest.mark.parametrize(
    ("name", "file"),
    sliced(
        [
            ("raw", "world.jsonl"),
            ("raw", "raw_files.json"),
            ("base", "model.safetensors"),
            ("curated", "problems.parquet"),
            ("sft/commerce", "model.safetensors"),
            ("merged", "config.json"),
            ("policy", "model.safetensors"),
            ("report", "a.json"),
            ("release", "manifest.json"),
            ("release", "model.safetensors"),
            ("release", "README.md"),
            ("policy", "MANIFEST.json"),
            ("release", "MANIFEST.json"),
            ("raw", "MANIFEST.json"),
        ],
        lambda *case: (
            case
            in (
                ("raw", "world.jsonl"),
                ("policy", "MANIFEST.json"),
                ("release", "model.safetensors"),
            )
        ),
    ),
)
def test_one_flipped_byte_in_an_object_names_that_file(chain, name, file):
    path = chain.folder(name) / file
    flip(path, path.stat().st_size // 2)

    assert [str(path)] == objects(run(chain))


@pytest.mark.parametrize(
    ("name", "position"),
    sliced(
        [
            ("raw", 40),
            ("base", 40),
            ("curated", 0),  # no longer JSON
            ("sft/reasoning", -3),
            ("merged", 40),
            ("policy", -3),
            ("report", 0),
            ("release", 0),
            ("release", 40),
        ],
        lambda *case: case in (("curated", 0), ("policy", -3)),
    ),
)
def test_one_flipped_byte_in_a_statement_names_that_statement(chain, name, position):
    path = chain.statement(name)
    flip(path, position)
    report = run(chain)

    assert [str(path)] == objects(report)
    assert (9, 9) == (report.statements, report.objects)  # the rest was still looked at


def test_one_flipped_byte_in_a_raw_file_outside_names_that_file(chain):
    path = chain.outside / "gsm8k.jsonl"
    with restored(path):
        flip(path, 5)

        assert [str(path)] == objects(run(chain))


def test_a_base_model_that_an_upgrade_changed_is_known_by_the_stores_own_copy(chain):
    path = chain.outside / "base" / "model.safetensors"
    copy = chain.folder("base") / path.name
    with restored(path):
        flip(path)

        assert [] == objects(run(chain))
        flip(copy)
        assert {str(copy), path.parent.as_uri()} == {*objects(run(chain))}


def test_every_problem_is_found_not_only_the_first(chain):
    damaged = [
        chain.folder("raw") / "world.jsonl",
        chain.folder("policy") / "model.safetensors",
        chain.statement("merged"),
    ]
    for path in damaged:
        flip(path)
    shutil.rmtree(chain.folder("sft/commerce"))
    found = objects(run(chain))

    assert {str(path) for path in [*damaged, chain.folder("sft/commerce")]} == set(found)
    assert 4 == len(found)


def test_what_is_gone_is_named(chain):
    chain.statement("curated").unlink()
    shutil.rmtree(chain.folder("base"))

    assert {str(chain.statement("curated")), str(chain.folder("base"))} == set(objects(run(chain)))


def test_a_file_added_to_an_object_is_named(chain):
    (chain.folder("policy") / "extra.bin").write_bytes(b"")
    (finding,) = run(chain).findings

    assert str(chain.folder("policy") / "extra.bin") == finding.object
    assert "added after commit" == finding.problem


def test_a_replaced_object_with_its_own_manifest_is_named(chain):
    folder = chain.folder("policy")
    (folder / "model.safetensors").write_bytes(b"another model")
    manifest = json.loads((folder / "MANIFEST.json").read_bytes())
    manifest["files"]["model.safetensors"]["sha256"] = "0" * 64
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))

    assert [str(folder / "MANIFEST.json")] == objects(run(chain))


@pytest.mark.slow
@pytest.mark.parametrize("tag", ["sha256", "statement", "uri", "parents"])
def test_a_changed_model_tag_in_mlflow_names_that_model(chain, tag):
    model = model_of(chain, "merged")
    connect(chain.tracking_uri).set_logged_model_tags(model, {tag: "0" * 64})
    (finding,) = run(chain).findings

    assert f"MLflow model {model}" == finding.object
    assert finding.problem.startswith(f"{tag} is {'0' * 64}, expected ")


def test_a_version_whose_statement_was_changed_is_not_the_promoted_release(chain):
    connect(chain.tracking_uri).set_model_version_tag("tiny", "1", "statement", "0" * 64)
    first, *_ = run(chain).findings

    assert "MLflow" == first.object
    assert first.problem.startswith("version 1 has the alias 'released', but promotion 1")


@pytest.mark.parametrize("tag", ["sha256", "manifest"])
def test_a_changed_version_tag_in_mlflow_names_that_version(chain, tag):
    connect(chain.tracking_uri).set_model_version_tag("tiny", "1", tag, "0" * 64)
    (finding,) = run(chain).findings

    assert "MLflow model version tiny/1" == finding.object
    assert f"{tag} is {'0' * 64}" in finding.problem


def stage_run(chain, name: str) -> str:
    client = connect(chain.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    (found,) = client.search_runs([experiment], f"tags.`eachprompt.stage` = '{name}'")
    return found.info.run_id


def test_a_changed_run_tag_in_mlflow_names_that_run(chain):
    name = stage_run(chain, "merge")
    connect(chain.tracking_uri).set_tag(name, "eachprompt.code", "other")
    (finding,) = run(chain).findings

    assert f"MLflow run {name} (merge)" == finding.object
    assert "eachprompt.code is other, expected c2" == finding.problem


@pytest.mark.parametrize("how", ["delete", "retag"])
def test_a_run_that_is_gone_from_mlflow_is_named(chain, how):
    client = connect(chain.tracking_uri)
    if how == "delete":
        client.delete_run(stage_run(chain, "merge"))
    else:
        client.set_tag(stage_run(chain, "merge"), "eachprompt.statement", "0" * 64)

    assert ["MLflow run of merge"] == objects(run(chain))


def test_an_input_linked_later_in_mlflow_is_named(chain):
    from mlflow.entities import LoggedModelInput

    name = stage_run(chain, "rl/one")
    connect(chain.tracking_uri).log_inputs(name, models=[LoggedModelInput(model_of(chain, "base"))])
    (finding,) = run(chain).findings

    assert f"MLflow run {name} (rl/one)" == finding.object
    assert "is not in the statement" in finding.problem


def test_the_alias_moved_to_a_foreign_model_is_named(chain, monkeypatch):
    import mlflow

    # MLflow writes its store into the environment; the next test must not inherit it.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)

    client = connect(chain.tracking_uri)
    genuine = client.get_model_version("tiny", "1")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(chain.tracking_uri)
    model = model_of(chain, "sft/commerce")
    made = client.create_model_version(
        "tiny",
        f"models:/{model}",
        run_id=genuine.run_id,
        tags=genuine.tags,
        model_id=model,
        description=genuine.description,
    )
    mlflow.set_tracking_uri(before)
    client.set_registered_model_alias("tiny", "released", made.version)
    findings = run(chain).findings

    assert {"MLflow model version tiny/2"} == {finding.object for finding in findings}
    assert any("which no release made" in finding.problem for finding in findings)


def test_a_name_that_was_never_released_is_a_settings_error(chain):
    for uri in ("models:/other@released", "models:/tiny@missing", "models:/tiny/7"):
        with pytest.raises(SettingsError, match="is not in this MLflow store"):
            audit(uri, chain.tracking_uri, str(chain.store))


@pytest.mark.parametrize("uri", ["tiny", "models:/tiny", "models:/tiny@", "runs:/tiny/1"])
def test_a_malformed_name_says_how_to_write_it(chain, uri):
    with pytest.raises(SettingsError, match="use models:/NAME@released"):
        audit(uri, chain.tracking_uri, str(chain.store))


def test_no_answer_from_mlflow_is_no_verdict(chain):
    with pytest.raises(EngineError):
        audit(RELEASED, "http://127.0.0.1:9", str(chain.store))
