"""Pages for people, compared with the signed statements about them."""

from collections.abc import Iterator

from pydantic import ValidationError

from data_schemas.drift import NightDetails
from tasks.errors import DataError
from tasks.formats.nights import FILE as NIGHT_FILE
from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.pages import PLACE, page_statement, signers_of
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at
from tasks.store.location import identity

_REPORTS, _LIVE = "reports", "live"
_INDEX = "index.html"
_TRIES = 5
"""A phase that runs replaces its page, and the statement about the one before."""


def check_pages(evidence: Evidence) -> str:
    """Add a finding for every page that was changed, deleted or written by somebody else.

    Nothing in `live/` has to be kept.

    Returns:
        How many are as signed; without keys of the auditor anybody could have signed.
    """
    if evidence.keys is None:
        return "not compared"
    as_signed = 0
    names = sorted({*_present(evidence.store), *_list_reports(evidence.store)})
    for name in names:
        if problem := _problem(evidence, name):
            evidence.add(MODEL, f"{evidence.store}/{name}", problem)
        else:
            as_signed += 1
    return f"{as_signed} of {len(names)} as signed"


def _problem(evidence: Evidence, name: str) -> str:
    signers: list[str] = []
    for _ in range(_TRIES):
        try:
            digest = sha256_bytes(read_record(f"{evidence.store}/{name}"))
        except DataError as error:
            is_gone = str(error) == "gone"
            return f"gone; if that was meant, delete {PLACE}/{name} too" if is_gone else str(error)
        try:
            statement = read_record(page_statement(evidence.store, name, digest))
        except DataError:
            continue
        signers = signers_of(name, digest, statement, identity(evidence.store))
        if any(signer in (evidence.keys or {}) for signer in signers):
            return ""
    who = ", ".join(fingerprint(signer)[:16] for signer in signers)
    if who:
        return f"is signed by key {who}, not by --key"
    return "is not a page that was signed; one of an earlier version may be moved out of the store"


def _present(store: str) -> Iterator[str]:
    for folder in (_REPORTS, _LIVE):
        for name in store_at(f"{store}/{folder}").list_files():
            if not _is_night(store, folder, name):
                yield f"{folder}/{name}"
    here = store_at(store).local_path  # in S3 the size of the index takes a list of everything
    if here is not None and ((here / _INDEX).exists() or (here / PLACE / _INDEX).exists()):
        yield _INDEX


def _is_night(store: str, folder: str, name: str) -> bool:
    """True for what the page of a night is made of; every other file may be opened as a page."""
    if folder != _REPORTS or not name.endswith(f".{NIGHT_FILE}"):
        return False
    try:
        NightDetails.model_validate_json(read_record(f"{store}/{folder}/{name}"))
    except (DataError, ValidationError):
        return False
    return True


def _list_reports(store: str) -> Iterator[str]:
    """Name the reports that were written."""
    for name in store_at(f"{store}/{PLACE}/{_REPORTS}").list_files():
        yield f"{_REPORTS}/{name.rpartition('/')[0]}"
