"""Judges and the screening model are artifacts: part of the lineage and of every cache key."""

import pickle
import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import Context, DatasetRef, Execution, StoreRef, is_address
from data_schemas.settings import GradingSettings, PipelineSettings
from tasks.errors import SettingsError
from tasks.platform.literals import packed
from tasks.provenance.lineage.base_model import read_model
from tasks.provenance.lineage.judges import read_judge
from tasks.provenance.lineage.origins import is_source
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement
from tasks.stages.foundation import ingest_base, ingest_models
from tasks.store.interface import store_at

EXECUTION = Execution(id="exec-1", started=1000.0)


@pytest.fixture
def store(tmp_path, migrated) -> StoreRef:
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    return StoreRef(uri=str(folder), id=identity, tracking_uri=uri)


@pytest.fixture
def judge(tiny_moe, tmp_path):
    return shutil.copytree(tiny_moe, tmp_path / "judge")


@pytest.fixture
def ingested(store, judge):
    def run() -> PipelineSettings:
        model = {"kind": "model", "address": str(judge)}
        given = {
            "grading": {"screen_model": str(judge), "judge": model},
            "rl_two": {"rewards": {"judge": model}},
        }
        settings = PipelineSettings.model_validate(given)
        return ingest_models(settings=settings, store=store, execution=EXECUTION)

    return run


def used(settings: PipelineSettings, store: StoreRef):
    """Read the judge of phase two as its stage does, and return the input that it recorded."""
    judge = settings.rl_two.rewards.judge
    with stage("rl/two", settings.rl_two, Context(store, EXECUTION), "c") as record:
        local = read_judge(judge, record)
        with record.output("report") as out:
            (out / "empty").touch()
        ref = record.ref("report", DatasetRef)
    (item,) = load_statement(store.uri, ref.statement).inputs
    return item, local


def test_a_judge_is_an_input_of_the_stage_with_the_folder_as_the_root(ingested, store, judge):
    item, local = used(ingested(), store)

    assert "judge" == item.role
    assert local.address.startswith(store.uri)
    (origin,) = load_statement(store.uri, item.statement).inputs
    assert judge.as_uri() == origin.uri
    assert is_source(origin)
    assert origin.digest == item.digest


@pytest.mark.slow
def test_another_content_of_the_folder_is_another_cache_key(ingested, judge):
    groups = ("grading", "rl_two")
    before, unchanged = packed(ingested()), packed(ingested())
    config = judge / "generation_config.json"
    config.write_text('{"temperature": 0.5}')
    after = packed(ingested())

    assert before == unchanged
    assert all(before[group] != after[group] for group in groups)
    assert before["rl_one"] == after["rl_one"]


def test_an_artifact_is_not_copied_again(ingested, store):
    settings = ingested()

    assert is_address(settings.grading.screen_model)
    assert settings == ingest_models(settings=settings, store=store, execution=EXECUTION)


def test_a_folder_that_no_workflow_ingested_is_recorded_by_content(store, judge):
    with stage("grade", GradingSettings(), Context(store, EXECUTION), "c") as record:
        folder = read_model("screen", str(judge), record)
        assert judge == folder
        with record.output("report") as out:
            (out / "empty").touch()
        ref = record.ref("report", DatasetRef)

    (item,) = load_statement(store.uri, ref.statement).inputs
    assert is_source(item)


def test_a_judge_that_is_no_model_is_refused_as_it_is_ingested(store, tmp_path):
    model = {"kind": "model", "address": str(tmp_path)}
    settings = PipelineSettings.model_validate({"evaluation": {"judge": model}})

    with pytest.raises(SettingsError, match=r"config\.json"):
        ingest_models(settings=settings, store=store, execution=EXECUTION)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.attack
def test_pickled_weights_are_never_opened_nor_copied_and_alone_they_are_refused(
    store, judge, tmp_path
):
    for name in ("pytorch_model.bin", "optimizer.pt", "deeper/state.PKL"):
        path = judge / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(Trap(str(tmp_path / "trapped"))))

    ref = ingest_base(path=str(judge), name="base", context=Context(store, EXECUTION))

    statement = load_statement(store.uri, ref.statement)
    names = "deeper/state.PKL, optimizer.pt, pytorch_model.bin"
    assert f"{names}: opening them may execute code" == statement.facts["left_out"]
    (copy,) = (path for path in Path(store.uri, "objects").iterdir())
    assert [] == [one for one in copy.rglob("*") if one.suffix in (".bin", ".pt", ".PKL")]
    (judge / "model.safetensors").unlink()
    with pytest.raises(SettingsError, match=r"contains no \*\.safetensors weights"):
        ingest_base(path=str(judge), name="base", context=Context(store, EXECUTION))
    assert not (tmp_path / "trapped").exists()
