"""Results of finished work: used if they are its own, done again if somebody planted them."""

import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, Execution, StoreRef
from data_schemas.settings import MergeSettings
from tasks.provenance.lineage import finished
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, TRUSTED_VARIABLE
from tasks.provenance.lineage.stage import stage
from tasks.store import results
from tasks.store.files import canonical_json
from tasks.store.local import new_object
from tests.provenance.lineage.small_chain import make_raw

SETTINGS = MergeSettings()
RUN = Execution(id="e1", started=0.0)

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


@pytest.fixture
def raw(store: StoreRef) -> DatasetRef:
    return make_raw(store, RUN)


def merge(
    store: StoreRef, raw: DatasetRef, name: str = "merge", settings=SETTINGS, code="c1"
) -> CheckpointRef:
    with stage(name, settings, Context(store, RUN), code) as record:
        record.read("base", raw)
        with record.output("model") as out:
            (out / "model.safetensors").write_text(name)
        return record.ref("model", CheckpointRef)


def uri_of(store: StoreRef, raw: DatasetRef) -> str:
    return results.work_uri(store.uri, "merge", SETTINGS, raw.digest)


def find(store: StoreRef, raw: DatasetRef, stage: str = "merge", code: str = "c1"):
    return finished.find(uri_of(store, raw), stage, code, SETTINGS, [raw.digest])


def foreign(store: StoreRef, statement: str = "") -> CheckpointRef:
    with new_object(Path(store.uri)) as (folder, committed):
        (folder / "model.safetensors").write_bytes(b"foreign")
    return CheckpointRef(uri=committed.uri, digest=committed.digest, statement=statement)


def test_results_are_found_under_their_stage_and_code_while_their_object_is_there(store, raw):
    assert find(store, raw) is None

    model = merge(store, raw)
    finished.record(uri_of(store, raw), "merge", "c1", "e1", model)
    found = find(store, raw)

    assert found
    assert model == found.model
    assert find(store, raw, stage="sft/reasoning") is None
    assert find(store, raw, code="c2") is None

    Path(model.uri, "MANIFEST.json").unlink()
    assert find(store, raw) is None


def test_finished_work_is_found_again_in_a_copy_of_its_store(store, raw, tmp_path):
    model = merge(store, raw)
    finished.record(uri_of(store, raw), "merge", "c1", "e1", model)
    copy = store.model_copy(update={"uri": str(tmp_path / "copy")})
    shutil.copytree(store.uri, copy.uri)
    shutil.rmtree(Path(store.uri, "objects"))

    found = find(copy, raw)

    assert found
    assert f"{copy.uri}/objects/{model.digest[:16]}" == found.model.uri


def plant(store: StoreRef, raw: DatasetRef, model: CheckpointRef) -> None:
    """Write results as whoever has the disk can: without the key."""
    done = finished.Results(stage="merge", code="c1", execution="e0", model=model)
    path = Path(f"{uri_of(store, raw)}.json")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(canonical_json(done))


@pytest.mark.attack
def test_planted_results_are_not_used(store, raw, caplog):
    plant(store, raw, foreign(store))

    assert find(store, raw) is None
    assert "is not signed" in caplog.text


@pytest.mark.attack
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("no statement", "cannot be read"),
        ("a statement that made something else", "did not make"),
        ("another stage", "is of rl/one"),
        ("other settings", "has other settings"),
        ("other code", "or of other code"),
        ("an object elsewhere", "is no object of"),
    ],
)
def test_signed_results_count_only_with_the_statement_of_this_work(
    store, raw, change, problem, caplog, tmp_path
):
    match change:
        case "no statement":
            model = foreign(store)
        case "a statement that made something else":
            model = foreign(store, merge(store, raw).statement)
        case "another stage":
            model = merge(store, raw, name="rl/one")
        case "other settings":
            model = merge(store, raw, settings=SETTINGS.model_copy(update={"density": 0.5}))
        case "other code":
            model = merge(store, raw, code="c9")
        case _:
            honest = merge(store, raw)
            model = honest.model_copy(update={"uri": str(tmp_path / "objects" / "elsewhere")})
    finished.record(uri_of(store, raw), "merge", "c1", "e1", model)

    assert find(store, raw) is None
    assert problem in caplog.text


@pytest.mark.attack
def test_results_of_other_inputs_are_not_used(store, raw, caplog):
    other = make_raw(store, Execution(id="e2", started=0.0), b"c,d\n")
    finished.record(uri_of(store, raw), "merge", "c1", "e1", merge(store, other))

    assert find(store, raw) is None
    assert "does not name the input" in caplog.text


@pytest.mark.attack
def test_genuine_results_under_the_name_of_other_work_are_not_used(store, raw, caplog):
    finished.record(f"{store.uri}/state/other", "merge", "c1", "e1", merge(store, raw))
    Path(f"{store.uri}/state/other.json").rename(f"{uri_of(store, raw)}.json")

    assert find(store, raw) is None
    assert "name=other" in caplog.text


def test_results_of_another_machine_are_used_if_its_key_is_trusted(
    store, raw, tmp_path, monkeypatch
):
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "first.pem"))
    model = merge(store, raw)
    finished.record(uri_of(store, raw), "merge", "c1", "e1", model)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "second.pem"))

    assert find(store, raw) is None

    monkeypatch.setenv(TRUSTED_VARIABLE, str(tmp_path / "first.pem.pub"))
    assert find(store, raw) is not None
