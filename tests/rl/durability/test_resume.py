"""Killed at any point, a phase goes on to the very bytes of a run that nobody killed."""

import ctypes
import multiprocessing
import os
import random
import resource
import shutil
import time
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rl_settings import EngineSettings
from tasks.durability import states
from tasks.durability.upload import Uploader, fetch_newest
from tasks.engines.select import open_rollout
from tasks.errors import TamperError
from tasks.rl import state
from tasks.rl.phase import train
from tasks.store.files import sha256_file
from tasks.store.interface import store_at
from tests.killing import Recorder, different, names
from tests.rl.conftest import even
from tests.slices import sliced

pytestmark = pytest.mark.attack

STEPS = 3
SMALL = {"steps": STEPS, "prompts_per_step": 2, "group_size": 2, "max_new_tokens": 4}


def outcome(folder: Path) -> list[object]:
    """All that a phase has learned and written down, but for seconds; weights and optimizer."""
    records = state.read_steps(folder, STEPS)
    kept = [
        (r.report, r.ledger, r.gate, [(c.step, c.round, c.problem_id) for c in r.costs])
        for r in records
    ]
    return [kept, sha256_file(folder / f"committed/{STEPS:06d}/trainer.pt")]


MODES = {
    "synchronous": {},
    "one step off": {"group_size": 4, "engines": EngineSettings(staleness=1)},
    "in segments": {"engines": EngineSettings(segment_tokens=2)},
    "free-running": {"engines": EngineSettings(staleness=2, segment_tokens="free")},
    "committed every other step": {"commit_every": 2},
}


@pytest.mark.parametrize(
    ("mode", "every"),
    sliced([("synchronous", 3), *((mode, 1) for mode in MODES)], lambda mode, every: every == 3),
)
def test_a_run_killed_between_any_two_operations_ends_in_the_same_bytes(
    phase_in, scorer, tmp_path, mode, every
):
    changes = SMALL | MODES[mode]
    folder = tmp_path / "whole"
    recorder = Recorder(folder, tmp_path / "images")
    with recorder.watching():
        list(train(phase_in(folder, **changes), scorer()))
    whole = outcome(folder)
    left = different(recorder.found)

    assert 50 < len(recorder.found)
    assert STEPS < len(left)
    for image in list(left.values())[::every]:
        list(train(phase_in(image, **changes), scorer()))
        assert whole == outcome(image), image
        # Nothing of the killed run stays behind.
        assert names(folder) == names(image), image


def killed_in_updates(phase_in, scorer, tmp_path, step):
    """What a run leaves that is killed when the step's updates are done, and not committed."""
    folder = tmp_path / "whole"
    recorder = Recorder(folder, tmp_path / "images")
    with recorder.watching():
        list(train(phase_in(folder, **SMALL), scorer()))
    return folder, [
        image
        for image in recorder.found
        if (image / f"rollouts/{step:06d}").exists() and states.newest(image) == step - 1
    ][-1]


def resumed(phase, judge):
    """Resume a run; its records, and the tokens that its engine generated."""
    opened = []

    def open_engine(engines, model):
        opened.append(open_rollout(engines, model))
        return opened[-1]

    records = list(train(phase, judge, open_engine=open_engine))
    return records, opened[0].counters.generated_tokens


def test_who_is_killed_in_the_updates_of_a_step_generates_no_token_twice_elsewhere_either(
    phase_in, scorer, tmp_path
):
    folder, lost = killed_in_updates(phase_in, scorer, tmp_path, step=2)
    image, place = tmp_path / "elsewhere" / lost.name, str(tmp_path / "store")
    uploader = Uploader(lost, store_at(place))
    uploader.notify()
    assert uploader.flush(60.0)
    uploader.close()
    assert 1 == fetch_newest(place, image)
    records, generated = resumed(phase_in(image, **SMALL), scorer())

    assert [2, 3] == [one.report.step for one in records]
    assert generated == sum(row.generated_tokens for row in records[1].ledger) > 0
    assert outcome(folder) == outcome(image)


