"""Which model is released, where it lies, and who vouches for it: one answer for everybody.

The signed statements of the store that was named give it. MLflow, which any client can edit, is
asked for one thing only: which release has the number 3. That release is then looked up like any
other, and has to be a signed release of that name in this store.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.artifacts import CheckpointRef
from data_schemas.statements import Statement
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.lineage.lookup import Lookup, parse_model_uri
from tasks.provenance.lineage.promotions import (
    RELEASE,
    STORE,
    Promotion,
    led_to,
    promotion_problems,
    promotions,
)
from tasks.provenance.lineage.registry import PREVIOUS, RELEASED
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.keys import (
    TRUSTED_VARIABLE,
    PublicKey,
    TrustedKeys,
    trusted_keys,
)
from tasks.provenance.lineage.statements import open_statement, statement_uri
from tasks.store.interface import store_at
from tasks.store.location import identity

_DIGEST = re.compile(r"[0-9a-f]{64}")
ALIASES = (RELEASED, PREVIOUS)
"""Follow from the signed promotions; every other alias, and every number, is MLflow's word."""
CANDIDATE = "candidate"
"""Role of the checkpoint that a release reads."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of a registered model, as its signed statement in a store names it."""

    name: str
    folder: CheckpointRef
    """The release: files of the model, card and manifest."""
    statement: Statement
    signers: tuple[str, ...]
    """Public keys whose signatures fit."""

    @property
    def checkpoint(self) -> CheckpointRef | None:
        """What was released, without card and manifest; None if its statement names none."""
        return next(
            (
                CheckpointRef(uri=item.uri, digest=item.digest, statement=item.statement)
                for item in self.statement.inputs
                if item.role == CANDIDATE
            ),
            None,
        )


def find_release(
    model: str, store: str, tracking_uri: str, keys: TrustedKeys | None = None
) -> Release:
    """Find a release.

    Args:
        model: models:/NAME@released, models:/NAME@previous, models:/NAME/3; other aliases are
            numbers by another name.
        store: folder or s3:// uri that holds its statements and its files.
        tracking_uri: of MLflow, for numbers.
        keys: one of them has to have signed; None = those that this run trusts, empty = anybody.

    Raises:
        SettingsError: there is none in this store that a trusted key signed.
        TamperError: a promotion is gone or doubled, or a number leads to what is no such release.
        EngineError: MLflow or the store does not answer.
    """
    name, alias, _ = parse_model_uri(model)
    trusted = trusted_keys(store) if keys is None else keys
    if alias not in ALIASES:
        digest = Lookup(tracking_uri).version(model).tags.get("statement", "")
        return _open(name, digest, store, trusted, f"{model} is {digest or 'nothing'} in MLflow")
    history = history_of(name, store, trusted)
    if not history:
        raise SettingsError(_nothing(name, store, trusted))
    promotion = select(alias, history)
    if promotion is None:
        raise SettingsError(f"{model}: only one model was ever released under that name")
    return _open(
        name, promotion.release, store, trusted, f"{model} is promotion {promotion.number}"
    )


def select(alias: str, history: Sequence[Promotion]) -> Promotion | None:
    """Return the promotion that an alias stands for, None without one.

    Args:
        alias: 'released', the last promotion, or 'previous', the last of other content.
        history: promotions of a name, the current one last.
    """
    if alias == RELEASED or not history:
        return history[-1] if history else None
    others = [one for one in history if one.checkpoint != history[-1].checkpoint]
    return others[-1] if others else None


def history_of(name: str, store: str, keys: TrustedKeys | None = None) -> list[Promotion]:
    """List the promotions of a name in a store, the current one last; empty without any.

    Args:
        name: of the registered model.
        store: folder or s3:// uri.
        keys: as in `find_release`.

    Raises:
        TamperError: one is gone, or two have the same number.
    """
    history = promotions(name, store, trusted_keys(store) if keys is None else keys)
    for statement, problem in promotion_problems(history):
        raise TamperError(f"{statement_uri(store, statement)} {problem}. Run the audit.")
    return history


def is_current(name: str, statement: str, candidate: str, store: str) -> bool:
    """True if a release is the current one of its name.

    A release of this candidate that follows it counts too: a task may be tried again after that.

    Args:
        name: of the registered model.
        statement: of the release that has to be current.
        candidate: digest of the checkpoint that is to follow.
        store: uri.

    Raises:
        TamperError: as `history_of`.
    """
    history = history_of(name, store)
    if not history or statement == history[-1].release:
        return bool(history)
    followed = {one.statement: one.release for one in history}
    current = _open(name, history[-1].release, store, trusted_keys(store), name).checkpoint
    return followed.get(history[-1].before) == statement and (
        current is not None and current.digest == candidate
    )


def _open(name: str, digest: str, store: str, keys: TrustedKeys, about: str) -> Release:
    """Open a statement as a release of a name that a trusted key signed.

    Raises:
        TamperError: it is gone, was changed, or is anything else.
    """
    if not _DIGEST.fullmatch(digest):
        raise TamperError(f"{about}, which names no statement. Run the audit.")
    where = statement_uri(store, digest)
    try:
        attested = open_statement(store_at(where).read_bytes(), digest, store)
    except TamperError:
        raise
    except DataError as error:
        raise TamperError(f"{about}, and its statement {error}") from error
    statement = attested.statement
    if keys and not any(
        one in keys and _reaches(keys[one], digest, store) for one in attested.signers
    ):
        raise TamperError(
            f"{about}, and {where} is not signed by a key that this run trusts. Run the audit."
        )
    settings_name = json.loads(statement.settings).get("name")
    home = str(statement.facts.get(STORE, ""))
    if home and home != identity(store):
        raise TamperError(f"{about}, and {where} is of another store. Run the audit.")
    if statement.stage != RELEASE or settings_name != name or not statement.outputs:
        raise TamperError(f"{about}, and {where} is no release of {name}. Run the audit.")
    output = statement.outputs[0]
    folder = CheckpointRef(uri=output.uri, digest=output.digest, statement=digest)
    return Release(name, folder, statement, attested.signers)


def _reaches(key: PublicKey, digest: str, store: str) -> bool:
    """True if a key vouches for a statement, as far as its file limits it."""

    def read(current: str) -> Statement | None:
        try:
            content = store_at(statement_uri(store, current)).read_bytes()
            return open_statement(content, current, store).statement
        except DataError:
            return None

    return key.last is None or digest in led_to(key.last, read)


def _nothing(name: str, store: str, keys: TrustedKeys) -> str:
    """Say why nothing is released."""
    others = promotions(name, store, {}) if keys else []
    if not others:
        return (
            f"nothing was released as {name} in {store}. Correct the name, or name the store of "
            "the release in --store; for a run in another store, `eachprompt publish` makes a "
            "folder of it."
        )
    content = store_at(statement_uri(store, others[-1].statement)).read_bytes()
    signers = open_statement(content, others[-1].statement, store).signers
    who = " and ".join(fingerprint(one)[:16] for one in signers) or "nobody"
    return (
        f"the releases of {name} in {store} are signed by {who}, and by no key that this run "
        f"trusts. If you know the key, name a file with its public half in {TRUSTED_VARIABLE}."
    )
