"""Digests, canonical JSON and writes that a crash leaves whole or undone."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError

from data_schemas.statements import Output
from tasks.errors import RETRYABLE, DataError, DiskFullError, EngineError
from tasks.store import files
from tasks.store.files import disk_error, naming_a_full_disk, staged_folder, sweep_files
from tasks.store.local import new_object

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""FIPS 180-2, example B.1: sha256 of 'abc'."""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_and_bytes_are_hashed_as_the_standard_says(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    assert ABC == files.sha256_bytes(b"abc") == files.sha256_file(tmp_path / "a")


def test_canonical_json_is_one_byte_string_per_value():
    assert b'{"a":[1,2.5,"\xc3\xa9"],"b":null}' == files.canonical_json(
        {"b": None, "a": [1, 2.5, "é"]}
    )
    assert b'{"digest":"d","role":"a","uri":"u"}' == files.canonical_json(
        Output(role="a", uri="u", digest="d")
    )


def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.canonical_json({"a": float("nan")})


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value):
    turned = dict(reversed(list(value.items())))

    assert files.canonical_json(value) == files.canonical_json(turned)
    assert value == json.loads(files.canonical_json(value))


def test_a_written_file_is_whole_alone_and_not_readable_by_everybody(tmp_path):
    files.write_bytes(tmp_path / "new" / "a.json", b"one")
    files.write_bytes(tmp_path / "new" / "a.json", b"two")

    assert b"two" == (tmp_path / "new" / "a.json").read_bytes()
    assert {"a.json"} == names(tmp_path / "new")
    assert 0o640 == (tmp_path / "new" / "a.json").stat().st_mode & 0o777


def test_a_writer_killed_between_write_and_rename_leaves_the_old_content(tmp_path):
    files.write_bytes(tmp_path / "a", b"old")
    script = """
import os, sys
from pathlib import Path
from tasks.store import files
os.fsync = lambda handle: os._exit(9)
files.write_bytes(Path(sys.argv[1]), b"new" * 1000)
"""
    root = Path(files.__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a")], cwd=root, check=False
    )

    assert 9 == killed.returncode
    assert b"old" == (tmp_path / "a").read_bytes()


def test_of_many_creators_one_wins_and_its_content_stays(tmp_path):
    won: list[int] = []

    def create(number: int) -> None:
        if files.create_bytes(tmp_path / "mark", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [int((tmp_path / "mark").read_bytes())] == won
    assert {"mark"} == names(tmp_path)


def test_a_staged_folder_appears_only_when_its_block_ends_well(tmp_path):
    with files.staged_folder(tmp_path / "step") as staged:
        (staged / "sub").mkdir()
        (staged / "sub" / "a").write_text("x")
        assert not (tmp_path / "step").exists()
    with pytest.raises(ZeroDivisionError), files.staged_folder(tmp_path / "other") as staged:
        (staged / "a").write_text(str(1 / 0))

    assert {"step"} == names(tmp_path)
    assert "x" == (tmp_path / "step" / "sub" / "a").read_text()


def test_of_two_staged_folders_the_first_stays(tmp_path):
    with files.staged_folder(tmp_path / "step") as late:
        (late / "a").write_text("late")
        with files.staged_folder(tmp_path / "step") as early:
            (early / "a").write_text("early")

    assert "early" == (tmp_path / "step" / "a").read_text()
    assert {"step"} == names(tmp_path)


def test_a_file_in_the_place_of_a_staged_folder_is_an_error(tmp_path):
    (tmp_path / "step").write_text("a file")

    with pytest.raises(NotADirectoryError), files.staged_folder(tmp_path / "step") as staged:
        (staged / "a").write_text("x")


@pytest.fixture
def full_disk(monkeypatch):
    """Stand in for a disk with no space left."""
    full = SimpleNamespace(total=2**30, used=2**30, free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 1 vs 2"),
    ],
)
def test_a_full_disk_is_named_and_whether_a_retry_helps(tmp_path, full_disk, error):
    with (
        pytest.raises(DiskFullError, match=r"is full \(0 MiB left\): .*a retry helps") as found,
        staged_folder(tmp_path / "state"),
    ):
        raise error

    assert isinstance(found.value, RETRYABLE)
    with pytest.raises(DiskFullError), new_object(tmp_path):
        raise error
    assert [] == [path for path in (tmp_path / "objects").iterdir() if path.name[0] != "."]


def test_quotas_are_disks_too_and_other_errors_pass(tmp_path, full_disk):
    with pytest.raises(DiskFullError), naming_a_full_disk(tmp_path):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")
    with pytest.raises(DataError, match="not whole"), naming_a_full_disk(tmp_path):
        raise DataError("not whole")


def test_a_library_that_has_removed_its_file_still_said_why(tmp_path):
    said = "Error while serializing: I/O error: No space left on device (os error 28)"
    with pytest.raises(DiskFullError, match="No space left"), naming_a_full_disk(tmp_path):
        raise SafetensorError(said)


def test_with_space_left_an_error_stays_what_it_is(tmp_path):
    with pytest.raises(RuntimeError, match="inline_container"), naming_a_full_disk(tmp_path):
        raise RuntimeError("inline_container.cc")


def test_the_disk_that_is_full_or_read_only_is_named_and_not_only_the_stages(tmp_path, full_disk):
    place = tmp_path / "not yet" / "file"
    full = disk_error(OSError(errno.ENOSPC, "No space left on device"), place)
    read_only = disk_error(OSError(errno.EROFS, "Read-only file system", str(place)), tmp_path)

    assert isinstance(full, DiskFullError)
    assert f"the disk of {tmp_path} is full (0 MiB left)" in str(full)
    assert isinstance(read_only, EngineError)
    assert f"the disk of {tmp_path} is read-only" in str(read_only)
    assert "Mount it for writing" in str(read_only)
    assert disk_error(OSError(errno.EACCES, "Permission denied"), tmp_path) is None


@pytest.mark.attack
def test_old_temporaries_of_killed_writers_are_swept_and_nothing_else(tmp_path):
    old, young = tmp_path / "a" / ".x.json.ab12cd_3", tmp_path / "a" / ".x.json.zz12cd_3"
    kept = [tmp_path / "a" / name for name in ("x.json", ".mlflow.db.lock", ".3f2a.origin")]
    (tmp_path / "a").mkdir()
    for path in (old, young, *kept):
        path.write_text("x")
    for path in (old, *kept):
        os.utime(path, (0, 0))
    sweep_files(tmp_path)

    assert {young, *kept} == set((tmp_path / "a").iterdir())
