"""Killed at any point, a phase goes on to the very bytes of a run that nobody killed."""

import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rl_settings import EngineSettings
from tasks.rl.durability import state
from tasks.rl.run import train
from tasks.store.files import sha256_bytes, sha256_file
from tasks.store.manifest import folder_manifest

STEPS = 3
SMALL = {"steps": STEPS, "prompts_per_step": 2, "group_size": 2, "max_new_tokens": 4}


CHANGING = ("replace", "rename", "link", "mkdir", "rmdir", "unlink", "fsync")


class Recorder:
    """Copies a folder before every operation that changes it: what a SIGKILL there leaves.

    Before a file is made durable its copy is cut in half as well: that much of it may be on disk.
    """

    def __init__(self, folder: Path, images: Path) -> None:
        self._folder, self._images = folder, images
        self._plain = {name: getattr(os, name) for name in CHANGING}
        self._save = torch.save
        self.found: list[Path] = []

    def keep(self, torn: Path | None = None) -> None:
        """Copy the folder; of one file half."""
        image = self._images / f"{len(self.found):04d}"
        image.mkdir(parents=True)
        if self._folder.exists():
            shutil.copytree(self._folder, image, dirs_exist_ok=True)
        if torn is not None:
            half = image / torn.relative_to(self._folder)
            os.truncate(half, half.stat().st_size // 2)
        self.found.append(image)

    @contextmanager
    def watching(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CHANGING:
                patch.setattr(os, name, partial(self._change, name))
            patch.setattr(torch, "save", self._saving)
            yield

    @contextmanager
    def _resting(self) -> Iterator[None]:
        """Copying is no operation of the run."""
        with pytest.MonkeyPatch.context() as patch:
            for name, plain in self._plain.items():
                patch.setattr(os, name, plain)
            yield

    def _change(self, name: str, target: object, *args: object, **options: object) -> object:
        where = _path(target, options.get("dir_fd"))
        if where.is_relative_to(self._folder):
            with self._resting():
                self.keep()
                if name == "fsync" and where.is_file():
                    self.keep(torn=where)
        return self._plain[name](target, *args, **options)

    def _saving(self, value: object, path: Path) -> None:
        self._save(value, path)
        with self._resting():
            self.keep(torn=path)


def _path(target: object, dir_fd: object) -> Path:
    """Name what an operation changes: a path, an open file, or a name below an open folder."""
    if isinstance(target, int):
        return Path(f"/proc/self/fd/{target}").readlink()
    parent = Path() if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink()
    return parent / os.fspath(target)


def outcome(folder: Path) -> list[object]:
    """All that a phase has learned and written down, but for seconds; weights and optimizer."""
    records = state.read_steps(folder, STEPS)
    kept = [
        (r.report, r.ledger, r.gate, [(c.step, c.round, c.problem_id) for c in r.costs])
        for r in records
    ]
    return [kept, sha256_file(folder / f"committed/{STEPS:06d}/trainer.pt")]


class Nothing:
    """A trainer that has nothing to restore."""

    def restore(self, folder: Path) -> None:
        assert (folder / "trainer.pt").exists()


def different(images: list[Path]) -> dict[str, Path]:
    """Let every image be cleaned up as a resumed run does first; name the different ones.

    All that a run does afterwards follows from the folder as it is then.
    """
    found = {}
    for image in images:
        state.restore(image, Nothing())
        found.setdefault(sha256_bytes(folder_manifest(image)), image)
    return found


MODES = {
    "synchronous": {},
    "one step off": {"engines": EngineSettings(staleness=1)},
    "in segments": {"engines": EngineSettings(segment_tokens=2)},
    "committed every other step": {"commit_every": 2},
}


@pytest.mark.parametrize("mode", MODES)
def test_a_run_killed_between_any_two_operations_ends_in_the_same_bytes(
    phase_in, scorer, tmp_path, mode
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
    for image in left.values():
        list(train(phase_in(image, **changes), scorer()))
        assert whole == outcome(image), image
        # Nothing of the killed run stays behind.
        assert names(folder) == names(image), image


@given(first=st.floats(0.0, 1.0), second=st.floats(0.0, 1.0), mode=st.sampled_from(sorted(MODES)))
@hypothesis.settings(max_examples=5, suppress_health_check=list(hypothesis.HealthCheck))
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
        folder = recorder.found[round(point * (len(recorder.found) - 1))]
    list(train(phase_in(folder, **changes), scorer()))

    assert whole == outcome(folder)


@pytest.mark.parametrize("seed", [0, 1])
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


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
