"""Progress bars for people, on standard error.

A bar appears only if the loop lasts longer than two seconds, with rate and remaining time.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """Pass items through while a bar shows how far the loop is."""
    yield from tqdm(items, desc=title, total=total, delay=2.0, dynamic_ncols=True, leave=False)
