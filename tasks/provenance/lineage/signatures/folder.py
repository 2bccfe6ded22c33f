"""What an attempt left in a working folder, which the next one continues as far as it is signed.

    <folder>/000012/          a part of the work, whose files tell how far it came
    <folder>/SEALED.json      sha256 of every file of every part, signed for this work

A part whose files are not those that were signed is removed, and done again. So is what was written
in the seconds before a process was killed.
"""

import json
import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.errors import EngineError, TamperError
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.store.files import canonical_json, sha256_file, write_bytes

logger = logging.getLogger(__name__)

SEALED = "SEALED.json"
EVERY_S = 20.0
"""Seconds between two signatures: a killed process loses so much work at most."""
_KIND = "parts"
_Seen = dict[str, tuple[int, int, str]]
"""Name of a file -> when it was changed, its size, its sha256."""


@contextmanager
def continued(folder: Path, every_s: float = EVERY_S) -> Iterator[None]:
    """Remove what nobody signed, then sign what the block writes, in a thread and at its end.

    Args:
        folder: of the parts; its parent is called as the work is. It may be missing, then and at
            the end.
        every_s: between two signatures.

    Raises:
        SettingsError: there is no key to sign with.
    """
    _sweep(folder)
    marks: _Seen = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            _sign(folder, marks)

    thread = threading.Thread(target=watch, name="sign-parts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _sign(folder, marks)


def _sweep(folder: Path) -> None:
    if not folder.is_dir():
        return
    signed = _signed(folder)
    parts = sorted(path for path in folder.iterdir() if path.name != SEALED)
    done_again = [path for path in parts if not _is_signed(path, signed)]
    for path in done_again:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if done_again:
        logger.warning(
            "%d of %d parts in %s are done again: they are not as this work signed them",
            *(len(done_again), len(parts), folder),
        )


def _signed(folder: Path) -> dict[str, str]:
    path = folder / SEALED
    content = path.read_bytes() if path.is_file() else b""
    try:
        return json.loads(unseal(_KIND, _name(folder), content, str(path)))
    except TamperError:
        return {}


def _is_signed(part: Path, signed: dict[str, str]) -> bool:
    if part.is_symlink() or not part.is_dir():
        return False
    start = f"{part.name}/"
    expected = {name: digest for name, digest in signed.items() if name.startswith(start)}
    results = {name: sha256_file(path) for name, path in _files(part)}
    return results == expected


def _sign(folder: Path, marks: _Seen) -> None:
    """Sign every file there is; hash those that are new or were changed."""
    if not folder.is_dir():
        return
    before, now = dict(marks), _Seen()
    try:
        for part in sorted(path for path in folder.iterdir() if path.is_dir()):
            for name, path in _files(part):
                is_at = path.stat()
                entry = marks.get(name, (0, 0, ""))
                mark = (is_at.st_mtime_ns, is_at.st_size)
                now[name] = entry if entry[:2] == mark else (*mark, sha256_file(path))
        marks.clear()
        marks.update(now)
        if now != before:
            digests = {name: digest for name, (*_, digest) in now.items()}
            signed = seal(_KIND, _name(folder), canonical_json(digests))
            write_bytes(folder / SEALED, signed)
    except (OSError, EngineError) as error:  # another time; without a signature it is done again
        logger.warning("the parts in %s are not signed: %s", folder, error)


def _files(part: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(part.rglob("*")):
        if path.is_file():
            yield f"{part.name}/{path.relative_to(part).as_posix()}", path


def _name(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"
