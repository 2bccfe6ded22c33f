"""Which commit of the project runs: of a checkout, or the one that an image or a task was given."""

import functools
import os
import re
import subprocess
from pathlib import Path

COMMIT_VARIABLE = "EACHPROMPT_COMMIT"
"""Of an image, from its build argument; of a registered task, from the checkout it came from."""
_ROOT = Path(__file__).resolve().parents[2]


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
