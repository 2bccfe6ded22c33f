"""How far each inbox has been read, kept in the store.

The mark is the arrival of the newest processed file. Files do not always show up in the
order of their times: S3 dates a multipart upload by its beginning, its clock ticks in
seconds, and a corrected file comes again under its old name. So near the mark files are
told apart by name and fingerprint and not by time.

Limit: a file that shows up more than LOOKBACK_S later than its own date says is not seen.
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from data_schemas.intake import InboxFile, Watermark
from tasks.errors import DataError
from tasks.store import remote
from tasks.store.local import canonical_json, sha256_bytes

LOOKBACK_S = 24 * 3600.0
"""No sane upload takes longer than a day."""


def load(store: str, inbox: str) -> Watermark:
    """Read the watermark of an inbox; the start of time if it was never read.

    Raises:
        DataError: the file is there but is no watermark.
    """
    folder, name = _place(store, inbox)
    if name not in remote.list_files(folder):
        return Watermark()
    where = f"{folder}/{name}"
    try:
        return Watermark.model_validate_json(remote.read_bytes(where))
    except ValidationError as error:
        raise DataError(
            f"{where} is no watermark: {error.errors()[0]['msg']}. "
            "Delete it to read the whole inbox again."
        ) from error


def new_files(watermark: Watermark, files: Sequence[InboxFile]) -> list[InboxFile]:
    """Pick the files that were not processed yet, oldest first."""
    horizon = watermark.modified - LOOKBACK_S
    seen = {file.key: file.fingerprint for file in watermark.recent}
    return sorted(
        (
            file
            for file in files
            if file.modified >= horizon and seen.get(file.key) != file.fingerprint
        ),
        key=_age,
    )


def advance(store: str, inbox: str, processed: Sequence[InboxFile]) -> Watermark:
    """Store that these files are dealt with; call it after everything made of them is safe.

    The mark never goes back, and advancing twice is advancing once.
    """
    before = load(store, inbox)
    known = {file.key: file for file in [*before.recent, *processed]}
    modified, key = max([(before.modified, before.key), *map(_age, processed)])
    after = Watermark(
        modified=modified,
        key=key,
        recent=tuple(
            known[name] for name in sorted(known) if known[name].modified >= modified - LOOKBACK_S
        ),
    )
    folder, name = _place(store, inbox)
    remote.write_bytes(f"{folder}/{name}", canonical_json(after))
    return after


def _age(file: InboxFile) -> tuple[float, str]:
    return file.modified, file.key


def _place(store: str, inbox: str) -> tuple[str, str]:
    whole = inbox.rstrip("/") if remote.is_remote(inbox) else str(Path(inbox).resolve())
    return f"{store}/watermarks", f"{sha256_bytes(whole.encode())[:16]}.json"
