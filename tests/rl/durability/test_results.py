"""Several runs of the same phase on one store: its steps are done once, its results are whole."""

import itertools
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from data_schemas.artifacts import StoreRef
from tasks.durability.durable import keep_durable
from tasks.errors import DataError, EngineError
from tasks.provenance.lineage.finished import Results
from tasks.provenance.lineage.signatures.working import unseal
from tasks.rl.phase import finish, train
from tasks.store import results
from tasks.store.interface import store_at
from tasks.store.objects import find_beside
from tests.buckets import served_bucket

LONG_S = 120.0
FORK = multiprocessing.get_context("fork")


def phase_folder(store) -> Path:
    (path,) = Path(store.uri, "state").glob("*.json")
    return path.with_suffix("")


@pytest.mark.slow
def test_two_runs_at_once_do_the_steps_once_and_return_the_same(phase, spooled):
    answers = FORK.SimpleQueue()
    runs = [
        FORK.Process(target=lambda name=name: answers.put(phase(execution=name)))
        for name in ("first", "second")
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(LONG_S)

    one, other = answers.get(), answers.get()
    assert one == other
    assert [1, 2, 3] == spooled()


@pytest.fixture
def served(monkeypatch):
    """A store in an S3 that several processes reach."""
    uri = "s3://bucket/store"
    with served_bucket(monkeypatch):
        yield StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri="http://nobody")


class Told(logging.Handler):
    """Hands on what a process logs."""

    def __init__(self, queue) -> None:
        super().__init__()
        self._queue = queue

    def emit(self, record: logging.LogRecord) -> None:
        self._queue.put(record.getMessage())


@pytest.mark.slow
@pytest.mark.attack
def test_an_attempt_that_starts_in_the_grace_of_the_one_before_ends_in_the_same_model(
    phase, served, tmp_path, monkeypatch
):
    undisturbed = phase()
    said, answers = FORK.SimpleQueue(), FORK.SimpleQueue()

    def attempt(number: int) -> None:
        disk = tmp_path / f"disk of {number}"
        disk.mkdir()
        os.environ |= {"EACHPROMPT_STATE": str(disk), "TMPDIR": str(disk)}
        tempfile.tempdir = None  # read anew
        logger = logging.getLogger("tasks")
        logger.setLevel(logging.INFO)
        logger.addHandler(Told(said))
        answers.put(phase(where=served).model.digest)

    def until_in_state(part: str) -> None:
        while not [one for one in store_at(f"{served.uri}/state").list_files() if part in one]:
            assert pods[0].is_alive()
            time.sleep(0.02)

    pods = [FORK.Process(target=attempt, args=(number,)) for number in (1, 2)]
    pods[0].start()
    until_in_state(".lease")
    pods[1].start()
    while "waiting for that run to end" not in said.get():
        pass
    until_in_state("/steps/")
    os.kill(pods[0].pid, signal.SIGTERM)  # both are alive: Flyte does not wait for the grace
    for pod in pods:
        pod.join(LONG_S)

    assert [1, 0] == [pod.exitcode for pod in pods]  # the first asked for another attempt
    assert undisturbed.model.digest == answers.get()
    heard = []
    while not said.empty():
        heard.append(said.get())
    assert any("was downloaded" in one for one in heard), heard


@pytest.mark.slow
def test_a_killed_run_frees_its_phase(phase, store, spooled):
    killed = FORK.Process(target=phase)
    killed.start()
    deadline = time.monotonic() + LONG_S
    while not list(Path(store.uri).glob("spool/*.jsonl")) or not spooled():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.kill()
    killed.join()

    trained = phase(execution="next")

    assert recorded(store).report == trained.report
    assert set(spooled()) == {1, 2, 3}


def recorded(store) -> Results:
    work = phase_folder(store)
    content = work.with_suffix(".json").read_bytes()
    return Results.model_validate_json(unseal("results", work.name, content, str(work)))


@pytest.mark.slow
def test_an_attempt_that_was_cut_before_flyte_had_its_outputs_repeats_no_step(
    phase, store, spooled, caplog
):
    first = phase()
    state = phase_folder(store)
    (state / "committed").mkdir(parents=True)  # killed while its state was removed

    again = phase(execution="exec-2")

    assert first == again
    assert [1, 2, 3] == spooled()
    assert not state.exists()
    assert "rl/one was finished by exec-1; its results are used" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["model", "report"])
def test_results_whose_objects_are_gone_are_made_again(phase, spooled, lost):
    first = phase()
    shutil.rmtree(getattr(first, lost).uri)

    assert first.model.digest == phase().model.digest
    assert [1, 2, 3, 1, 2, 3] == spooled()


def test_a_phase_with_fewer_steps_than_asked_is_not_committed(phase_in, scorer, tmp_path):
    phase = phase_in(tmp_path / "state")
    list(itertools.islice(train(phase, scorer()), 2))
    for name in ("model", "report"):
        (tmp_path / name).mkdir()

    with pytest.raises(EngineError, match=r"state holds 2 of 4 steps, so nothing is committed"):
        finish(phase, tmp_path / "model", tmp_path / "report")
    assert not list((tmp_path / "model").iterdir())
    with pytest.raises(EngineError, match="holds 0 of 4 steps"):
        finish(phase_in(tmp_path / "empty"), tmp_path / "model", tmp_path / "report")


def test_a_finished_phase_leaves_nothing_at_the_durable_place(small_phase, tmp_path):
    disk, uri = tmp_path / "disk", tmp_path / "durable"
    with keep_durable(disk, str(uri), None, lambda: 20.0) as uploads:
        small_phase(disk, 1, 2)
        uploads.flush(20.0)
        assert (1, 0, 0) == (uploads.counts.uploaded, uploads.counts.skipped, uploads.counts.failed)
    results.clear(disk, str(uri))

    assert not uri.exists()
    assert not disk.exists()


@pytest.mark.slow
def test_the_report_of_a_phase_has_no_times_and_keeps_them_beside_it(phase, store):
    report = Path(phase().report.uri)
    first = sorted(path.name for path in report.iterdir())
    shutil.rmtree(store.uri + "/state")
    again = phase(execution="exec-2").report

    assert not {"timing.jsonl", "costs.parquet"} & set(first)
    assert str(report) == again.uri  # the same digest, although it took another time
    assert 3 == len(find_beside(report, "timing.jsonl").read_bytes().splitlines())
    assert find_beside(report, "costs.parquet").is_file()
    with pytest.raises(DataError, match=r"timing\.jsonl is not beside"):
        find_beside(report.with_name("other"), "timing.jsonl")
