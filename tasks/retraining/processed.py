"""Which files of an inbox were processed, and what became of them; kept in the store.

A file is identified by its name and its content, never by its time: a late file, an upload that
took days, a corrected file under its old name and a wrong clock make no difference.

Files whose rows trained a model that the release gate refused are used again together with the
next new ones, MAX_REFUSALS times in all: good rows are not lost, and a file that spoils every
model it is part of does not stop retraining.

A file that people must look at is held until they say yes or no (`ruling`). What they say is about
its content: it holds for the same file under another name.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pydantic import ValidationError

from data_schemas.intake import FileStatus, InboxFile, ProcessedFile, ProcessedFiles, SignedRuling
from data_schemas.mappings import ColumnMapping
from tasks.errors import DataError, TamperError
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.store import location
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.lease import lease

_KIND = "inbox"
MAX_REFUSALS = 2
"""Refused models after which a file is set aside."""


def load(store: str, inbox: str) -> ProcessedFiles:
    """Read what was processed of an inbox; nothing if it was never read.

    Raises:
        DataError: the file is there but is no such record.
        TamperError: nobody that this run trusts has written it.
    """
    folder, name = _place(store, inbox)
    place = store_at(folder)
    if name not in place.list_files():
        return ProcessedFiles()
    try:
        content, where = place.read_bytes(name), f"{folder}/{name}"
        try:
            payload = unseal(_KIND, f"{location.identity(store)}/{name}", content, where)
        except TamperError:  # one of an earlier version names no store
            payload = unseal(_KIND, name, content, where)
        return ProcessedFiles.model_validate_json(payload)
    except ValidationError as error:
        raise DataError(
            f"{folder}/{name} is no record of processed files: {error.errors()[0]['msg']}. "
            "Delete it to read the whole inbox again; rows that the released model knows are "
            "not trained on twice."
        ) from error


def select(processed: ProcessedFiles, files: Sequence[InboxFile]) -> list[InboxFile]:
    """Pick the files to read: the new ones and, if there are any, those to use again."""
    entries = {
        (file.key, file.fingerprint)
        for file in processed.files
        if file.status is not FileStatus.APPROVED
    }
    new = [file for file in files if (file.key, identity(file)) not in entries]
    again = _to_use_again(processed, files) if new else []
    return sorted([*new, *again], key=lambda file: file.key)


def waiting(processed: ProcessedFiles, files: Sequence[InboxFile]) -> int:
    """Count the files that would be used again with a new one."""
    return len(_to_use_again(processed, files))


def _to_use_again(processed: ProcessedFiles, files: Sequence[InboxFile]) -> list[InboxFile]:
    refused = {
        (file.key, file.fingerprint): file.refusals
        for file in processed.files
        if file.status is FileStatus.REFUSED and file.refusals < MAX_REFUSALS
    }
    return [
        file.model_copy(update={"refusals": refused[file.key, identity(file)]})
        for file in files
        if (file.key, identity(file)) in refused
    ]


def identity(file: InboxFile) -> str:
    """Identify a listed file: its fingerprint, and the mapping that reads it."""
    return _as_read(file.fingerprint, file.mapping)


def content(file: InboxFile) -> str:
    """Identify what a copied file says: its bytes, and the mapping that reads it."""
    return _as_read(file.sha256, file.mapping)


def _as_read(digest: str, mapping: ColumnMapping | None) -> str:
    if mapping is None:
        return digest
    # A mapping comes from a file or through Flyte, which sorts keys: only canonical JSON is equal.
    return sha256_bytes(canonical_json([digest, mapping.model_dump(mode="json")]))


def settle(
    store: str, inbox: str, files: Sequence[InboxFile], status: FileStatus, execution: str
) -> ProcessedFiles:
    """Record what became of files; call it after all results are stored. Idempotent.

    Args:
        store: uri.
        inbox: of the settings.
        files: as they were listed.
        status: of all of them.
        execution: that processed them.
    """
    with change(store, inbox, execution) as (before, write):
        by_key = {file.key: file for file in before.files}
        for file in files:
            by_key[file.key] = ProcessedFile(
                key=file.key,
                fingerprint=identity(file),
                status=status,
                refusals=file.refusals + (status is FileStatus.REFUSED),
                execution=execution,
                content=content(file),
            )
        settled = tuple(by_key[key] for key in sorted(by_key))
        return write(before.model_copy(update={"files": settled}))


def rulings(processed: ProcessedFiles) -> dict[str, SignedRuling]:
    """List what was decided last about files that were held, by what they say."""
    return {what: ruled for ruled in processed.rulings for what in ruled.ruling.files.values()}


@contextmanager
def change(
    store: str, inbox: str, execution: str
) -> Iterator[tuple[ProcessedFiles, Callable[[ProcessedFiles], ProcessedFiles]]]:
    """Yield what was processed, and a function that replaces it; nobody else does so meanwhile."""
    folder, name = _place(store, inbox)
    with lease(f"{folder}/{name}.lease", f"{execution}, files of {inbox}") as own_lease:

        def write(after: ProcessedFiles) -> ProcessedFiles:
            # In S3 another run may have taken over while this one was slow.
            own_lease.confirm()
            sealed = seal(_KIND, f"{location.identity(store)}/{name}", canonical_json(after))
            store_at(folder).write_bytes(sealed, name)
            return after

        yield load(store, inbox), write


def _place(store: str, inbox: str) -> tuple[str, str]:
    folder = store_at(inbox).local_path
    whole = str(folder.expanduser().resolve()) if folder else inbox.rstrip("/")
    return f"{store}/inboxes", f"{sha256_bytes(whole.encode())[:16]}.json"
