"""States leave the machine while training goes on, and come back whole or not at all."""

import itertools
import shutil
import threading
import time
from pathlib import Path

import boto3
import pytest

from tasks.durability import states
from tasks.durability.upload import Uploader, fetch_newest
from tasks.errors import EngineError
from tasks.rl import state
from tasks.rl.collector import first_state
from tasks.store.interface import store_at
from tests.slices import sliced

pytestmark = pytest.mark.attack

PREFIX = "s3://bucket/store/state/abc"
PATIENCE_S = 20.0


@pytest.fixture(params=["disk", "s3"])
def place(request, tmp_path):
    """Both kinds of durable prefix."""
    if request.param == "disk":
        return str(tmp_path / "durable")
    request.getfixturevalue("bucket")
    return PREFIX


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "local" / "work"


@pytest.fixture
def uploading(folder):
    """Make uploaders and end their threads after the test."""
    made = []

    def make(place: str | Gate) -> Uploader:
        store = store_at(place) if isinstance(place, str) else place
        made.append(Uploader(folder, store, first_pause_s=0.01))
        return made[-1]

    yield make
    for uploader in made:
        uploader.close()


def upload_each(uploader, small_phase, folder, last):
    for step in range(1, last + 1):
        small_phase(folder, step, step)
        uploader.notify()
        assert uploader.flush(PATIENCE_S)


def states_at(uri: str) -> set[str]:
    return {name.partition("-")[0] for name in store_at(f"{uri}/states").list_files()}


@pytest.mark.slow
def test_another_machine_goes_on_where_this_one_was(
    place, folder, uploading, small_phase, number, tmp_path
):
    upload_each(uploading(place), small_phase, folder, 3)
    other = tmp_path / "other" / "work"

    assert 3 == fetch_newest(place, other)
    assert state.restore(folder, number) == state.restore(other, number)
    assert 3 == number.value
    assert list(state.read_steps(folder, 3)) == list(state.read_steps(other, 3))
    assert b"3" == states.read_file(other, 3, "state.npz")


@pytest.fixture
def rolled_out(folder, settings, problems):
    """Keep a step's rollouts, as its updates begin."""

    def keep(step: int) -> bytes:
        pending = state.PendingState(first_state(settings, problems), ())
        state.keep_rollouts(folder, step, pending)
        return (folder / f"rollouts/{step:06d}/state.npz").read_bytes()

    return keep


@pytest.mark.slow
def test_another_machine_goes_on_from_the_rollouts_that_a_step_was_lost_behind(
    place, folder, uploading, small_phase, rolled_out, tmp_path
):
    uploader = uploading(place)
    first = rolled_out(1)
    assert uploader.flush(PATIENCE_S)
    assert 0 == fetch_newest(place, early := tmp_path / "early" / "work")
    assert first == state.kept_rollouts(early, 1)

    upload_each(uploader, small_phase, folder, 1)
    assert not store_at(f"{place}/rollouts").list_files()
    second = rolled_out(2)
    while not store_at(f"{place}/rollouts").list_files():
        time.sleep(0.01)  # nobody says that they are there
    assert uploader.flush(PATIENCE_S)
    assert 1 == fetch_newest(place, other := tmp_path / "other" / "work")
    assert second == state.kept_rollouts(other, 2)
    assert (1, 0, 0) == (uploader.counts.uploaded, uploader.counts.skipped, uploader.counts.failed)
    assert not list((folder / "uploading").glob("*"))


def test_names_beside_uploaded_rollouts_reach_no_other_folder_and_stop_no_upload(
    bucket, folder, uploading, small_phase, rolled_out, tmp_path
):
    uploader = uploading(PREFIX)
    kept = rolled_out(1)
    assert uploader.flush(PATIENCE_S)
    (signed,) = {name.partition("/")[0] for name in store_at(f"{PREFIX}/rollouts").list_files()}
    for name in (f"{signed}/../../../../escaped", f"{signed}/../escaped", "stray/file", "1-x/file"):
        boto3.client("s3").put_object(
            Bucket="bucket", Key=f"store/state/abc/rollouts/{name}", Body=b"planted"
        )

    assert 0 == fetch_newest(PREFIX, other := tmp_path / "other" / "work")
    assert kept == state.kept_rollouts(other, 1)
    assert not list(tmp_path.rglob("escaped"))
    upload_each(uploader, small_phase, folder, 1)
    assert (1, 0, 0) == (uploader.counts.uploaded, uploader.counts.skipped, uploader.counts.failed)


