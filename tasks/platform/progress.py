"""Progress for people, on standard error: bars that go away, and lines that stay.

A bar appears on a terminal only, one at a time, and only if the loop lasts longer than two seconds;
it has a rate and the remaining time. A log has the lines.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """Pass items through while a bar shows how far the loop is, unless it is within another."""
    if not sys.stderr.isatty() or len(getattr(tqdm, "_instances", ())):
        yield from items
    else:
        yield from tqdm(items, desc=title, total=total, delay=2.0, dynamic_ncols=True, leave=False)


def say(line: str) -> None:
    """Write a line that stays, above the bar if there is one."""
    tqdm.write(line, file=sys.stderr)
