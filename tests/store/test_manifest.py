"""A folder against its manifest: loud about every changed byte."""

import os
import shutil
from pathlib import Path

import pytest

from tasks.errors import DataError, TamperError
from tasks.store.files import canonical_json
from tasks.store.local import NewObject, new_object
from tasks.store.manifest import (
    folder_manifest,
    folder_problems,
    manifest_files,
    source_manifest,
    verify_folder,
)


def commit(store: Path, files: dict[str, bytes]) -> NewObject:
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


@pytest.mark.attack
@pytest.mark.parametrize("content", [b"[" * 200_000, b"[]", b'{"files": {"a": 1}}', b"\xff"])
def test_what_is_no_manifest_is_named(content):
    with pytest.raises(TamperError, match="here is not a manifest"):
        manifest_files(content, "here")


def hub_cache(root: Path) -> Path:
    """A snapshot as huggingface_hub lays it out: links to blobs."""
    repository = root / "hub" / "models--shop--tiny"
    snapshot = repository / "snapshots" / "abc"
    (repository / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name, blob in (("config.json", "11"), ("model.safetensors", "22")):
        (repository / "blobs" / blob).write_bytes(name.encode())
        (snapshot / name).symlink_to(Path("..", "..", "blobs", blob))
    return snapshot


def test_a_snapshot_of_the_hub_cache_is_listed_as_its_copy(tmp_path):
    snapshot = hub_cache(tmp_path)
    copy = shutil.copytree(snapshot, tmp_path / "copy")

    assert folder_manifest(copy) == source_manifest(snapshot) == source_manifest(copy)
    with pytest.raises(DataError, match=r"config\.json is not a regular file"):
        folder_manifest(snapshot)


@pytest.mark.attack
@pytest.mark.parametrize("target", ["../../.aws/credentials", "../other/config.json"])
def test_a_folder_that_is_called_a_snapshot_reads_no_other_file_of_a_home(tmp_path, target):
    """Unpacked in a home folder, an archive with snapshots/model would lead anywhere below it."""
    folder = tmp_path / "snapshots" / "model"
    for place in (".aws/credentials", "snapshots/other/config.json"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("secret")
    folder.mkdir()
    (folder / "chat_template.jinja").symlink_to(target)

    with pytest.raises(DataError, match="neither a file nor a link to a file below"):
        source_manifest(folder)


def test_the_digest_of_a_link_is_that_of_its_content(tmp_path):
    snapshot = hub_cache(tmp_path)
    before = source_manifest(snapshot)
    (snapshot.parents[1] / "blobs" / "22").write_bytes(b"other")

    assert before != source_manifest(snapshot)


@pytest.mark.parametrize(
    "plant",
    [
        lambda place, outside: place.symlink_to(outside / "secret"),
        lambda place, outside: place.symlink_to(outside),
        lambda place, outside: place.symlink_to(outside / "nowhere"),
        lambda place, outside: place.symlink_to(place.name),
        lambda place, outside: place.symlink_to("/dev/zero"),
        lambda place, outside: os.mkfifo(place),
    ],
    ids=["file", "folder", "dangling", "loop", "device", "fifo"],
)
@pytest.mark.parametrize("make", [hub_cache, lambda root: root], ids=["hub", "plain"])
def test_what_leads_out_of_a_model_folder_is_refused_with_the_fix(tmp_path, make, plant):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("key")
    (tmp_path / "model").mkdir()
    folder = make(tmp_path / "model")
    plant(folder / "extra", outside)

    with pytest.raises(DataError, match=r"/extra is neither a file nor a link .* `cp -rL"):
        source_manifest(folder)
