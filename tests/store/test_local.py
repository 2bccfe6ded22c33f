"""Objects in a folder: atomic, content-addressed, and swept if their process died."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.errors import DataError, SettingsError, TamperError
from tasks.store import files, local
from tasks.store.files import sha256_bytes
from tasks.store.local import LocalStore, NewObject, new_object
from tasks.store.manifest import MANIFEST

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""FIPS 180-2, example B.1: sha256 of 'abc'."""


def commit(store: Path, files: dict[str, bytes]) -> NewObject:
    with new_object(store) as (folder, committed):
        for name, payload in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(payload)
    return committed


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_object_is_named_after_its_content(tmp_path):
    one = commit(tmp_path, {"b.txt": b"abc", "sub/a.txt": b""})
    two = commit(tmp_path, {"sub/a.txt": b"", "b.txt": b"abc"})
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    manifest = (
        f'{{"files":{{"b.txt":{{"bytes":3,"sha256":"{ABC}"}},'
        f'"sub/a.txt":{{"bytes":0,"sha256":"{empty}"}}}}}}'
    ).encode()

    assert one == two
    assert sha256_bytes(manifest) == one.digest
    assert tmp_path / "objects" / one.digest[:16] == Path(one.uri)
    assert manifest == (Path(one.uri) / MANIFEST).read_bytes()
    assert {one.digest[:16]} == names(tmp_path / "objects")


def test_a_block_that_fails_commits_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), new_object(tmp_path) as (folder, committed):
        (folder / "a").write_text(str(1 / 0))

    assert ("", "") == (committed.uri, committed.digest)
    assert set() == names(tmp_path / "objects")


def test_a_killed_process_leaves_no_object_and_its_temporary_folders_are_swept(tmp_path):
    script = """
import os, sys
from pathlib import Path
from tasks.store import files, local
store = Path(sys.argv[1])
with (
    local.new_object(store) as (folder, _),
    files.scratch_folder(store / "objects", ".epochs.") as epochs,
    files.staged_folder(store / "objects" / "0123") as staged,
):
    for half in (folder, epochs, staged):
        (half / "a").write_text("half")
    os._exit(9)
"""
    root = Path(local.__file__).parents[2]
    objects = tmp_path / "objects"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=False)
    assert 3 == len(list(objects.iterdir()))
    with (
        new_object(tmp_path) as (new, _),
        files.scratch_folder(objects, ".epochs.") as epochs,
        files.staged_folder(objects / "4567") as staged,
    ):
        for folder in objects.iterdir():
            os.utime(folder, (0, 0))
        young = objects / ".young.1"
        young.mkdir()
        LocalStore(str(tmp_path)).open()

        assert {new.name, epochs.name, staged.name, young.name} == names(objects)


def test_the_sweep_follows_no_link_and_touches_no_object(tmp_path):
    made = Path(commit(tmp_path / "store", {"a": b"abc"}).uri)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("kept")
    (made.parent / ".link").symlink_to(outside)
    for folder in (made, outside):
        os.utime(folder, (0, 0))

    files.sweep(made.parent)

    assert {"a"} == names(outside)
    assert {"a", MANIFEST} == names(made)


def test_a_link_is_refused_because_its_target_could_change(tmp_path):
    (tmp_path / "outside").write_text("x")

    with (
        pytest.raises(DataError, match=r"model\.bin is not a regular file"),
        new_object(tmp_path) as (folder, _),
    ):
        (folder / "model.bin").symlink_to(tmp_path / "outside")


def test_a_damaged_object_is_not_trusted_when_its_content_is_made_again(tmp_path):
    made = commit(tmp_path, {"a": b"abc"})
    (Path(made.uri) / "a").write_bytes(b"abd")

    with pytest.raises(TamperError):
        commit(tmp_path, {"a": b"abc"})


def test_a_store_that_cannot_be_is_a_settings_error(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "store.json").write_text("{")

    with pytest.raises(SettingsError, match="cannot be written"):
        LocalStore(str(tmp_path / "file")).open()
    with pytest.raises(SettingsError, match="is not a store mark"):
        LocalStore(str(tmp_path / "bad")).open()
