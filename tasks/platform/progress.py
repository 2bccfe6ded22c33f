"""Progress for people, on standard error: bars that go away, and lines that stay.

A bar appears on a terminal only, one at a time, and only if the loop lasts longer than two
seconds; it has a rate and the remaining time. A log, and a file that the screen of a run was sent
to, have lines: of a loop, one a minute.
"""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

from tasks.platform.log_lines import in_pod

Item = TypeVar("Item")
LINE_EVERY_S = 60.0
"""Between two lines where there is no terminal: in a pod, or in a file."""
logger = logging.getLogger(__name__)


def progress(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """Pass items through while a bar, unless there is one, or lines show how far the loop is."""
    if sys.stderr.isatty():
        if len(getattr(tqdm, "_instances", ())):
            yield from items
        else:
            yield from tqdm(
                items, desc=title, total=total, delay=2.0, dynamic_ncols=True, leave=False
            )
        return
    logged = time.monotonic()
    of = f" of {total:,}" if total is not None else ""
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - logged >= LINE_EVERY_S:
            logged = time.monotonic()
            line = f"{title}: {number:,}{of}"
            logger.info(line) if in_pod() else say(line)


def say(line: str) -> None:
    """Write a line that stays, above the bar if there is one."""
    tqdm.write(line, file=sys.stderr)
