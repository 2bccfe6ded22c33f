"""The thread that watches for the end of the team, with a real store."""

import threading

import pytest

# Documented there, but not declared.
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from tasks.engines.team import failure_store
from tasks.engines.team.failure_store import FailureStore, _Pulses
from tasks.errors import EngineError


@pytest.fixture
def failures(monkeypatch):
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(server.port))
    # In a call of the store nearly always: where it was when the block ends.
    monkeypatch.setattr(failure_store, "_LOOK_EVERY_S", 0.0)
    # There is no other rank that could give a pulse, and a silent one ends this process.
    monkeypatch.setattr(failure_store, "SILENT_LOOKS", 10**9)
    yield FailureStore(rank=1, size=2)
    del server


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "team-over"]


def test_the_watching_thread_ends_with_its_block(failures):
    # Left in a call of the store, it would abort the process at the interpreter's exit.
    for _ in range(20):
        with failures.end_process_when_over(code=1):
            assert 1 == len(watchers())

        assert [] == watchers()


def test_it_ends_after_a_failure_too(failures):
    with pytest.raises(ValueError, match="steps"), failures.end_process_when_over(code=1):
        raise ValueError("steps is -1")

    assert [] == watchers()


def test_a_team_that_is_over_ends_a_block_that_has_ended_without_a_kill(failures):
    with failures.end_process_when_over(code=1):
        failures.end()

    assert [] == watchers()


def test_a_rank_is_silent_when_its_pulse_stood_still_for_all_looks(monkeypatch):
    monkeypatch.setattr(failure_store, "SILENT_LOOKS", 3)
    pulses = _Pulses()

    looks = [{1: 1, 2: 1}, {1: 1, 2: 2}, {1: 1, 2: 2}, {1: 2, 2: 2}, {1: 3, 2: 2}, {1: 3, 2: 2}]

    assert [None, None, None, None, 2, 2] == [pulses.first_silent(counts) for counts in looks]


def test_a_rank_that_never_gave_a_pulse_is_silent_too(monkeypatch):
    monkeypatch.setattr(failure_store, "SILENT_LOOKS", 2)
    pulses = _Pulses()

    assert [None, 5] == [pulses.first_silent({5: 0}) for _ in range(2)]


def test_torchrun_reports_the_error_that_was_written_for_a_process_that_is_then_killed(tmp_path):
    file = tmp_path / "error.json"
    failure_store._record_for_another(EngineError("rank 1 has given no sign of life"), file)

    failure = ProcessFailure(local_rank=1, pid=7, exitcode=-9, error_file=str(file))
    _, first = ChildFailedError("stage", {1: failure}).get_first_failure()

    assert "EngineError: rank 1 has given no sign of life" == first.message["message"]
