"""The index is a function of the statements: never older than the store, never of changed bytes."""

import shutil

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from data_schemas.statements import Tombstone
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.lineage.tombstones import bury
from tasks.provenance.rows.find import by_row
from tasks.provenance.rows.index import SIGNATURE, open_index
from tasks.provenance.rows.influence import trace_rows
from tasks.provenance.rows.tables import SCHEMAS
from tasks.store.manifest import folder_manifest
from tests.provenance.rows.shop import NEW, POISON, line_of


def answer(shop, index=None):
    index = index or open_index(shop.store, shop.place)
    return trace_rows(index, by_row(index, shop.store, line_of(POISON)), show=5)


def content(index) -> dict[str, list]:
    return {name: sorted(index.read(name).to_pylist(), key=str) for name in SCHEMAS}


def folders(shop) -> set[str]:
    return {path.name for path in (shop.place / "index").iterdir()}


@pytest.mark.slow
def test_an_index_is_written_once_and_read_again(shop):
    open_index(shop.store, shop.place)
    (folder,) = (shop.place / "index").iterdir()
    written = {path: path.stat().st_mtime_ns for path in folder.iterdir()}

    assert answer(shop) == answer(shop)
    assert written == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_new_release_is_noticed_and_what_was_known_is_kept(shop):
    before = answer(shop)
    for path in (shop.place / "objects").glob("*/ledger.parquet"):
        path.unlink()  # what is known is not read again
    shop.release("late", "rl/one of merged", "old")

    made = {one.release for one in answer(shop).checkpoints}

    assert {"", "shop"} == {one.release for one in before.checkpoints}
    assert {"", "shop", "late"} == made


def test_an_index_that_grew_is_the_index_that_was_built_at_once(shop, tmp_path):
    open_index(shop.store, shop.place)
    shop.add_rows("later", [POISON, *NEW[:3]])
    shop.reinforce("rl/two", "rl/one of merged", "later")

    grown = content(open_index(shop.store, shop.place))

    assert grown == content(open_index(shop.store, tmp_path / "fresh"))


def test_rows_are_traced_through_models_that_were_deleted_on_purpose(shop, tmp_path):
    before = content(open_index(shop.store, shop.place))
    model = shop.refs["tuned"]
    note = Tombstone(
        digest=model.digest,
        uri=f"{shop.store}/objects/{model.digest[:16]}",
        stage="sft/reasoning",
        statement=model.statement,
        bytes=5,
        used=0.0,
        deleted=1.0,
        kept="released,30d",
    )
    bury(shop.store, note)

    assert before == content(open_index(shop.store, tmp_path / "fresh"))
    (shop.place / "tombstones" / f"{model.digest}.json").unlink()
    with pytest.raises(DataError):
        open_index(shop.store, tmp_path / "another")


def test_a_statement_that_is_gone_is_not_answered_from_memory(shop):
    assert "shop" in {one.release for one in answer(shop).checkpoints}
    for name in ("release of rl/one of merged", "release of rl/retrain of rl/one of merged"):
        (shop.place / "statements" / f"{shop.refs[name].statement}.json").unlink()

    assert {""} == {one.release for one in answer(shop).checkpoints}


def test_only_the_newest_indexes_are_kept(shop):
    for number in range(4):
        shop.release(f"model-{number}", "merged", "old")
        open_index(shop.store, shop.place)

    assert 2 == len(folders(shop))


@pytest.mark.slow
@pytest.mark.parametrize("file", ["uses.parquet", "MANIFEST.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_a_damaged_index_is_built_again(shop, file, damage):
    expected = answer(shop)
    path = next((shop.place / "index").iterdir()) / file
    payload = bytearray(path.read_bytes())
    payload[len(payload) // 2] ^= 1
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(payload if damage == "flip" else payload[: len(payload) // 2])

    assert expected == answer(shop)


@pytest.mark.attack
@pytest.mark.parametrize("signature", ["of before", "gone"])
def test_an_index_that_was_edited_does_not_answer(shop, signature):
    """Whoever has the disk takes a row's uses out, so that nothing would have to be withdrawn."""
    expected = answer(shop)
    folder = next((shop.place / "index").iterdir())
    table = pq.read_table(folder / "uses.parquet")
    pq.write_table(table.slice(0, 0), folder / "uses.parquet")
    (folder / "MANIFEST.json").write_bytes(folder_manifest(folder, {SIGNATURE}))
    if signature == "gone":
        (folder / SIGNATURE).unlink()

    assert expected == answer(shop)


@pytest.mark.parametrize("name", ["old/curated", "old/graded", "old/raw"])
def test_a_changed_object_is_refused_by_name(shop, name):
    folder = shop.place / "objects" / shop.refs[name].digest[:16]
    victim = max(folder.iterdir(), key=lambda path: path.suffix == ".parquet")
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")

    with pytest.raises((TamperError, DataError), match=str(victim)):
        open_index(shop.store, shop.place)


def test_an_object_that_is_gone_is_refused_by_name(shop):
    folder = shop.place / "objects" / shop.refs["old/curated"].digest[:16]
    shutil.rmtree(folder)

    with pytest.raises(DataError, match=str(folder)):
        open_index(shop.store, shop.place)


def test_a_ledger_with_a_prompt_that_was_not_given_is_refused(shop):
    with shop.stage("rl/odd", shop.refs["base"]) as record:
        record.read("start", shop.refs["base"])
        record.read("graded", shop.refs["new/graded"])
        with record.output("report") as out:
            ledgers = (shop.place / "objects").glob("*/ledger.parquet")
            shutil.copy(max(ledgers, key=lambda path: path.stat().st_size), out)

    with pytest.raises(DataError, match=r"rl/odd .* names prompts that it was not given"):
        open_index(shop.store, shop.place)


def test_a_fine_tuning_without_a_record_counts_every_demonstration_of_its_parent(shop):
    with shop.stage("sft/reasoning", shop.refs["base"], model="unrecorded") as record:
        record.read("curated", shop.refs["new/curated"])
        record.read("base", shop.refs["base"])
        record.facts["chosen_epoch"] = 3
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(b"m")

    uses = open_index(shop.store, shop.place).read("uses")

    own = uses.filter(pc.field("times") == 3)
    rows = open_index(shop.store, shop.place).read("rows").to_pylist()
    curated = shop.refs["new/curated"].digest
    expected = {
        row["item"]
        for row in rows
        if (row["artifact"], row["kind"], row["reason"]) == (curated, "demonstration", "")
    }
    assert expected == set(own["item"].to_pylist())


def test_an_index_that_cannot_be_written_is_used_from_memory(shop, caplog):
    expected = answer(shop)
    shutil.rmtree(shop.place / "index")
    (shop.place / "index").write_text("in the way")

    assert expected == answer(shop)
    assert "the index is not kept" in caplog.text


def test_a_folder_without_statements_is_no_store(tmp_path):
    with pytest.raises(SettingsError, match="holds no statements"):
        open_index(str(tmp_path), tmp_path)


@pytest.mark.slow
def test_a_store_that_was_moved_or_is_in_s3_gives_the_same_answer(shop, bucket, tmp_path):
    expected = answer(shop)
    for kind in ("objects", "statements"):
        for path in (shop.place / kind).rglob("*.*"):
            key = f"store/{path.relative_to(shop.place).as_posix()}"
            bucket.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
    shop.place.rename(tmp_path / "moved")
    moved = open_index(str(tmp_path / "moved"), tmp_path / "moved")
    remote = open_index("s3://bucket/store", tmp_path / "cache")

    assert content(moved) == content(remote)
    assert expected == answer(shop, remote)
