"""Evidence that was replaced by something else is named, never followed, and never waited for."""

import os
import shutil
from pathlib import Path

import pytest

from tasks.provenance.audit import reading
from tasks.provenance.audit.reading import UnreadableEvidence, check_folder, hash_file, read_record
from tasks.provenance.audit.walk import audit
from tasks.store.files import sha256_file
from tasks.store.local import new_object
from tests.slices import sliced

pytestmark = pytest.mark.attack


def findings(chain) -> dict[str, str]:
    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    return {found.object: found.problem for found in report.findings}


def links(path, tmp_path):
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    return "is a link; its content lies outside the store"


def dangles(path, tmp_path):
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    return "is a link; its content lies outside the store"


def pipes(path, tmp_path):
    path.unlink()
    os.mkfifo(path)
    return "is no regular file"


def leads_to_a_device(path, tmp_path):
    path.unlink()
    path.symlink_to("/dev/zero")
    return "is a link; its content lies outside the store"


def is_a_folder(path, tmp_path):
    path.unlink()
    path.mkdir()
    return "cannot be read: Is a directory"


REPLACED = [links, dangles, pipes, leads_to_a_device]


@pytest.mark.parametrize("how", REPLACED)
def test_a_model_file_that_was_replaced_is_named_and_the_rest_audited(chain, tmp_path, how):
    path = chain.folder("policy") / "model.safetensors"
    problem = how(path, tmp_path)
    other = chain.folder("base") / "model.safetensors"
    other.write_bytes(b"changed")
    found = findings(chain)

    assert {str(path), str(other)} == found.keys()
    assert problem == found[str(path)]


@pytest.mark.slow
@pytest.mark.parametrize("how", [*REPLACED, is_a_folder])
def test_a_statement_that_was_replaced_is_named(chain, tmp_path, how):
    path = chain.statement("policy")
    how(path, tmp_path)

    assert [str(path)] == list(findings(chain))


@pytest.mark.parametrize("how", sliced(REPLACED, lambda how: how is REPLACED[0]))
def test_a_manifest_that_was_replaced_is_named(chain, tmp_path, how):
    path = chain.folder("release") / "MANIFEST.json"
    problem = how(path, tmp_path)

    assert {str(path): problem} == findings(chain)


@pytest.mark.parametrize("how", sliced(REPLACED, lambda how: how is REPLACED[-1]))
def test_the_manifest_of_a_release_that_was_replaced_is_named(chain, tmp_path, how):
    path = chain.folder("release") / "manifest.json"
    problem = how(path, tmp_path)

    assert {str(path): problem} == findings(chain)


def test_an_object_folder_that_is_a_link_to_outside_is_named(chain, tmp_path):
    folder = chain.folder("policy")
    shutil.move(folder, tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")

    assert {str(folder): "is a link; its content lies outside the store"} == findings(chain)


def test_a_folder_of_an_object_that_is_a_link_is_named(chain, tmp_path):
    (tmp_path / "outside").mkdir()
    link = chain.folder("policy") / "more"
    link.symlink_to(tmp_path / "outside")

    assert {str(link): "added after commit"} == findings(chain)


def test_an_empty_folder_in_an_object_is_named(chain):
    (chain.folder("policy") / "more" / "empty").mkdir(parents=True)

    assert {
        str(chain.folder("policy") / "more"): "folder added after commit",
        str(chain.folder("policy") / "more" / "empty"): "folder added after commit",
    } == findings(chain)


def test_a_manifest_of_gigabytes_is_named_without_reading_it(chain):
    path = chain.folder("policy") / "MANIFEST.json"
    with path.open("r+b") as stream:
        stream.truncate(2**40)

    assert {str(path): f"is {2**40} bytes, too large for a record"} == findings(chain)


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "shard"
    path.write_bytes(b"x")
    assert sha256_file(path) == hash_file(path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading.os, "open", refuse)
    with pytest.raises(UnreadableEvidence, match="cannot be read: Permission denied"):
        hash_file(path)
    with pytest.raises(UnreadableEvidence, match="cannot be read: Permission denied"):
        read_record(str(path))


def test_a_source_that_became_a_pipe_is_named(chain):
    path = chain.outside / "gsm8k.jsonl"
    before = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    try:
        assert [str(path)] == list(findings(chain))
    finally:
        path.unlink()
        path.write_bytes(before)


def test_a_copied_store_holds_the_base_model_that_lay_elsewhere(chain, tmp_path):
    base = chain.outside / "base"
    base.rename(tmp_path / "base")
    try:
        assert {} == findings(chain)
        flipped = chain.folder("base") / "model.safetensors"
        flipped.write_bytes(b"other")
        assert {str(flipped), base.as_uri()} == findings(chain).keys()
    finally:
        (tmp_path / "base").rename(base)


@pytest.mark.attack
def test_a_sparse_file_far_larger_than_recorded_is_not_read(tmp_path):
    with new_object(tmp_path) as (folder, committed):
        (folder / "model.safetensors").write_bytes(b"weights")
    path = Path(committed.uri, "model.safetensors")
    os.truncate(path, 200 * 2**30)

    assert [(str(path), f"is {200 * 2**30} bytes, recorded 7")] == list(
        check_folder(committed.uri, committed.digest)
    )
