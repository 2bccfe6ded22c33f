"""The artifact store: atomic, content-addressed, and loud about every changed byte."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.statements import Output
from tasks.errors import DataError, SettingsError, TamperError
from tasks.store import local

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""FIPS 180-2, example B.1: sha256 of 'abc'."""


def commit(store: Path, files: dict[str, bytes]) -> local.Committed:
    with local.new_object(store) as (folder, committed):
        for name, payload in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(payload)
    return committed


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_and_bytes_are_hashed_as_the_standard_says(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    assert ABC == local.sha256_bytes(b"abc") == local.sha256_file(tmp_path / "a")


def test_canonical_json_is_one_byte_string_per_value():
    assert b'{"a":[1,2.5,"\xc3\xa9"],"b":null}' == local.canonical_json(
        {"b": None, "a": [1, 2.5, "é"]}
    )
    assert b'{"digest":"d","role":"a","uri":"u"}' == local.canonical_json(
        Output(role="a", uri="u", digest="d")
    )


def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        local.canonical_json({"a": float("nan")})


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value):
    turned = dict(reversed(list(value.items())))

    assert local.canonical_json(value) == local.canonical_json(turned)
    assert value == json.loads(local.canonical_json(value))


def test_a_written_file_is_whole_readable_by_others_and_alone(tmp_path):
    local.write_bytes(tmp_path / "new" / "a.json", b"one")
    local.write_bytes(tmp_path / "new" / "a.json", b"two")

    assert b"two" == (tmp_path / "new" / "a.json").read_bytes()
    assert {"a.json"} == names(tmp_path / "new")
    assert 0o644 == (tmp_path / "new" / "a.json").stat().st_mode & 0o777


def test_a_writer_killed_between_write_and_rename_leaves_the_old_content(tmp_path):
    local.write_bytes(tmp_path / "a", b"old")
    script = """
import os, sys
from pathlib import Path
from tasks.store import local
os.fsync = lambda handle: os._exit(9)
local.write_bytes(Path(sys.argv[1]), b"new" * 1000)
"""
    root = Path(local.__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a")], cwd=root, check=False
    )

    assert 9 == killed.returncode
    assert b"old" == (tmp_path / "a").read_bytes()


def test_of_many_creators_one_wins_and_its_content_stays(tmp_path):
    won: list[int] = []

    def create(number: int) -> None:
        if local.create_bytes(tmp_path / "mark", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [int((tmp_path / "mark").read_bytes())] == won
    assert {"mark"} == names(tmp_path)


def test_lines_are_appended_whole(tmp_path):
    local.append_line(tmp_path / "log" / "a.jsonl", b"1")
    local.append_line(tmp_path / "log" / "a.jsonl", b"2")

    assert b"1\n2\n" == (tmp_path / "log" / "a.jsonl").read_bytes()


def test_a_staged_folder_appears_only_when_its_block_ends_well(tmp_path):
    with local.staged_folder(tmp_path / "step") as staged:
        (staged / "sub").mkdir()
        (staged / "sub" / "a").write_text("x")
        assert not (tmp_path / "step").exists()
    with pytest.raises(ZeroDivisionError), local.staged_folder(tmp_path / "other") as staged:
        (staged / "a").write_text(str(1 / 0))

    assert {"step"} == names(tmp_path)
    assert "x" == (tmp_path / "step" / "sub" / "a").read_text()


def test_of_two_staged_folders_the_first_stays(tmp_path):
    with local.staged_folder(tmp_path / "step") as late:
        (late / "a").write_text("late")
        with local.staged_folder(tmp_path / "step") as early:
            (early / "a").write_text("early")

    assert "early" == (tmp_path / "step" / "a").read_text()
    assert {"step"} == names(tmp_path)


def test_a_file_in_the_place_of_a_staged_folder_is_an_error(tmp_path):
    (tmp_path / "step").write_text("a file")

    with pytest.raises(NotADirectoryError), local.staged_folder(tmp_path / "step") as staged:
        (staged / "a").write_text("x")


def test_an_object_is_named_after_its_content(tmp_path):
    one = commit(tmp_path, {"b.txt": b"abc", "sub/a.txt": b""})
    two = commit(tmp_path, {"sub/a.txt": b"", "b.txt": b"abc"})
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    manifest = (
        f'{{"files":{{"b.txt":{{"bytes":3,"sha256":"{ABC}"}},'
        f'"sub/a.txt":{{"bytes":0,"sha256":"{empty}"}}}}}}'
    ).encode()

    assert one == two
    assert local.sha256_bytes(manifest) == one.digest
    assert tmp_path / "objects" / one.digest[:16] == Path(one.uri)
    assert manifest == (Path(one.uri) / local.MANIFEST).read_bytes()
    assert {one.digest[:16]} == names(tmp_path / "objects")


def test_a_manifest_below_the_top_is_a_file_like_any_other(tmp_path):
    made = commit(tmp_path, {"copy/MANIFEST.json": b"{}", "MANIFEST.json": b"stale"})

    local.verify_object(Path(made.uri), made.digest)
    (Path(made.uri) / "copy" / "MANIFEST.json").write_bytes(b"[]")
    with pytest.raises(TamperError, match=r"copy/MANIFEST\.json"):
        local.verify_object(Path(made.uri), made.digest)


def test_a_block_that_fails_commits_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), local.new_object(tmp_path) as (folder, committed):
        (folder / "a").write_text(str(1 / 0))

    assert ("", "") == (committed.uri, committed.digest)
    assert set() == names(tmp_path / "objects")


