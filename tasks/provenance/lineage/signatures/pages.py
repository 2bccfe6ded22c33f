"""Pages for people, each with a signed statement that this text lies under this name.

A page shows times, so it is no output of a stage, whose statement is the same whoever runs it. The
page's own, an in-toto Statement with one subject, lies at `<store>/pages/<name>/<sha256>.json`. It
is there before the page is, and that of a text which was replaced may stay: several may write.
"""

from pydantic import ValidationError

from tasks.provenance.lineage.attestation import STATEMENT_TYPE
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.location import identity

PLACE = "pages"
"""Folder of the statements about pages."""
PREDICATE_TYPE = "urn:eachprompt:page:v1"


def write_page(store: str, name: str, html: str, before: str = "") -> str:
    """Sign a statement about a page, write both and return the location of the page.

    Args:
        store: uri.
        name: below the store, 'reports/NAME.html'; the page under another name is not signed.
        html: of the page.
        before: what this writer alone wrote under this name; its statement is deleted.
    """
    digest = sha256_bytes(html.encode())
    payload, signer = _payload(name, digest, identity(store)), find_signer(store)
    envelope = dsse.seal(payload, [signer.sign(payload)] if signer else [])
    store_at(page_statement(store, name, digest)).write_bytes(canonical_json(envelope))
    place = f"{store}/{name}"
    store_at(place).write_bytes(html.encode())
    if before not in ("", html):
        store_at(page_statement(store, name, sha256_bytes(before.encode()))).delete_file()
    return place


def page_statement(store: str, name: str, digest: str) -> str:
    """Return the uri of the statement about a text under a name."""
    return f"{store}/{PLACE}/{name}/{digest}.json"


def signers_of(name: str, digest: str, content: bytes, store: str) -> list[str]:
    """Return the public keys that signed a statement about a text under a name; none if nobody did.

    Args:
        name: of the page.
        digest: of its text.
        content: of the statement.
        store: id of the store of the page; a statement of an earlier version names none.
    """
    try:
        envelope = dsse.Envelope.model_validate_json(content)
        payload = dsse.payload_of(envelope)
        is_its_own = payload in (_payload(name, digest, store), _payload(name, digest, ""))
    except (ValidationError, ValueError):
        return []
    signatures = envelope.signatures if is_its_own else ()
    return [one.keyid for one in signatures if dsse.is_valid(one, payload)]


def _payload(name: str, digest: str, store: str) -> bytes:
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": digest}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {"store": store} if store else {},
        }
    )
