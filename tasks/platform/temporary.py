"""Removes the folders that flytekit creates in the temporary directory on import.

flytekit does not remove them, and a process that is killed cannot. Each folder is therefore marked
with a locked file, and the next process removes the marked folders whose lock is free. The lock is
released when its process ends, in another container as well. Unmarked folders are not touched.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from flytekit.configuration import Config
from flytekit.core.data_persistence import flyte_tmp_dir

MARK = ".eachprompt.lock"
PATTERN = "flyte*"


def own(folders: Iterable[Path]) -> None:
    """Mark folders as belonging to this process, and remove them when it exits."""
    process = os.getpid()
    for folder in folders:
        if folder.is_dir() and not (folder / MARK).exists():
            # Kept open until the process ends: closing the file would release its lock. It has its
            # name once it is locked: a process that begins beside this one takes a mark whose lock
            # is free for one left behind.
            unlocked = folder / f"{MARK}.{process}"
            descriptor = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unlocked.rename(folder / MARK)
            atexit.register(_remove_as, process, folder)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of processes that have ended, and return them."""
    return [folder for folder in sorted(parent.glob(PATTERN)) if _is_left_behind(folder)]


def _is_left_behind(folder: Path) -> bool:
    try:
        with (folder / MARK).open("r+") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # not marked, owned by another user, or its process is running
        return False
    return not folder.exists()


def _remove_as(process: int, folder: Path) -> None:
    # A forked child inherits the exit handlers of its parent, which still needs the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def tidy() -> None:
    """Mark the folders of this process, and remove those that killed processes left."""
    own([Path(flyte_tmp_dir), Path(Config.local_sandbox_path)])
    sweep(Path(tempfile.gettempdir()))