def test_a_killed_process_leaves_no_object_and_its_rubbish_is_swept(tmp_path):
    script = """
import os, sys
from pathlib import Path
from tasks.store import local
with local.new_object(Path(sys.argv[1])) as (folder, committed):
    (folder / "a").write_text("half")
    os._exit(9)
"""
    root = Path(local.__file__).parents[2]
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=False)
    (left,) = (tmp_path / "objects").iterdir()
    with local.new_object(tmp_path) as (living, _):
        for folder in (left, living):
            os.utime(folder, (0, 0))
        local.open_store(tmp_path)

        assert {living.name} == names(tmp_path / "objects")


def test_a_link_is_refused_because_its_target_could_change(tmp_path):
    (tmp_path / "outside").write_text("x")

    with (
        pytest.raises(DataError, match=r"model\.bin is not a regular file"),
        local.new_object(tmp_path) as (folder, _),
    ):
        (folder / "model.bin").symlink_to(tmp_path / "outside")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "b").write_bytes(b"abd"), r"/b: sha256 is a52d"),
        (lambda folder: (folder / "b").unlink(), r"/b: removed after commit"),
        (lambda folder: (folder / "sub" / "c").write_bytes(b""), r"sub/c: added after commit"),
        (lambda folder: (folder / "c").symlink_to("b"), r"/c: added after commit"),
        (
            lambda folder: (folder / "MANIFEST.json").write_bytes(b'{"files":{}}'),
            r"MANIFEST\.json: sha256 is [0-9a-f]{64}, recorded",
        ),
    ],
)
def test_every_kind_of_damage_names_the_file(tmp_path, damage, message):
    made = commit(tmp_path, {"b": b"abc", "sub/a": b"x"})
    damage(Path(made.uri))

    with pytest.raises(TamperError, match=message):
        local.verify_object(Path(made.uri), made.digest)


def test_an_object_that_is_gone_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"is gone\. Clear the cache"):
        local.verify_object(tmp_path / "objects" / "0", "0" * 64)


def test_a_damaged_object_is_not_trusted_when_its_content_is_made_again(tmp_path):
    made = commit(tmp_path, {"a": b"abc"})
    (Path(made.uri) / "a").write_bytes(b"abd")

    with pytest.raises(TamperError):
        commit(tmp_path, {"a": b"abc"})


def test_all_problems_of_an_object_are_found(tmp_path):
    made = commit(tmp_path, {"a": b"1", "b": b"2", "c": b"3"})
    folder = Path(made.uri)
    (folder / "a").write_bytes(b"9")
    (folder / "b").unlink()
    (folder / "d").write_bytes(b"4")

    found = [Path(where).name for where, _ in local.object_problems(folder, made.digest)]
    assert ["b", "d", "a"] == found


def test_a_manifest_cannot_reach_outside_its_folder():
    manifest = local.canonical_json({"files": {"../../x": {"bytes": 1, "sha256": ABC}}})

    with pytest.raises(TamperError, match="outside its artifact"):
        local.manifest_files(manifest, "here")


def test_a_store_keeps_its_id(tmp_path):
    first = local.open_store(tmp_path / "store")

    assert 32 == len(first)
    assert first == local.open_store(tmp_path / "store")
    assert first != local.open_store(tmp_path / "other")


def test_a_store_that_cannot_be_is_a_settings_error(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "store.json").write_text("{")

    with pytest.raises(SettingsError, match="cannot be written"):
        local.open_store(tmp_path / "file")
    with pytest.raises(SettingsError, match="is not a store mark"):
        local.open_store(tmp_path / "bad")