def test_rollouts_that_vanish_while_they_are_fetched_are_drawn_again(
    bucket, uploading, rolled_out, tmp_path
):
    uploader = uploading(PREFIX)
    rolled_out(1)
    assert uploader.flush(PATIENCE_S)
    files = store_at(f"{PREFIX}/rollouts").list_files()
    (signature,) = (name for name in files if name.endswith(states.SIGNATURE))
    store_at(f"{PREFIX}/rollouts").delete_file(signature)

    assert 0 == fetch_newest(PREFIX, other := tmp_path / "other" / "work")
    assert state.kept_rollouts(other, 1) is None


@pytest.mark.slow
def test_only_the_newest_states_are_kept_there(place, folder, uploading, small_phase):
    uploader = uploading(place)
    upload_each(uploader, small_phase, folder, 4)

    assert {"000003", "000004"} == states_at(place)
    assert (4, 0, 0) == (uploader.counts.uploaded, uploader.counts.skipped, uploader.counts.failed)
    assert not list((folder / "uploading").glob("*"))


@pytest.mark.slow
def test_names_beside_uploaded_states_stop_no_upload_and_are_left_alone(
    place, folder, uploading, small_phase, tmp_path
):
    beside = store_at(f"{place}/states")
    for name in ("stray", "0-x", "000001-x", "000000-0123456789abcdeg"):
        beside.write_bytes(b"planted", f"{name}/file")
        beside.write_bytes(b"planted", f"{name}/MANIFEST.json")
    uploader = uploading(place)
    upload_each(uploader, small_phase, folder, 4)

    assert (4, 0, 0) == (uploader.counts.uploaded, uploader.counts.skipped, uploader.counts.failed)
    assert 4 == fetch_newest(place, tmp_path / "other" / "work")
    assert {"stray", "0", "000001", "000000", "000003", "000004"} == {
        name.partition("/")[0].partition("-")[0] for name in beside.list_files()
    }


def test_a_record_is_uploaded_once(folder, uploading, small_phase, tmp_path):
    place = str(tmp_path / "durable")
    upload_each(uploading(place), small_phase, folder, 2)
    written = {path: path.stat().st_mtime_ns for path in Path(place, "steps").iterdir()}
    small_phase(folder, 3, 3)
    later = uploading(place)
    later.notify()
    assert later.flush(PATIENCE_S)

    assert 3 == len(list(Path(place, "steps").iterdir()))
    assert written.items() <= {p: p.stat().st_mtime_ns for p in written}.items()


@pytest.mark.parametrize(
    ("damage", "file"),
    sliced(
        itertools.product(("gone", "changed"), ("trainer.pt", "MANIFEST.json", "records.json")),
        lambda damage, file: (damage, file) == ("changed", "trainer.pt"),
    ),
)
def test_an_upload_that_is_not_whole_gives_way_to_the_one_before(
    place, folder, uploading, small_phase, tmp_path, file, damage
):
    upload_each(uploading(place), small_phase, folder, 3)
    names = store_at(f"{place}/states").list_files()
    (newest,) = (n for n in names if n.startswith("000003") and n.endswith(f"/{file}"))
    if damage == "gone":
        store_at(f"{place}/states/{newest}").delete_file()
    else:
        store_at(f"{place}/states/{newest}").write_bytes(b"{}")

    assert 2 == fetch_newest(place, tmp_path / "other" / "work")


@pytest.mark.slow
def test_a_state_without_its_records_gives_way_to_the_one_before(
    place, folder, uploading, small_phase, tmp_path, caplog
):
    upload_each(uploading(place), small_phase, folder, 3)
    (last,) = (n for n in store_at(f"{place}/steps").list_files() if n.startswith("000003"))
    store_at(f"{place}/steps/{last}").write_bytes(b"{}")

    assert 2 == fetch_newest(place, tmp_path / "other" / "work")
    assert f"{last} is not what was uploaded" in caplog.text


