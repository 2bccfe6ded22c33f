"""How far each inbox has been read, kept in the store.

The mark is the arrival of the newest processed file. Files do not always show up in the
order of their times: S3 dates a multipart upload by its beginning, its clock ticks in
seconds, and a corrected file comes again under its old name. Near the mark, files
are therefore distinguished by name and fingerprint, not by time.

Limit: a file that shows up more than LOOKBACK_S later than its own date says is not seen.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from data_schemas.intake import InboxFile, Watermark
from tasks.errors import DataError
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at

LOOKBACK_S = 24 * 3600.0
"""No sane upload takes longer than a day."""


def load(store: str, inbox: str) -> Watermark:
    """Read the watermark of an inbox; the start of time if it was never read.

    Raises:
        DataError: the file is there but is no watermark.
    """
    folder, name = _place(store, inbox)
    place = store_at(folder)
    if name not in place.list_files():
        return Watermark()
    where = f"{folder}/{name}"
    try:
        return Watermark.model_validate_json(place.read_bytes(name))
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
    """Record that these files are processed; call it after all results are stored.

    The mark never moves back; advancing is idempotent.
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
    store_at(folder).write_bytes(canonical_json(after), name)
    return after


def _age(file: InboxFile) -> tuple[float, str]:
    return file.modified, file.key


def _place(store: str, inbox: str) -> tuple[str, str]:
    folder = store_at(inbox).local_path
    whole = str(folder.resolve()) if folder else inbox.rstrip("/")
    return f"{store}/watermarks", f"{sha256_bytes(whole.encode())[:16]}.json"
