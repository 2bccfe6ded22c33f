"""Pages that carry the signature of their text in their last line: a copy of a page has it too.

A page is written in one piece, so none is ever beside the signature of another.
"""

import base64
import binascii
import re

from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.working import seal, type_of
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at

_KIND = "page"
_LAST_LINE = re.compile(rb"\n<!-- signed ([A-Za-z0-9+/=]*) -->\n\Z")


def write_page(store: str, name: str, html: str) -> str:
    """Sign a page, write it and return its location.

    Args:
        store: uri.
        name: below the store, 'reports/NAME.html'; the page under another name is not signed.
        html: of the page.
    """
    text = html.encode()
    envelope = base64.b64encode(seal(_KIND, name, sha256_bytes(text).encode()))
    place = f"{store}/{name}"
    store_at(place).write_bytes(text + b"\n<!-- signed " + envelope + b" -->\n")
    return place


def signers_of(name: str, page: bytes) -> list[str]:
    """Return the public keys that signed a page under its name; none if nobody did.

    Raises:
        ValueError: its text is not the one that was signed.
    """
    line = _LAST_LINE.search(page)
    if line is None:
        return []
    try:
        envelope = dsse.Envelope.model_validate_json(base64.b64decode(line[1], validate=True))
        payload = dsse.payload_of(envelope, type_ := type_of(_KIND, name))
    except (ValueError, binascii.Error) as error:
        raise ValueError("its signature is of something else") from error
    if payload != sha256_bytes(page[: line.start()]).encode():
        raise ValueError("is not the page that was signed")
    return [one.keyid for one in envelope.signatures if dsse.is_valid(one, payload, type_)]
