"""Progress for people, on standard error: bars that go away, and lines that stay.

A bar appears on a terminal only, one at a time, and only if the loop lasts longer than two
seconds; it has a rate and the remaining time. A log, and a file that the screen of a run was sent
to, have lines: of a loop, one a minute.
"""

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Self, TypeVar

from tqdm import tqdm

from tasks.platform.command_line import fit
from tasks.platform.log_lines import in_pod

Item = TypeVar("Item")
LINE_EVERY_S = 60.0
"""Between two lines where there is no terminal: in a pod, or in a file."""
logger = logging.getLogger(__name__)


class ProgressBar:
    """How far a loop is: a bar, unless there is one, or a line a minute."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self._title, self._of = title, "" if total is None else f" of {total:,}"
        self._done, self._logged = 0, time.monotonic()
        self._lines, self._bar = not sys.stderr.isatty(), None
        if not self._lines and not len(getattr(tqdm, "_instances", ())):
            self._bar = tqdm(desc=title, total=total, delay=2.0, dynamic_ncols=True, leave=False)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

    def advance(self) -> None:
        """Count one more item as done."""
        self._done += 1
        if self._bar is not None:
            self._bar.update()
        if self._lines and time.monotonic() - self._logged >= LINE_EVERY_S:
            self._logged = time.monotonic()
            line = f"{self._title}: {self._done:,}{self._of}"
            logger.info(line) if in_pod() else say(line)


def progress(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """Pass items through while a bar or lines show how far the loop is."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with ProgressBar(title, total) as bar:
        for item in items:
            yield item
            bar.advance()


def say(line: str) -> None:
    """Write a line that stays, above the bar if there is one."""
    tqdm.write(fit(line, sys.stderr), file=sys.stderr)