def test_what_is_on_the_disk_is_not_fetched_again(place, folder, uploading, small_phase, caplog):
    upload_each(uploading(place), small_phase, folder, 2)
    small_phase(folder, 3, 3)

    assert 3 == fetch_newest(place, folder)
    assert "downloaded" not in caplog.text


@pytest.mark.slow
def test_a_damaged_local_state_is_replaced_by_the_uploaded_one(
    place, folder, uploading, small_phase, number
):
    upload_each(uploading(place), small_phase, folder, 3)
    (folder / "committed/000003/trainer.pt").write_text("7")

    assert 3 == fetch_newest(place, folder)
    assert 3 == state.restore(folder, number).step
    assert 3 == number.value


def test_nothing_uploaded_is_a_fresh_start(place, tmp_path):
    assert 0 == fetch_newest(place, tmp_path / "other" / "work")


def test_a_place_that_does_not_answer_is_no_fresh_start(bucket, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9"):
        fetch_newest(PREFIX, tmp_path / "other" / "work")


class Gate:
    """A store whose uploads wait until they are let through, and fail a number of times."""

    def __init__(self, uri):
        self.entered, self.let_through, self.failures = threading.Event(), threading.Event(), 0
        self._store = store_at(uri)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def upload_file(self, path, name=""):
        self.entered.set()
        assert self.let_through.wait(PATIENCE_S)
        if self.failures:
            self.failures -= 1
            raise EngineError("storage is away")
        self._store.upload_file(path, name)


def test_training_never_waits_and_overtaken_states_are_counted(
    folder, uploading, small_phase, tmp_path
):
    place = str(tmp_path / "durable")
    gate = Gate(place)
    uploader = uploading(gate)
    small_phase(folder, 1, 1)
    uploader.notify()
    assert gate.entered.wait(PATIENCE_S)
    started = time.monotonic()
    for step in range(2, 6):  # the state under way is dropped locally meanwhile
        small_phase(folder, step, step)
        uploader.notify()
    assert time.monotonic() - started < PATIENCE_S / 2
    assert not uploader.flush(0.01)
    gate.let_through.set()

    assert uploader.flush(PATIENCE_S)
    assert {"000001", "000005"} == states_at(place)
    assert (2, 3) == (uploader.counts.uploaded, uploader.counts.skipped)
    assert 5 == uploader.newest.step


def test_failures_are_tried_again_and_stop_nothing(
    folder, uploading, small_phase, tmp_path, caplog
):
    gate = Gate(str(tmp_path / "durable"))
    gate.failures = 3
    gate.let_through.set()
    uploader = uploading(gate)
    small_phase(folder, 1, 1)
    uploader.notify()

    while uploader.newest is None:
        time.sleep(0.01)
    assert uploader.flush(PATIENCE_S)
    assert (1, 3) == (uploader.counts.uploaded, uploader.counts.failed)
    assert "state 000001 is not durable yet" in caplog.text
    assert "storage is away" in caplog.text


def test_an_upload_cut_off_anywhere_leaves_the_one_before(folder, uploading, small_phase, tmp_path):
    place = str(tmp_path / "durable")
    upload_each(uploading(place), small_phase, folder, 2)
    small_phase(folder, 3, 3)
    whole = tmp_path / "whole"
    later = uploading(str(whole))
    later.notify()
    assert later.flush(PATIENCE_S)
    files = sorted(path for path in whole.rglob("*") if path.is_file() and "000003" in str(path))
    # As the uploader sends them: records, the state's files, its manifest.
    files.sort(key=lambda path: (path.parent.name != "steps", path.name == "MANIFEST.json"))
    for number, path in enumerate(files):
        other = tmp_path / f"other{number}" / "work"
        assert 2 == fetch_newest(place, other), path
        target = Path(place) / path.relative_to(whole)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)

    assert 3 == fetch_newest(place, tmp_path / "last" / "work")


def test_a_folder_that_is_durable_itself_is_not_copied(folder, uploading, small_phase):
    uploader = uploading(str(folder))
    upload_each(uploader, small_phase, folder, 2)

    assert 2 == uploader.newest.step
    assert {"committed", "steps"} == {path.name for path in folder.iterdir()}
