"""The cache that Flyte keeps on one's own machine: damaged, it costs itself and one line.

Results of stages are found in the store without it.
"""

import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

logger = logging.getLogger(__name__)

PLACE = "~/.flyte/local-cache"
"""As flytekit/core/local_cache.py has it."""
_FILE = "cache.db"
_SWITCH = "FLYTE_LOCAL_CACHE_ENABLED"
"""Read by flytekit as each task starts."""


def leave_out_damaged_cache() -> None:
    """Let this process run without Flyte's cache if its file cannot be read."""
    folder = Path(PLACE).expanduser()
    if fault := _fault(folder / _FILE):
        os.environ[_SWITCH] = "false"
        logger.warning(
            "Flyte's cache in %s cannot be read (%s) and is not used; remove that folder",
            *(folder, fault),
        )


def _fault(file: Path) -> str:
    """Say what is wrong with the database of a cache; '' if nothing is, or there is none yet."""
    if not file.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as database:
            ((result,), *_) = database.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.OperationalError as error:
        # Another process that holds its lock says that it is in use, and not that it is damaged.
        return "" if "locked" in str(error) else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if result == "ok" else str(result)
