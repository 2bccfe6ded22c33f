"""A phase that moves from machine to machine, with Flyte's own checkpoint holding the pointer."""

import pytest
from flytekit.core.checkpointer import SyncCheckpoint

from tasks.durability import states
from tasks.durability.durable import keep_durable, read_pointer, write_pointer
from tasks.durability.upload import Pointer
from tasks.errors import PreemptionError
from tasks.rl import state

POINTER = Pointer(uri="s3://bucket/state/abc", step=7, digest="d" * 64)


@pytest.fixture
def attempt(tmp_path):
    """Flyte's checkpoint of the n-th attempt: it reads what the one before wrote, no other."""

    made = []

    def make(number: int) -> SyncCheckpoint:
        before = str(tmp_path / f"attempt{number - 1}") if number else None
        made.append(SyncCheckpoint(str(tmp_path / f"attempt{number}"), before))
        return made[-1]

    yield make
    for checkpoint in made:
        checkpoint._td.cleanup()  # at the end of the process it would warn


def test_the_next_attempt_reads_the_pointer(attempt):
    slot = attempt(0)
    assert read_pointer(slot) is None
    write_pointer(slot, POINTER.model_copy(update={"step": 6}))
    write_pointer(slot, POINTER)

    assert POINTER == read_pointer(attempt(1))


def test_an_attempt_that_died_before_it_wrote_anything_left_no_pointer(attempt, caplog):
    assert read_pointer(attempt(1)) is None
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("content", [b"", b"half a poi", b'{"step": 1}'])
def test_what_is_no_pointer_is_passed_over(attempt, caplog, content):
    attempt(0).write(content)

    assert read_pointer(attempt(1)) is None
    assert "holds no pointer" in caplog.text


def test_several_files_are_no_pointer(attempt, tmp_path, caplog):
    write_pointer(attempt(0), POINTER)
    (tmp_path / "attempt0" / "other").write_bytes(b"")

    assert read_pointer(attempt(1)) is None
    assert "Expected exactly one checkpoint" in caplog.text


def test_a_checkpoint_that_cannot_be_written_stops_nothing(attempt, tmp_path, caplog):
    (tmp_path / "attempt0").write_bytes(b"a file where a folder should be")
    write_pointer(attempt(0), POINTER)

    assert "pointer to step 7 was not written" in caplog.text


def test_a_platform_without_checkpoints_does_without(tmp_path):
    assert read_pointer(None) is None
    write_pointer(None, POINTER)


def run(folder, uri, slot, small_phase, last):
    """One attempt on a new disk, preempted after a step."""
    with keep_durable(folder, uri, slot, lambda: 20.0) as uploads:
        for step in range(states.newest(folder) + 1, last + 1):
            small_phase(folder, step, step)
            uploads.upload_newest()
        raise PreemptionError("told to stop")


def test_a_third_machine_goes_on_although_the_second_did_nothing(
    attempt, small_phase, tmp_path, number
):
    uri = str(tmp_path / "durable")
    for place, last in enumerate((3, 3, 5)):
        with pytest.raises(PreemptionError):
            run(tmp_path / f"disk{place}" / "work", uri, attempt(place), small_phase, last)

    assert 5 == read_pointer(attempt(3)).step
    assert uri == read_pointer(attempt(3)).uri
    with keep_durable(tmp_path / "disk3" / "work", uri, attempt(3), lambda: 20.0):
        assert 5 == state.restore(tmp_path / "disk3" / "work", number).step


def test_the_pointer_finds_a_store_that_has_moved(attempt, small_phase, tmp_path):
    with pytest.raises(PreemptionError):
        run(tmp_path / "disk0" / "work", str(tmp_path / "old"), attempt(0), small_phase, 2)

    with keep_durable(tmp_path / "disk1" / "work", str(tmp_path / "new"), attempt(1), lambda: 20.0):
        assert 2 == states.newest(tmp_path / "disk1" / "work")


def test_a_lost_upload_is_logged(attempt, small_phase, tmp_path, caplog):
    uri = tmp_path / "durable"
    with pytest.raises(PreemptionError):
        run(tmp_path / "disk0" / "work", str(uri), attempt(0), small_phase, 2)
    for manifest in uri.rglob("MANIFEST.json"):
        manifest.unlink()

    with keep_durable(tmp_path / "disk1" / "work", str(uri), attempt(1), lambda: 20.0):
        assert 0 == states.newest(tmp_path / "disk1" / "work")
    assert f"step 2 was uploaded to {uri}, but the newest" in caplog.text
    assert "complete state is of step 0" in caplog.text