def test_rollouts_that_are_damaged_or_of_another_policy_or_step_are_not_trained_on(
    phase_in, scorer, tmp_path, caplog
):
    folder, image = killed_in_updates(phase_in, scorer, tmp_path, step=2)
    kept = image / "rollouts/000002/state.npz"
    whole = kept.read_bytes()
    for content, manifest in ((whole[:-1], b""), (whole, b" ")):
        work = tmp_path / f"work{len(manifest)}" / image.name
        shutil.copytree(image, work)
        (work / "rollouts/000002/state.npz").write_bytes(content)
        with (work / "committed/000001/MANIFEST.json").open("ab") as stream:
            stream.write(manifest)
        assert state.kept_rollouts(work, 2) is None
        assert not (work / "rollouts/000002").exists()
    assert 2 == caplog.text.count("rollouts of step 2 are damaged")

    shutil.copytree(kept.parent, image / "rollouts/000003")
    with pytest.raises(TamperError, match="rollouts/000003"):
        state.kept_rollouts(image, 3)
    kept.write_bytes(whole[:-1])
    list(train(phase_in(image, **SMALL), scorer()))
    assert outcome(folder) == outcome(image)


@pytest.mark.slow
@given(first=st.floats(0.0, 1.0), second=st.floats(0.0, 1.0), mode=st.sampled_from(sorted(MODES)))
@hypothesis.settings(max_examples=3, suppress_health_check=list(hypothesis.HealthCheck))
def test_a_resumed_run_may_be_killed_as_well(
    phase_in, scorer, tmp_path_factory, first, second, mode
):
    changes, folder = SMALL | MODES[mode], tmp_path_factory.mktemp("killed")
    for number, point in enumerate((first, second)):
        recorder = Recorder(folder, tmp_path_factory.mktemp("images"))
        with recorder.watching():
            list(train(phase_in(folder, **changes), scorer()))
        if number == 0:
            whole = outcome(folder)
        # A run that was killed after its last commit has nothing left to change.
        images = recorder.found or [folder]
        folder = images[round(point * (len(images) - 1))]
    list(train(phase_in(folder, **changes), scorer()))

    assert whole == outcome(folder)


@pytest.mark.parametrize("seed", sliced([0, 1], lambda seed: seed == 0))
def test_a_process_that_is_killed_at_random_times_ends_in_the_same_bytes(
    phase_in, scorer, tmp_path, seed
):
    """The kernel's own SIGKILL, wherever the process happens to be on this machine."""
    started = time.monotonic()
    list(train(phase_in(tmp_path / "whole", **SMALL), scorer()))
    took_s = time.monotonic() - started
    phase, judge = phase_in(tmp_path / "killed", **SMALL), scorer()
    dice = random.Random(seed)
    waits_s = [dice.uniform(0.0, took_s) for _ in range(4)]
    for wait_s in waits_s:
        child = multiprocessing.get_context("fork")
        process = child.Process(target=list, args=(train(phase, judge),))
        process.start()
        time.sleep(wait_s)
        process.kill()
        process.join()
    list(train(phase, scorer()))

    told = f"seed {seed}: killed after {waits_s} s"
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "killed"), told
    assert names(tmp_path / "whole") == names(tmp_path / "killed"), told


def starved_after(verdicts: int):
    """A rule that leaves its process without more memory as it is asked for the last time."""
    left = iter(range(verdicts - 1, -1, -1))

    def rule(problem, text):
        if next(left, -1) == 0:
            resource.setrlimit(resource.RLIMIT_AS, (0, 0))
        return even(problem, text)

    return rule


def run_starved(phase, judge) -> None:
    os.close(2)  # what libraries write as they end
    maps_from = -3
    ctypes.CDLL(None).mallopt(maps_from, 4096)  # or what was freed before would be enough
    list(train(phase, judge))


@pytest.mark.slow
def test_a_process_that_runs_out_of_memory_ends_in_the_same_bytes(phase_in, scorer, tmp_path):
    list(train(phase_in(tmp_path / "whole", **SMALL), scorer()))
    phase = phase_in(tmp_path / "starved", **SMALL)
    for verdicts in (1, 6):  # in the first step; in the next one, which a second attempt begins
        child = multiprocessing.get_context("fork")
        process = child.Process(target=run_starved, args=(phase, scorer(starved_after(verdicts))))
        process.start()
        process.join(2)
        process.kill()  # Python may wait for ever for a thread that it could not start
        process.join()
        assert process.exitcode
    list(train(phase, scorer()))

    assert outcome(tmp_path / "whole") == outcome(tmp_path / "starved")
    assert names(tmp_path / "whole") == names(tmp_path / "starved")
