"""Folders as downloads leave them: opened without what git and the hub added, or told apart."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.curation.rows import check_readable
from tasks.errors import DataError, SettingsError
from tasks.models.model_folder import SHIPPED, check_model_folder
from tasks.store.manifest import copy_folder, folder_manifest, source_manifest

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n"


def cached(home: Path) -> Path:
    """Lay the shipped model out as the hub's cache does."""
    snapshot = home / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (home / "blobs").mkdir()
    for file in SHIPPED.iterdir():
        if file.is_file():
            shutil.copy(file, home / "blobs" / file.name)
            (snapshot / file.name).symlink_to(Path("../../blobs", file.name))
    return snapshot


def test_an_adapter_is_no_model_and_is_named(tmp_path: Path):
    (tmp_path / "adapter_config.json").write_text("{}")

    with pytest.raises(SettingsError, match=r"is an adapter and no model\. Merge it"):
        check_model_folder(tmp_path)


def test_what_git_and_the_hub_write_is_no_part_of_a_model(tmp_path: Path):
    plain, clone, copy = tmp_path / "plain", tmp_path / "clone", tmp_path / "copy"
    shutil.copytree(SHIPPED, plain)
    shutil.copytree(SHIPPED, clone)
    for name in (".git/objects/pack", ".cache/huggingface/download/config.json.lock"):
        (clone / name).parent.mkdir(parents=True)
        (clone / name).write_text("theirs")
    (clone / ".gitattributes").write_text("*.safetensors filter=lfs")

    copy_folder(clone, copy)

    assert source_manifest(plain) == source_manifest(clone) == folder_manifest(copy)


def test_a_snapshot_in_the_hubs_cache_is_a_model(tmp_path: Path):
    snapshot = cached(tmp_path / "models--me--tiny")

    check_model_folder(snapshot)
    copy_folder(snapshot, tmp_path / "copy")

    assert source_manifest(snapshot) == folder_manifest(tmp_path / "copy")


def _without_blobs(folder: Path) -> Path:
    snapshot = cached(folder)
    shutil.rmtree(folder / "blobs")
    return snapshot


def _with_pointers(folder: Path) -> Path:
    shutil.copytree(SHIPPED, folder)
    (folder / "model.safetensors").write_text(POINTER)
    return folder


UNFINISHED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "the cache's own folder": (
        lambda folder: cached(folder).parents[1],
        r"is a repository in the hub's cache. Name its files: .*/snapshots/c0ffee",
    ),
    "links without their files": (
        _without_blobs,
        r"is a link to \.\./\.\./blobs/.*, and nothing is there.*hf download",
    ),
    "pointers": (_with_pointers, r"model.safetensors is a pointer of Git LFS.*lfs pull"),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_download_that_is_not_whole_is_told_apart(tmp_path: Path, name: str):
    make, message = UNFINISHED[name]

    with pytest.raises(SettingsError, match=message):
        check_model_folder(make(tmp_path / "model"))


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet", "rows.xlsx"])
def test_a_table_that_was_not_fetched_is_told_apart(tmp_path: Path, name: str):
    (tmp_path / name).write_text(POINTER)

    with pytest.raises(DataError, match=re.escape(f"{name} is a pointer of Git LFS")):
        check_readable(tmp_path / name)
