"""Tombstones: signed notes in the place of models that were deleted on purpose.

`<store>/tombstones/<digest>.json` lies in an envelope of its own kind and name, so that no other
envelope of the same key is taken for it. An audit accepts it in the model's place.
"""

from pydantic import ValidationError

from data_schemas.statements import Tombstone
from tasks.errors import DataError, TamperError
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.working import seal, type_of, unseal
from tasks.store.files import canonical_json
from tasks.store.interface import store_at
from tasks.store.location import identity

KIND = "tombstone"
PLACE = "tombstones"
"""Folder of the store."""


def tombstone_uri(store: str, digest: str) -> str:
    """Return the uri of the note about an object."""
    return f"{store}/{PLACE}/{digest}.json"


def bury(store: str, note: Tombstone) -> None:
    """Write the note, then delete the object; a call that was cut is made again."""
    sealed = seal(KIND, note.digest, canonical_json(note))
    store_at(tombstone_uri(store, note.digest)).write_bytes(sealed)
    store_at(note.uri).delete_folder()


def read_tombstone(content: bytes, digest: str, where: str) -> tuple[Tombstone, tuple[str, ...]]:
    """Read a note and the keys whose signatures fit.

    Raises:
        TamperError: it is none, was changed, or is about another object.
    """
    try:
        envelope = dsse.Envelope.model_validate_json(content)
        payload = dsse.payload_of(envelope, kind := type_of(KIND, digest))
        note = Tombstone.model_validate_json(payload)
    except (ValidationError, ValueError) as error:
        raise TamperError(f"{where} is no tombstone of {digest}: {error}") from error
    if note.digest != digest:
        raise TamperError(f"{where} is about {note.digest}")
    store = where.removesuffix(f"/{PLACE}/{digest}.json")
    # Those of an earlier version name no store, but where the object lay.
    if note.store != identity(store) if note.store else not note.uri.startswith(f"{store}/"):
        raise TamperError(f"{where} is of another store")
    fit = [one.keyid for one in envelope.signatures if dsse.is_valid(one, payload, kind)]
    if len(fit) < len(envelope.signatures):
        raise TamperError(f"{where}: a signature does not fit")
    return note, tuple(fit)


def is_buried(store: str, digest: str) -> bool:
    """True if an object was deleted on purpose, by a key that this run trusts.

    Raises:
        TamperError: something else lies in the place of the note.
    """
    where = tombstone_uri(store, digest)
    try:
        content = store_at(where).read_bytes()
    except DataError:
        return False
    unseal(KIND, digest, content, where)
    read_tombstone(content, digest, where)
    return True
