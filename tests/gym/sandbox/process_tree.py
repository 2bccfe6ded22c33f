"""The processes below another one, however deep: what a program has started."""

import os
from pathlib import Path


def below(process: int) -> set[int]:
    """Return a process and all below it; one that ends meanwhile has none."""
    family, open_ids = {process}, [process]
    while open_ids:
        try:
            listings = list(Path(f"/proc/{open_ids.pop()}/task").glob("*/children"))
            new = {int(pid) for one in listings for pid in one.read_text().split()} - family
        except OSError:
            continue
        family |= new
        open_ids += new
    return family


def processes() -> set[int]:
    """Return the processes below this one."""
    return below(os.getpid()) - {os.getpid()}
