"""Which code runs: the commit of a checkout, image or task, and the lock files beside it."""

import functools
import os
import re
import subprocess
from pathlib import Path

COMMIT_VARIABLE = "EACHPROMPT_COMMIT"
"""Commit of an image, from its build argument; of a registered task, from the checkout it came
from."""
_ROOT = Path(__file__).resolve().parents[2]
LOCK_FOLDERS = ("", "containers", "tests/locks")
"""Where lock files are: of the default environment, of images, of foreign tools."""


def lock_files(root: Path = _ROOT) -> dict[str, Path]:
    """Return the lock files by name; an image has those that it was built from.

    Args:
        root: of the code.
    """
    paths = [path for folder in LOCK_FOLDERS for path in (root / folder).glob("lock_*.txt")]
    return {path.name: path for path in sorted(paths)}


@functools.cache
def commit(root: Path = _ROOT) -> str:
    """Return the commit; '' where nothing says it.

    What a checkout says counts more than the variable.

    Args:
        root: of the code.
    """
    if not (root / ".git").exists():
        revision = os.environ.get(COMMIT_VARIABLE, "")
        return revision if re.fullmatch("[0-9a-f]{7,64}", revision) else ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
