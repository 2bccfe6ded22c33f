"""The mark of a store, `store.json`: its id, signed together with a statement that lies in it.

    {"id": "9f0c...", "signatures": [{"keyid": ..., "sig": ...}], "statement": "<digest>"}

A signature of the id alone would fit wherever the file is copied to. With the statement, the mark
of one store says nothing in another that the same key signs for. A store in whose place somebody
put a whole other one, mark and all, is a copy of that one, which no signature can tell: the line
`# store ID` in a file of trusted keys does.
"""

import base64
import json
from collections.abc import Callable, Collection, Iterator

from pydantic import Field, ValidationError

from data_schemas.frozen_model import FrozenModel
from tasks.errors import DataError, TamperError
from tasks.provenance.lineage.promotions import STORE
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.keys import TrustedKeys, find_signer
from tasks.provenance.lineage.signatures.working import type_of
from tasks.provenance.lineage.statements import open_statement, statement_uri
from tasks.store.files import canonical_json
from tasks.store.interface import store_at
from tasks.store.local import STORE_MARK

_KIND = "store"


class Mark(FrozenModel):
    """The file; that of a new store, or of an earlier version, has an id only."""

    id: str = Field(pattern="^[0-9a-f]{32}$")
    signatures: tuple[dsse.Signature, ...] = ()
    statement: str = ""

    @property
    def payload(self) -> bytes:
        """What is signed."""
        return canonical_json({"id": self.id, "statement": self.statement})

    @property
    def signers(self) -> list[str]:
        """Public keys whose signatures fit."""
        kind = type_of(_KIND, self.id)
        return [one.keyid for one in self.signatures if dsse.is_valid(one, self.payload, kind)]


def sign_mark(store: str, statement: str) -> None:
    """Sign the mark of a store with this run's key, which has just signed a statement there.

    Does nothing where the key has signed the mark, and where there is no key or no mark.

    Raises:
        TamperError: the mark is not that of what lies in the store.
    """
    signer, mark = find_signer(store), _read(store)
    if signer is None or mark is None or signer.public in mark.signers:
        return
    require_mark(store)
    if not mark.signatures:
        mark = mark.model_copy(update={"statement": statement})
    own = signer.sign(mark.payload, type_of(_KIND, mark.id))
    signed = mark.model_copy(update={"signatures": (*mark.signatures, own)})
    store_at(store).write_bytes(canonical_json(signed), STORE_MARK)


def require_mark(store: str, keys: TrustedKeys | None = None) -> None:
    """Refuse a store whose mark is not that of what lies in it; see `mark_problem`.

    Raises:
        TamperError: it is not.
    """
    if problem := mark_problem(store, keys):
        raise TamperError(f"{store}/{STORE_MARK} {problem}. Restore it from a copy of this store.")


def mark_problem(
    store: str,
    keys: TrustedKeys | None = None,
    vouches: Callable[[str, str], bool] = lambda *_: True,
    damaged: Collection[str] = (),
) -> str:
    """Say what is wrong with the mark of a store; '' if nothing is.

    Args:
        store: folder or s3:// uri.
        keys: one of them has to have signed it, as soon as it has signed what names an id; None or
            empty = anybody.
        vouches: whether one of these keys vouches for a statement.
        damaged: digests of statements that were reported already.
    """
    mark = _read(store)
    if mark is None:
        return "is no mark of a store"
    signers = mark.signers
    if len(signers) < len(mark.signatures):
        return "is not as it was signed"
    if signers and mark.statement not in damaged:
        try:
            place = statement_uri(store, mark.statement)
            open_statement(store_at(place).read_bytes(), mark.statement, store)
        except DataError as error:
            return f"is of another store: it was signed with a statement that is not here: {error}"
    if keys and not any(one in keys and vouches(one, mark.statement) for one in signers):
        who = " and ".join(dsse.fingerprint(one)[:16] for one in signers) or "nobody"
        if signers or any(True for _ in statements_with_id(store, keys)):
            return f"is signed by {who}, and by no key that is trusted"
    if not signers:
        for digest, home in statements_with_id(store, keys):
            if home != mark.id:
                return f"has the id {mark.id}, and {statement_uri(store, digest)} is of {home}"
    return ""


def statements_with_id(store: str, keys: TrustedKeys | None) -> Iterator[tuple[str, str]]:
    """Yield (digest, id of a store) of the sound statements that name one.

    Args:
        store: folder or s3:// uri.
        keys: one of them has to have signed; None or empty = anybody.
    """
    place = f"{store}/statements"
    for file in sorted(store_at(place).list_files()):
        digest = file.removesuffix(".json")
        try:
            content = store_at(f"{place}/{file}").read_bytes()
            if not _names_store(content):
                continue  # most do not, and need no check of their signatures
            attested = open_statement(content, digest, store)
        except DataError:
            continue
        home = str(attested.statement.facts.get(STORE, ""))
        if home and (not keys or any(one in keys for one in attested.signers)):
            yield digest, home


def _names_store(content: bytes) -> bool:
    try:
        payload = base64.b64decode(json.loads(content)["payload"])
    except (ValueError, LookupError, TypeError):
        return False
    return f'"{STORE}":'.encode() in payload


def _read(store: str) -> Mark | None:
    try:
        return Mark.model_validate_json(store_at(store).read_bytes(STORE_MARK))
    except (DataError, ValidationError):
        return None
