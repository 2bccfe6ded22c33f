"""What reaches MLflow, and what it may refuse."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from data_schemas.artifacts import CheckpointRef, Context, StoreRef
from data_schemas.events import MetricsLogged, StageStarted
from tasks.errors import DataError, EngineError, SettingsError
from tasks.provenance.lineage.catalogue import Catalogue, mlflow_name
from tasks.provenance.lineage.connection import TrashedExperiment, connect
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.registry import read_description
from tasks.provenance.lineage.stage import stage, sync


class Wide(BaseModel):
    """Settings with a long value and more leaves than one request takes."""

    text: str = "x" * 600
    numbers: dict[str, int] = {f"n{number:03}": number for number in range(150)}
    copied: dict[str, str] = {"*.gate.weight[3,68]": "commerce"}


def release(store: StoreRef, execution, content: str, *, released: bool) -> CheckpointRef:
    with stage("release", Wide(), Context(store, execution), "c") as record:
        with record.output("release") as out:
            (out / "model.safetensors").write_text(content)
        ref = record.ref("release", CheckpointRef)
        record.register("release", "tiny", released=released, tags={"manifest": content})
        return ref


def aliases(store: StoreRef) -> dict[str, str]:
    found = connect(store.tracking_uri).get_registered_model("tiny").aliases
    return {name: str(version) for name, version in found.items()}


def versions(store: StoreRef) -> list:
    return connect(store.tracking_uri).search_model_versions("name = 'tiny'")


def test_the_alias_moves_only_for_what_passed_and_the_old_holder_stays_known(store, execution):
    seen = []
    for number, released in enumerate([True, False, True]):
        run = execution.model_copy(update={"id": f"e{number}"})
        release(store, run, f"model {number}", released=released)
        seen.append(aliases(store))

    assert [
        {"released": "1"},
        {"released": "1"},
        {"released": "3", "previous": "1"},
    ] == seen


def test_releasing_the_same_content_again_keeps_the_model_to_go_back_to(store, execution):
    seen = []
    for number, content in enumerate(["old", "new", "new"]):
        run = execution.model_copy(update={"id": f"e{number}"})
        release(store, run, content, released=True)
        seen.append(aliases(store))

    assert [
        {"released": "1"},
        {"released": "2", "previous": "1"},
        {"released": "3", "previous": "1"},
    ] == seen


def test_a_version_carries_the_digests_of_what_it_stands_for(store, execution):
    ref = release(store, execution, "model", released=True)
    version = Lookup(store.tracking_uri).version("models:/tiny@released")

    assert ("tiny", "1", ("released",)) == (version.name, version.number, version.aliases)
    assert (ref.digest, ref.statement, "model") == (
        version.tags["sha256"],
        version.tags["statement"],
        version.tags["manifest"],
    )
    assert version.model is not None
    assert ref.digest == version.model.tags["sha256"]


def test_a_version_shows_the_card_and_the_run_of_a_release_its_accuracy(store, execution):
    card = "---\nlicense: mit\n---\n# Tiny 1\n\n" + "a" * 6000
    with stage("release", Wide(), Context(store, execution), "c") as record:
        with record.output("release") as out:
            (out / "model.safetensors").write_text("x")
        record.facts({"accuracy/domain:maths": 0.25})
        description = read_description(card)
        record.register("release", "tiny", released=True, tags={}, description=description)
    (version,) = versions(store)

    assert "# Tiny 1" == version.description.splitlines()[0]
    assert 5000 >= len(version.description)
    assert version.description.endswith(
        "The whole card is README.md, among the artifacts of the source run."
    )
    run = connect(store.tracking_uri).get_run(version.run_id)
    assert 0.25 == run.data.metrics["accuracy/domain:maths"]


@pytest.mark.parametrize(
    ("card", "shown"),
    [
        ("---\na: 1\n---\n# Title\n", "# Title"),
        ("# Title\n\n---\nrule", "# Title\n\n---\nrule"),
        ("---\nunclosed", "---\nunclosed"),
        ("", ""),
    ],
)
def test_a_card_is_shown_without_its_front_matter(card, shown):
    assert shown == read_description(card)


def test_registering_twice_makes_one_version(store, execution):
    release(store, execution, "model", released=True)
    spool = Path(store.uri) / "spool"
    (filed,) = (spool / "shipped").iterdir()
    filed.rename(spool / filed.name)
    release(store, execution.model_copy(update={"id": "e2"}), "other", released=True)

    assert {"released": "2", "previous": "1"} == aliases(store)


def test_a_release_that_mlflow_refuses_fails_by_name_and_is_registered_later(store, execution):
    client = connect(store.tracking_uri)
    Catalogue(store.tracking_uri).apply("e0.s", [StageStarted(stage="s", tags={}, params={})])
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    client.delete_experiment(experiment)
    remedy = rf"MLflow's trash.*MLFLOW_TRACKING_URI={store.tracking_uri} mlflow experiments restore"
    refused = r"MLflow refused 'start' of exec-1\.release; it and what"
    with pytest.raises(DataError, match=rf"{refused}.*{remedy} --experiment-id {experiment}"):
        release(store, execution, "model", released=True)
    with pytest.raises(TrashedExperiment, match=remedy):
        Lookup(store.tracking_uri).runs("s")
    assert 1 == len(list(Path(store.uri, "spool").glob("exec-1.release.*.jsonl")))

    client.restore_experiment(experiment)
    sync(store)
    assert {"released": "1"} == aliases(store)


@pytest.mark.slow
def test_a_release_is_not_registered_while_mlflow_is_away(store, execution):
    away = store.model_copy(update={"tracking_uri": "http://127.0.0.1:9"})
    with pytest.raises(EngineError, match="MLflow does not answer"):
        release(away, execution, "model", released=True)
    release(store, execution, "model", released=True)

    assert {"released": "1"} == aliases(store)
    assert 1 == len(versions(store))


def test_the_registry_says_which_version_was_made(store, execution):
    with stage("release", Wide(), Context(store, execution), "c") as record:
        with record.output("release") as out:
            (out / "model.safetensors").write_text("x")
        said = record.register("release", "tiny", released=True, tags={})
        ref = record.ref("release", CheckpointRef)

    assert "models:/tiny/1" == said
    found = Lookup(store.tracking_uri).registered("tiny", ref.statement)
    assert found is not None
    assert ("1", ("released",)) == (found.number, found.aliases)
    assert Lookup(store.tracking_uri).registered("tiny", "0" * 64) is None


@pytest.mark.parametrize("said", [None, "http://mlflow.example"])
def test_registering_leaves_the_environment_as_it_was(store, execution, monkeypatch, said):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if said:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", said)

    release(store, execution, "model", released=True)

    assert said == os.environ.get("MLFLOW_TRACKING_URI")


def test_long_and_many_settings_become_parameters(store, execution):
    release(store, execution, "model", released=False)
    client = connect(store.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    (run,) = client.search_runs([experiment], "tags.`eachprompt.stage` LIKE '%'")

    assert 152 == len(run.data.params)
    assert "commerce" == run.data.params["copied._.gate.weight_3_68_"]
    assert "149" == run.data.params["numbers.n149"]
    assert "x" * 500 == run.data.params["text"]


def test_the_curves_of_a_run_that_was_deleted_are_refused_for_good(store, execution):
    release(store, execution, "model", released=False)
    catalogue = Catalogue(store.tracking_uri)
    event = MetricsLogged(step=1, values={"a": 1.0})

    with pytest.raises(DataError, match="run nobody was never started"):
        catalogue.apply("nobody", [event])
    client = connect(store.tracking_uri)
    catalogue.apply("exec-1.release", [event])
    client.delete_run(catalogue.run_id("exec-1.release"))
    with pytest.raises(DataError):
        catalogue.apply("exec-1.release", [event])


def test_nan_and_infinity_do_not_stop_the_curves(store, execution):
    with stage("rl/one", Wide(), Context(store, execution), "c") as record:
        record.metrics(1, {"ratio": float("nan"), "kl": float("inf"), "loss": 1.0})
    client = connect(store.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    (run,) = client.search_runs([experiment], "tags.`eachprompt.stage` LIKE '%'")

    assert {"ratio", "kl", "loss"} == run.data.metrics.keys()


def test_an_mlflow_that_is_not_there_can_be_tried_again():
    away = Catalogue("http://127.0.0.1:9")

    with pytest.raises(EngineError):
        away.apply("e1.rl", [StageStarted(stage="rl", tags={}, params={})])
    assert "" == away.run_id("e1.rl")


def test_a_store_that_is_not_there_is_not_made_by_asking(tmp_path):
    with pytest.raises(SettingsError, match="there is no MLflow store at"):
        Lookup(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert not (tmp_path / "mlflow.db").exists()


def test_an_unknown_model_is_the_users_to_correct(store):
    with pytest.raises(SettingsError, match="Nothing was released under that name"):
        Lookup(store.tracking_uri).version("models:/tiny@released")


def test_metric_names_keep_to_what_mlflow_takes():
    assert "pass_at_4" == mlflow_name("pass@4")
    assert "reward/unscored_count" == mlflow_name("reward/unscored_count")


@given(st.text(min_size=1))
def test_any_text_becomes_a_metric_name(name):
    assert 0 < len(mlflow_name(name)) <= 250
    assert "@" not in mlflow_name(name)
