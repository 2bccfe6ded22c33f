"""Pages for people, compared with the signatures in their last lines."""

from collections.abc import Iterator

from tasks.errors import DataError
from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.signatures.pages import signers_of
from tasks.store.interface import store_at

_FOLDERS = ("reports", "live")
_INDEX = "index.html"


def check_pages(evidence: Evidence) -> str:
    """Add a finding for every page that is not the one that was signed.

    Returns:
        How many a key of the auditor signed, and how many not; those are not compared. Nothing is
        without a key.
    """
    if evidence.keys is None:
        return "not compared"
    signed = others = 0
    for name in _names(evidence.store):
        where = f"{evidence.store}/{name}"
        try:
            signers = signers_of(name, read_record(where))
        except (DataError, ValueError) as error:
            evidence.add(MODEL, where, str(error))
            continue
        is_known = any(signer in evidence.keys for signer in signers)
        signed, others = signed + is_known, others + (not is_known)
    return f"{signed} as signed" + f", {others} not signed by --key and not compared" * bool(others)


def _names(store: str) -> Iterator[str]:
    here = store_at(store).local_path
    if here is not None and (here / _INDEX).exists():  # in S3 its size takes a list of everything
        yield _INDEX
    for folder in _FOLDERS:
        for name in sorted(store_at(f"{store}/{folder}").list_files()):
            if name.endswith(".html"):
                yield f"{folder}/{name}"
