"""A folder against its manifest: loud about every changed byte."""

from pathlib import Path

import pytest

from tasks.errors import DataError, TamperError
from tasks.store.files import canonical_json
from tasks.store.local import Committed, new_object
from tasks.store.manifest import folder_problems, manifest_files, verify_folder


def commit(store: Path, files: dict[str, bytes]) -> Committed:
    with new_object(store) as (folder, committed):
        for name, payload in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(payload)
    return committed


def test_a_manifest_below_the_top_is_a_file_like_any_other(tmp_path):
    made = commit(tmp_path, {"copy/MANIFEST.json": b"{}", "MANIFEST.json": b"stale"})

    verify_folder(Path(made.uri), made.digest)
    (Path(made.uri) / "copy" / "MANIFEST.json").write_bytes(b"[]")
    with pytest.raises(TamperError, match=r"copy/MANIFEST\.json"):
        verify_folder(Path(made.uri), made.digest)


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
        verify_folder(Path(made.uri), made.digest)


def test_an_object_that_is_gone_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"is gone\. Clear the cache"):
        verify_folder(tmp_path / "objects" / "0", "0" * 64)


def test_all_problems_of_an_object_are_found(tmp_path):
    made = commit(tmp_path, {"a": b"1", "b": b"2", "c": b"3"})
    folder = Path(made.uri)
    (folder / "a").write_bytes(b"9")
    (folder / "b").unlink()
    (folder / "d").write_bytes(b"4")

    found = [Path(where).name for where, _ in folder_problems(folder, made.digest)]
    assert ["b", "d", "a"] == found


def test_a_manifest_cannot_reach_outside_its_folder():
    manifest = canonical_json({"files": {"../../x": {"bytes": 1, "sha256": 64 * "0"}}})

    with pytest.raises(TamperError, match="outside its artifact"):
        manifest_files(manifest, "here")
