"""The store itself: whether its mark is its own, and whether all of it lies in it."""

import stat
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tasks.errors import DataError
from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.mark import mark_problem, statements_with_id
from tasks.provenance.lineage.statements import ATTESTATIONS, statement_uri
from tasks.store.interface import store_at
from tasks.store.local import STORE_MARK
from tasks.store.location import identity

_LARGEST_KEY = 2**16
"""Bytes; a private key in PEM has a few hundred."""
_NO_KEYS = ("objects", "statements", ATTESTATIONS, "executions")
"""What lies there is hashed or parsed, and is too much to be searched."""


def check_store(evidence: Evidence) -> None:
    """Add a finding where the mark is not of this store, or something of another one lies in it."""
    where = f"{evidence.store}/{STORE_MARK}"
    own = identity(evidence.store)
    if evidence.keys is None and not own:
        return  # a copy of statements and objects alone is no store, and nobody vouches for it
    if problem := mark_problem(evidence.store, evidence.keys, evidence.vouches, evidence.damaged):
        evidence.add(MODEL, where, problem)
    for digest, home in statements_with_id(evidence.store, evidence.keys):
        if home != own:
            problem = f"is of the store {home}, and this one is {own}"
            evidence.add(MODEL, statement_uri(evidence.store, digest), problem)


def check_place(evidence: Evidence) -> None:
    """Add a finding where a part of the store lies outside of it, or a private key inside.

    What lies deeper than a link in the top folder is read without following links.
    """
    folder = store_at(evidence.store).local_path
    if folder is None or not folder.is_dir():
        return
    names: dict[tuple[int, int], list[Path]] = defaultdict(list)
    for part in sorted(folder.iterdir()):
        if part.is_symlink():
            problem = "is a link; its content lies outside the store"
            evidence.add(MODEL, str(part), problem)
            continue
        for path in sorted(part.rglob("*")) if part.is_dir() else [part]:
            try:
                entry = path.lstat()
            except OSError:  # another process has just deleted it
                continue
            if not stat.S_ISREG(entry.st_mode):
                continue
            if entry.st_nlink > 1:
                names[entry.st_dev, entry.st_ino].append(path)
            if part.name not in _NO_KEYS and _is_key(path, entry.st_size):
                problem = "is a private key; whoever can read the store can sign"
                evidence.add(MODEL, str(path), problem)
    outside = sorted(path for paths in names.values() for path in _linked_outside(paths))
    if outside:
        others = f", as {len(outside) - 1} more" if outside[1:] else ""
        problem = "has another name outside of the store (hard link), under which it can be changed"
        evidence.add(MODEL, str(outside[0]), f"{problem}{others}")


def _linked_outside(paths: Sequence[Path]) -> list[Path]:
    """Return the names of a file that has more than these.

    A writer has two for a moment, and a killed one leaves both, in the store.
    """
    present: list[Path] = []
    links = 0
    for path in paths:
        with suppress(OSError):
            links = path.lstat().st_nlink
            present.append(path)
    return present if links > len(present) else []


def _is_key(path: Path, size: int) -> bool:
    try:
        return size <= _LARGEST_KEY and b"PRIVATE KEY-----" in read_record(str(path))
    except DataError:
        return False
