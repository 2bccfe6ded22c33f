"""Folders of flytekit: gone with their process, also if it was killed; no others are touched."""

import atexit
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.platform.temporary import MARK, own, sweep

ROOT = Path(__file__).parents[2]
START = "import tasks.platform.shell, sys; print('ready', flush=True); sys.stdin.read()"


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a process that imports flytekit through us, with a temporary directory of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", START],
        env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "ready" == process.stdout.readline().strip()
    return process


def finish(process: subprocess.Popen[str]) -> None:
    process.communicate()
    assert process.returncode is not None


@pytest.mark.slow
def test_a_process_takes_its_folders_with_it(tmp_path):
    process = start(tmp_path)
    assert list(tmp_path.glob("flyte*"))

    finish(process)

    assert not list(tmp_path.glob("flyte*"))


@pytest.mark.slow
def test_folders_of_a_killed_process_go_with_the_next_and_those_of_a_running_one_stay(tmp_path):
    killed, running = start(tmp_path), start(tmp_path)
    before = set(tmp_path.glob("flyte*"))
    killed.send_signal(signal.SIGKILL)
    finish(killed)

    third = start(tmp_path)

    left = before & set(tmp_path.glob("flyte*"))
    assert len(before) == 2 * len(left) > 0
    finish(running)
    finish(third)
    assert not list(tmp_path.glob("flyte*"))


def test_folders_without_our_mark_are_not_touched(tmp_path):
    (tmp_path / "flyte-of-others").mkdir()
    (tmp_path / "flyte-ours").mkdir()
    (tmp_path / "flyte-ours" / MARK).touch()

    assert [tmp_path / "flyte-ours"] == sweep(tmp_path)
    assert (tmp_path / "flyte-of-others").is_dir()


def test_a_process_that_begins_meanwhile_does_not_take_a_folder_that_is_being_marked(
    tmp_path, monkeypatch
):
    folder = tmp_path / "flyte-ours"
    folder.mkdir()
    lock, taken = fcntl.flock, []

    def begins_meanwhile(descriptor: int, operation: int) -> None:
        if not taken:
            taken.append([])  # the sweep below locks, too
            taken[0] = sweep(tmp_path)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", begins_meanwhile)
    monkeypatch.setattr(atexit, "register", lambda *_: None)

    own([folder])

    assert [[]] == taken
    assert folder.is_dir()
    assert not sweep(tmp_path)
