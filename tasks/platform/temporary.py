"""The folders that flytekit makes in the temporary directory as it is imported: removed at exit.

flytekit removes none of them. A process that is killed cannot either, so each is marked with a
locked file, and the next process removes marked folders whose lock is free. It is free as soon
as its process ended, in another container too. Folders without the mark are never touched.
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
    """Mark folders as this process's, and remove them when it exits."""
    process = os.getpid()
    for folder in folders:
        if folder.is_dir() and not (folder / MARK).exists():
            # Open as long as the process lives: closing the file would free its lock.
            descriptor = os.open(folder / MARK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            atexit.register(_remove_as, process, folder)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of processes that are gone and return them."""
    return [folder for folder in sorted(parent.glob(PATTERN)) if _is_left_behind(folder)]


def _is_left_behind(folder: Path) -> bool:
    try:
        with (folder / MARK).open("r+") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # no mark, another user's, or its process runs
        return False
    return not folder.exists()


def _remove_as(process: int, folder: Path) -> None:
    # A forked child inherits the exit handlers of its parent, which still needs the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def tidy() -> None:
    """Own what flytekit made in this process, and remove what killed ones left."""
    own([Path(flyte_tmp_dir), Path(Config.local_sandbox_path)])
    sweep(Path(tempfile.gettempdir()))
