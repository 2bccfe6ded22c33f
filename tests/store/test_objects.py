"""Objects in both kinds of store: the same layout, the same refusals."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.errors import DataError, TamperError
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tasks.store.manifest import MANIFEST, verify_folder
from tasks.store.objects import _hash_all, localise, object_problems, on_every_machine, publish


@pytest.fixture
def made(tmp_path):
    with new_object(tmp_path / "here") as (folder, committed):
        (folder / "sub").mkdir()
        (folder / "sub" / "a.bin").write_bytes(b"abc")
        (folder / "b.bin").write_bytes(b"x" * 100)
    return committed


@pytest.fixture
def published(made, place):
    """Publish the object, as often as it is asked to, and return its uri."""

    def go() -> str:
        return publish(Path(made.uri), made.digest, place)

    return go


@pytest.mark.slow
def test_an_object_is_published_and_comes_back_the_same(published, made, place, tmp_path):
    uri = published()
    folder = localise(uri, made.digest, tmp_path / "cache")

    assert f"{place}/objects/{made.digest[:16]}" == uri
    assert {MANIFEST, "b.bin", "sub/a.bin"} == store_at(uri).list_files().keys()
    assert b"abc" == (folder / "sub" / "a.bin").read_bytes()
    assert [] == list(object_problems(uri, made.digest))


def test_an_object_on_this_machine_is_used_where_it_lies(made, tmp_path):
    assert Path(made.uri) == localise(made.uri, made.digest, tmp_path / "cache")
    assert made.uri == publish(Path(made.uri), made.digest, str(tmp_path / "here"))
    assert not (tmp_path / "cache").exists()


def test_a_second_use_of_an_object_in_s3_comes_from_the_cache(bucket, made, tmp_path):
    uri = publish(Path(made.uri), made.digest, "s3://bucket/store")
    localise(uri, made.digest, tmp_path / "cache")
    store_at(uri).delete_file("b.bin")

    assert (localise(uri, made.digest, tmp_path / "cache") / "b.bin").exists()


@pytest.mark.parametrize("cache", ["node0", "here"], ids=["downloaded", "made here"])
def test_every_machine_of_a_stage_fetches_an_object_once(bucket, made, tmp_path, cache):
    uri = publish(Path(made.uri), made.digest, "s3://bucket/store")
    controllers = localise(uri, made.digest, tmp_path / cache)
    find = on_every_machine(controllers)

    # Another machine has the same path on a disk of its own.
    controllers.rename(tmp_path / "disk of node 0")
    with ThreadPoolExecutor(8) as ranks:
        found = list(ranks.map(lambda _: find(), range(8)))
    assert [controllers] * 8 == found
    verify_folder(controllers, made.digest)

    store_at(uri).delete_file("b.bin")
    assert controllers == find()  # nobody downloads it again


def test_a_machine_refuses_an_object_that_was_changed_meanwhile(bucket, made, tmp_path):
    uri = publish(Path(made.uri), made.digest, "s3://bucket/store")
    controllers = localise(uri, made.digest, tmp_path / "node0")
    find = pickle.loads(pickle.dumps(on_every_machine(controllers)))  # sent to the other ranks
    controllers.rename(tmp_path / "disk of node 0")
    store_at(uri).write_bytes(b"other", "b.bin")

    with pytest.raises(TamperError, match=r"b\.bin: sha256 is"):
        find()
    assert not controllers.exists()


def test_a_folder_that_is_no_copy_is_the_same_path_on_every_machine(made):
    assert Path(made.uri) == on_every_machine(Path(made.uri))()


def test_an_upload_that_breaks_off_leaves_no_object(published, made, place):
    (Path(made.uri) / "sub" / "a.bin").unlink()

    with pytest.raises(FileNotFoundError):
        published()
    assert {"b.bin"} == store_at(f"{place}/objects/{made.digest[:16]}").list_files().keys()


def test_publishing_again_changes_nothing(published):
    assert published() == published()


def test_publishing_beside_a_damaged_object_is_refused(published):
    store_at(published()).write_bytes(b"short", "b.bin")

    with pytest.raises(TamperError, match=r"b\.bin: not as committed"):
        published()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["b.bin", MANIFEST])
def test_a_flipped_byte_names_the_file(published, made, tmp_path, name):
    uri = published()
    payload = bytearray(store_at(uri).read_bytes(name))
    payload[-1] ^= 1
    store_at(uri).write_bytes(bytes(payload), name)

    assert [f"{uri}/{name}"] == [where for where, _ in object_problems(uri, made.digest)]
    with pytest.raises(TamperError, match=name):
        localise(uri, made.digest, tmp_path / "cache")
    assert not (tmp_path / "cache" / "objects" / made.digest[:16]).exists()


def test_added_and_removed_files_are_found(published, made):
    uri = published()
    store_at(uri).write_bytes(b"", "new.bin")
    store_at(uri).delete_file("b.bin")

    assert [
        (f"{uri}/b.bin", "removed after commit"),
        (f"{uri}/new.bin", "added after commit"),
    ] == list(object_problems(uri, made.digest))


def test_an_object_that_is_not_there_is_gone(place, tmp_path):
    uri = f"{place}/objects/0"

    with pytest.raises(DataError, match=r"objects/0.* is gone"):
        localise(uri, "0" * 64, tmp_path / "cache")
    assert [(uri, "gone")] == list(object_problems(uri, "0" * 64))


def test_files_of_a_remote_object_are_hashed_at_the_same_time():
    class Waiting:
        """A store whose files come only while another one is read."""

        def __init__(self):
            self.both = threading.Barrier(2, timeout=60)

        def sha256(self, name):
            self.both.wait()
            return f"sha256 of {name}"

    assert ["sha256 of a", "sha256 of b"] == _hash_all(Waiting(), ["a", "b"])
