"""The files of one state, shared out among whoever uploads them.

Claims are files on the disk that holds the state, which only one process can create:

    claims/000012-<sha256>/3             somebody uploads the fourth file
    claims/000012-<sha256>/3.done        and has
"""

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

LATE_S = 60.0
"""What others have claimed is overdue so long after a process has nothing to claim any more, or
after three times its own slowest file."""
_LOOK_S = 1.0
Upload = Callable[[str], None]
logger = logging.getLogger(__name__)


def upload_claimed(claims: Path, names: Sequence[str], upload: Upload) -> float:
    """Upload the files that nobody else has claimed.

    Returns:
        Seconds of the slowest one; 0 if all were claimed.

    Raises:
        FileNotFoundError: the claims are gone: all files are there, or the upload was given up.
        Exception: of `upload`; its file is free again.
    """
    slowest = 0.0
    for number, name in enumerate(names):
        claim = claims / str(number)
        try:
            claim.touch(exist_ok=False)
        except FileExistsError:
            continue
        started = time.monotonic()
        try:
            upload(name)
        except BaseException:
            claim.unlink(missing_ok=True)
            raise
        (claims / f"{number}.done").touch()
        slowest = max(slowest, time.monotonic() - started)
    return slowest


def upload_together(
    claims: Path, names: Sequence[str], upload: Upload, late_s: float = LATE_S
) -> None:
    """Upload all files with whoever helps; when it returns, every one is there.

    A helper that dies or hangs leaves a claim that is never done: such a file is uploaded here. The
    same bytes go to the same name, so that a file which two upload is there once.

    Args:
        claims: a folder for this state; removed in the end.
        names: of the files, in the order of all helpers.
        upload: one of them.
        late_s: as LATE_S.

    Raises:
        Exception: of `upload`.
    """
    remove_claims(claims)
    claims.mkdir(parents=True)
    try:
        slowest = upload_claimed(claims, names, upload)
        overdue_at = time.monotonic() + max(late_s, 3.0 * slowest)
        while missing := _not_done(claims, len(names)):
            if time.monotonic() >= overdue_at:
                logger.warning("%d files of %s are overdue elsewhere", len(missing), claims.name)
                for number in missing:
                    upload(names[number])
                    (claims / f"{number}.done").touch()
            elif not upload_claimed(claims, names, upload):  # what another could not upload
                time.sleep(min(_LOOK_S, late_s))
    finally:
        remove_claims(claims)


def remove_claims(claims: Path) -> None:
    """Remove a folder of claims in one operation: no file of it becomes free meanwhile."""
    gone = claims.with_name(f".{claims.name}")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(FileNotFoundError):
        claims.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _not_done(claims: Path, count: int) -> list[int]:
    there = {path.name for path in claims.iterdir()}
    return [number for number in range(count) if f"{number}.done" not in there]
