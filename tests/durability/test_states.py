"""Committed states are signed for their work: what was put there is refused by name."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.durability import states
from tasks.durability.durable import restore_uploaded
from tasks.durability.upload import Pointer, Uploader, fetch_newest
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.errors import TamperError
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, folder_manifest
from tests.durability import shards_of_world
from tests.durability.shards_of_world import bytes_read, committed_and_restarted
from tests.engines.trainer_megatron.gloo_world import run_world


class Weights:
    """A trainer whose state is a few bytes."""

    def __init__(self) -> None:
        self.held = b"honest"

    def save(self, folder: Path) -> None:
        (folder / "trainer.pt").write_bytes(self.held)

    def restore(self, folder: Path) -> None:
        self.held = (folder / "trainer.pt").read_bytes()


def trainer() -> Any:
    """States need no more of a trainer than that it saves and restores."""
    return Weights()


def commit(folder: Path, step: int = 1) -> Path:
    states.commit(folder, step, trainer(), {"run.json": b"{}"}, [])
    return states.committed_folder(folder) / f"{step:06d}"


class Shards(Weights):
    """A trainer whose state is large on disk, and empty: sparse files take no space."""

    def save(self, folder: Path) -> None:
        for number in range(2):
            with (folder / f"shard-{number}.pt").open("wb") as file:
                file.truncate(SHARD_BYTES)

    def restore(self, folder: Path) -> None:
        """Read nothing: what is counted is what the check reads."""


SHARD_BYTES = 2**24


def poison(state: Path) -> None:
    """Change the weights and hash them again, as whoever has the disk can."""
    (state / "trainer.pt").write_bytes(b"poisoned")
    manifest = folder_manifest(state, {states.SIGNATURE})
    (state / MANIFEST).write_bytes(manifest)


def unsign(state: Path) -> None:
    poison(state)
    (state / states.SIGNATURE).unlink()


def sign_by_nobody(state: Path) -> None:
    poison(state)
    envelope = {
        "payload": "e30=",
        "payloadType": f"application/vnd.eachprompt.state; name=work/{state.name}",
        "signatures": [],
    }
    (state / states.SIGNATURE).write_bytes(canonical_json(envelope))


def transplant(state: Path) -> None:
    """A genuine state of other work."""
    other = commit(state.parents[2] / "other")
    shutil.rmtree(state)
    shutil.copytree(other, state)


@pytest.mark.attack
@pytest.mark.parametrize("forge", [poison, unsign, sign_by_nobody, transplant])
def test_a_state_that_was_not_signed_for_this_work_is_refused_by_name(
    tmp_path, forge: Callable[[Path], None]
):
    state = commit(tmp_path / "work")
    forge(state)
    held = trainer()

    with pytest.raises(TamperError, match=f"the state {state}"):
        states.restore(tmp_path / "work", held)
    assert b"honest" == held.held


@pytest.mark.attack
@pytest.mark.parametrize("forge", [poison, unsign, transplant])
def test_an_uploaded_state_that_was_not_signed_for_this_work_is_refused(tmp_path, forge):
    state = commit(tmp_path / "one" / "work")
    forge(state)
    manifest = (state / MANIFEST).read_bytes()
    name = f"000001-{sha256_bytes(manifest)[:16]}"
    shutil.copytree(state, tmp_path / "durable" / "states" / name)

    with pytest.raises(TamperError, match="the state "):
        fetch_newest(str(tmp_path / "durable"), tmp_path / "two" / "work")
    assert not list((tmp_path / "two").rglob("trainer.pt"))


def test_a_signed_state_goes_to_another_machine_with_the_same_key(tmp_path):
    commit(tmp_path / "one" / "work")
    uploader = Uploader(tmp_path / "one" / "work", store_at(str(tmp_path / "durable")))
    uploader.notify()
    assert uploader.flush(30.0)
    uploader.close()

    assert fetch_newest(str(tmp_path / "durable"), tmp_path / "two" / "work") == 1
    assert states.restore(tmp_path / "two" / "work", trainer()) is not None


def test_a_state_that_another_key_signed_is_refused(tmp_path, monkeypatch):
    commit(tmp_path / "work")
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "other.pem"))

    with pytest.raises(TamperError, match="not by this run's key"):
        states.restore(tmp_path / "work", trainer())


def test_without_a_key_nothing_is_signed_or_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "f1")
    monkeypatch.delenv(KEY_VARIABLE)
    commit(tmp_path / "work")

    assert states.restore(tmp_path / "work", trainer()) is not None


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux")
def test_a_restart_reads_a_state_once_to_check_it_and_again_only_if_it_changed(tmp_path):
    work = tmp_path / "work"
    states.commit(work, 1, Shards(), {}, [])
    digest = sha256_bytes((states.committed_folder(work) / "000001" / MANIFEST).read_bytes())
    slot = Noted(Pointer(uri=str(tmp_path / "elsewhere"), step=1, digest=digest))

    before = bytes_read()
    restore_uploaded(work, str(work), slot)
    states.restore(work, Shards())
    once = bytes_read() - before
    (states.committed_folder(work) / "000001" / "shard-1.pt").write_bytes(b"other")

    assert 2 * SHARD_BYTES <= once < 3 * SHARD_BYTES
    assert states.newest_whole(work) is None


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux")
def test_a_restart_reads_a_state_of_the_embedded_trainer_to_check_it_and_again_to_load_it(
    tmp_path, tiny_moe
):
    work, saved = tmp_path / "work", TorchTrainer(tiny_moe)
    states.commit(work, 1, saved, {}, [])
    state = states.committed_folder(work) / "000001"
    size = sum(path.stat().st_size for path in state.iterdir())

    before = bytes_read()
    assert states.newest_whole(work) == state
    checked = bytes_read() - before
    saved.restore(state)
    loaded = bytes_read() - before - checked

    assert [pytest.approx(size, rel=0.1)] * 2 == [checked, loaded]


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux")
def test_every_rank_of_a_team_hashes_its_own_shard_once_at_a_commit_and_once_at_a_restart(tmp_path):
    ranks = run_world(committed_and_restarted, 3, tmp_path / "work")

    twice = 2 * shards_of_world.SHARD_BYTES
    assert [True] * 3 == [twice <= read < 1.05 * twice for read, _ in ranks]
    alone = folder_manifest(tmp_path / "work/committed/000001", {states.SIGNATURE})
    assert {alone} == {manifest for _, manifest in ranks}


class Noted:
    """A slot of Flyte that holds a pointer."""

    def __init__(self, pointer: Pointer) -> None:
        self.held = canonical_json(pointer)

    def read(self) -> bytes:
        return self.held

    def write(self, b: bytes) -> None:
        self.held = b


def test_the_step_after_999999_is_the_newest_here_and_where_it_is_uploaded(tmp_path):
    folder, place = tmp_path / "work", str(tmp_path / "store")
    for step in (999_998, 999_999, 1_000_000):
        commit(folder, step)
        uploader = Uploader(folder, store_at(place))
        uploader.notify()
        assert uploader.flush(20.0)
        uploader.close()
    newest = states.restore(folder, trainer())

    assert newest is not None
    assert "1000000" == newest.name
    assert 1_000_000 == fetch_newest(place, tmp_path / "other" / "work")
    kept = {name.partition("-")[0] for name in store_at(f"{place}/states").list_files()}
    assert {"999999", "1000000"} == kept
