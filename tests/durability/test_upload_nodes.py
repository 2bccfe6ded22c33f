"""Several nodes upload a state: every file is there, whoever of them dies, hangs or fails."""

import shutil
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tasks.durability import states
from tasks.durability.upload import (
    CLAIMS,
    HELD,
    Uploader,
    fetch_newest,
    pointer_to,
    state_name,
)
from tasks.durability.upload_claims import upload_claimed, upload_together
from tasks.durability.upload_nodes import Helper
from tasks.errors import EngineError
from tasks.rl import state
from tasks.store.files import link_folder
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files
from tests.durability import uploads_of_world
from tests.durability.uploads_of_world import uploaded
from tests.engines.trainer_megatron.gloo_world import run_world

NAMES = [f"shard {number}" for number in range(20)]
PATIENCE_S = 20.0


@pytest.fixture
def claims(tmp_path):
    return tmp_path / "claims" / "000001-0123456789abcdef"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "local" / "work"


@pytest.fixture
def place(tmp_path):
    return store_at(str(tmp_path / "durable"))


def test_two_nodes_upload_every_file_once(claims):
    sent = Counter()
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def upload(name):
        if name in NAMES[:2]:  # the first file of each
            both.wait()
        sent[name] += 1

    def help_out():
        while not claims.is_dir():
            time.sleep(0.001)
        with suppress(FileNotFoundError):  # the other one has uploaded the last file
            upload_claimed(claims, NAMES, upload)

    helper = threading.Thread(target=help_out)
    helper.start()
    upload_together(claims, NAMES, upload)
    helper.join(PATIENCE_S)

    assert Counter(NAMES) == sent
    assert not claims.exists()


def test_no_file_is_free_while_the_claims_are_removed(claims, monkeypatch):
    late = []
    plain = shutil.rmtree

    def removing(path, **options):
        (Path(path) / "0").unlink(missing_ok=True)  # the first file that it removes
        with suppress(FileNotFoundError):
            upload_claimed(claims, NAMES, late.append)
        plain(path, **options)

    monkeypatch.setattr(shutil, "rmtree", removing)
    upload_together(claims, NAMES, lambda _: None)

    assert not late
    assert not list(claims.parent.iterdir())


def test_what_a_dead_node_has_claimed_is_uploaded_in_its_place(claims, caplog):
    sent = []

    def upload(name):
        if not sent:  # another node claims the last two files, and dies
            (claims / "18").touch()
            (claims / "19").touch()
        sent.append(name)

    upload_together(claims, NAMES, upload, late_s=0.05)

    assert NAMES == sent
    assert "2 files of 000001-0123456789abcdef are overdue elsewhere" in caplog.text


def test_what_a_node_cannot_upload_is_free_again(claims):
    claims.mkdir(parents=True)

    def broken(name):
        raise EngineError("storage is away")

    with pytest.raises(EngineError):
        upload_claimed(claims, NAMES, broken)
    sent = []
    upload_claimed(claims, NAMES, sent.append)
    assert NAMES == sent


def test_an_upload_that_fails_at_the_end_leaves_no_claims_and_is_whole_when_repeated(claims):
    sent = []

    def fails_once(name):
        if name == NAMES[-1] and len(sent) < len(NAMES):
            sent.append(name)
            raise EngineError("storage is away")
        sent.append(name)

    with pytest.raises(EngineError):
        upload_together(claims, NAMES, fails_once)
    assert not claims.exists()
    upload_together(claims, NAMES, fails_once)
    assert NAMES == sent[len(NAMES) :]


class Node:
    """The store as one node sees it.

    Args:
        waits_for: before its first file of a state.
        away: every upload fails.
    """

    def __init__(self, store, waits_for=None, *, away=False):
        self.tried, self.sent = threading.Event(), []
        self._store, self._waits_for, self._away = store, waits_for, away

    def __getattr__(self, name):
        return getattr(self._store, name)

    def upload_file(self, path, name=""):
        self.tried.set()
        if self._away:
            raise EngineError("storage is away")
        if self._waits_for is not None and name.startswith("states"):
            assert self._waits_for.wait(PATIENCE_S)
        self._store.upload_file(path, name)
        self.sent.append(name)


@pytest.fixture
def upload_with(folder, place, small_phase):
    """Upload a state, waiting for the helping node to take a file."""

    def upload(helping):
        small_phase(folder, 1, 1)
        uploader = Uploader(folder, Node(place, helping.tried), first_pause_s=0.01)
        (folder / CLAIMS).mkdir()
        helper = Helper(folder, helping)
        uploader.notify()
        assert uploader.flush(PATIENCE_S)
        uploader.close()
        helper.thread.join(PATIENCE_S)
        assert not helper.thread.is_alive()
        return uploader

    return upload


def test_another_node_uploads_files_of_the_state_and_ends_with_the_uploader(
    folder, place, upload_with, number, tmp_path
):
    helping, other = Node(place), tmp_path / "other" / "work"

    assert 1 == upload_with(helping).counts.uploaded
    assert helping.sent
    assert 1 == fetch_newest(place.uri, other)
    assert state.restore(folder, number) == state.restore(other, number)
    assert not (folder / CLAIMS).exists()


def test_a_node_whose_storage_is_away_holds_up_nothing(place, upload_with, tmp_path, caplog):
    counts = upload_with(Node(place, away=True)).counts

    assert (1, 0) == (counts.uploaded, counts.failed)
    assert 1 == fetch_newest(place.uri, tmp_path / "other" / "work")
    assert "this node uploads nothing for 2 s: EngineError: storage is away" in caplog.text


def test_no_list_on_the_disk_says_what_leaves_the_machine(folder, place, small_phase):
    small_phase(folder, 1, 1)
    held = folder / HELD / "000001"
    link_folder(states.committed_folder(folder) / "000001", held)
    (held / "planted").write_text("of the machine")
    name = state_name(pointer_to(held, place.uri))
    for claimed in (name, "000000-0123456789abcdef", "000001-0123456789abcdef", "stray"):
        (folder / CLAIMS / claimed).mkdir(parents=True)
    helping = Node(place)

    helper = Helper(folder, helping)
    files = manifest_files((held / MANIFEST).read_bytes(), str(held))
    while len(list((folder / CLAIMS / name).glob("*.done"))) < len(files):
        time.sleep(0.01)
    shutil.rmtree(folder / CLAIMS)
    helper.thread.join(PATIENCE_S)

    assert sorted(f"states/{name}/{file}" for file in files) == sorted(helping.sent)


def test_three_nodes_upload_a_state_that_another_machine_resumes(tmp_path):
    folder, uri = tmp_path / "shared" / "work", str(tmp_path / "durable")
    shares = run_world(uploaded, 3, folder, uri)

    shards = Counter(name for share in shares for name in share if name.endswith(".distcp"))
    assert {f"{number}.distcp": 1 for number in range(uploads_of_world.SHARDS)} == shards
    assert all(shares)
    other = tmp_path / "other" / "work"
    assert 1 == fetch_newest(uri, other)
    here, there = (
        {path.name: path.read_bytes() for path in (one / "committed/000001").iterdir()}
        for one in (folder, other)
    )
    assert here == there
