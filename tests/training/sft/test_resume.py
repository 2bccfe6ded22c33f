"""Killed at any point, a fine-tuning goes on to the very bytes of one that nobody killed."""

import multiprocessing
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.rows import DEMONSTRATIONS, Demonstration, Parent
from data_schemas.settings import SFTSettings
from tasks.durability import states
from tasks.durability.durable import keep_durable
from tasks.durability.preemption import listen_for_sigterm
from tasks.errors import PreemptionError
from tasks.training.sft.train import FineTuning, finish, past_code, prepare, updates
from tests.killing import Recorder, different, names
from tests.slices import sliced
from tests.training.sft.test_train import demonstration

pytestmark = pytest.mark.attack

SETTINGS = SFTSettings(epochs=2, batch_tokens=192, entropy_prompts=2)
UPDATES = 6
FORK = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def curated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curated")
    write_table(folder / DEMONSTRATIONS, Demonstration, [demonstration(n) for n in range(18)])
    return folder


@pytest.fixture
def course_in(curated, tiny_moe):
    def build(state: Path, code: str = "code-a", share: float = 1.0) -> FineTuning:
        course = prepare(SETTINGS, Parent.REASONING, curated, tiny_moe, state, code)
        return replace(course, commit_share=share)

    return build


@pytest.fixture(scope="module")
def whole(curated, tiny_moe, tmp_path_factory):
    """The state and the outcome of a fine-tuning that nobody killed."""
    state = tmp_path_factory.mktemp("whole") / "state"
    course = prepare(SETTINGS, Parent.REASONING, curated, tiny_moe, state, "code-a")
    list(updates(replace(course, commit_share=1.0)))
    return outcome(course), names(state)


def outcome(tuning: FineTuning) -> dict[str, bytes]:
    """Every byte of the model and of the report, and the last state."""
    out = tuning.state.with_name(f"{tuning.state.name}-outcome")
    for folder in (out / "model", out / "report"):
        folder.mkdir(parents=True)
    finish(tuning, out / "model", out / "report")
    # A signature names the folder of the work, which differs from test to test.
    unsigned = shutil.ignore_patterns(states.SIGNATURE)
    shutil.copytree(tuning.state / "committed" / f"{UPDATES:06d}", out / "state", ignore=unsigned)
    return {name: (out / name).read_bytes() for name in names(out) if (out / name).is_file()}


@pytest.mark.slow
def test_a_run_killed_between_any_two_operations_ends_in_the_same_bytes(course_in, whole, tmp_path):
    folder = tmp_path / "recorded"
    recorder = Recorder(folder, tmp_path / "images")
    with recorder.watching():
        list(updates(course_in(folder)))
    left = different(recorder.found)

    assert UPDATES < len(left)
    for image in left.values():
        course = course_in(image)
        list(updates(course))
        assert whole[1] == names(image), image
        assert whole[0] == outcome(course), image


@pytest.mark.parametrize("after", sliced([0, 1, 3, 5], lambda after: after == 3))
def test_a_process_that_is_killed_in_an_epoch_ends_in_the_same_bytes(
    course_in, whole, tmp_path, after
):
    """The kernel's own SIGKILL, which runs no handler and closes nothing."""
    course = course_in(tmp_path / "killed")

    def killed():
        list(islice(updates(course), after))
        os.kill(os.getpid(), signal.SIGKILL)

    process = FORK.Process(target=killed)
    process.start()
    process.join()
    left = [update.number for update in updates(course)]

    assert -signal.SIGKILL == process.exitcode
    assert list(range(after + 1, UPDATES + 1)) == left
    assert whole == (outcome(course), names(course.state))


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.05])
@pytest.mark.parametrize("seed", range(10))
def test_a_process_that_is_killed_at_random_times_ends_in_the_same_bytes(
    course_in, whole, tmp_path, seed, share
):
    started = time.monotonic()
    list(updates(course_in(tmp_path / "timed", share=share)))
    took_s = time.monotonic() - started
    course, dice = course_in(tmp_path / "killed", share=share), random.Random(seed)
    waits_s = [dice.uniform(0.0, took_s) for _ in range(4)]
    for wait_s in waits_s:
        process = FORK.Process(target=list, args=(updates(course),))
        process.start()
        time.sleep(wait_s)
        process.kill()
        process.join()
    list(updates(course))

    assert whole[0] == outcome(course), f"seed {seed}: killed after {waits_s} s"


def test_sigterm_commits_the_update_in_flight(course_in, whole, tmp_path):
    course = course_in(tmp_path / "stopped", share=1e-9)  # only the first update commits by itself
    done = []

    def stopped(stop):
        for update in updates(course, stop):
            done.append(update.number)
            if update.number == 2:
                signal.raise_signal(signal.SIGTERM)

    with (
        listen_for_sigterm(3600.0) as stop,
        pytest.raises(PreemptionError, match="committed update 3"),
    ):
        stopped(stop)

    assert [1, 2, 3] == done
    assert [4, 5, 6] == [update.number for update in updates(course)]
    assert whole[0] == outcome(course)


def test_another_machine_goes_on_with_what_was_uploaded(course_in, whole, tmp_path, caplog):
    uri = str(tmp_path / "durable")
    with keep_durable(tmp_path / "lost" / "work", uri, None, lambda: 20.0) as uploads:
        for _ in islice(updates(course_in(tmp_path / "lost" / "work")), 4):
            uploads.upload_newest()
        uploads.flush(20.0)
    shutil.rmtree(tmp_path / "lost" / "work")

    course = course_in(tmp_path / "other" / "work", code="code-b")
    with keep_durable(course.state, uri, None, lambda: 20.0):
        assert [5, 6] == [update.number for update in updates(course)]
    assert "continuing after update 4 of 6" in caplog.text
    assert ("code-a", "code-b") == past_code(course.state)
    assert whole[0]["model/model.safetensors"] == outcome(course)["model/model.safetensors"]
