"""Make an earlier version of a registered model the released one again.

eachprompt rollback --store runs --model eachprompt-tiny

goes back to the version with the alias `previous`; --to 3 to that version. Only a version that
passed its gate and whose files are what was recorded is released again. The rollback is a stage of
its own: it writes a statement, and the history of the model names it.
"""

import time
import uuid

from data_schemas.artifacts import Context, Execution, StoreRef
from data_schemas.frozen_model import FrozenModel
from tasks.errors import SettingsError
from tasks.platform.cache_version import shell_digest
from tasks.provenance.lineage.connection import REPAIR
from tasks.provenance.lineage.lookup import Lookup, Version
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.registry import PREVIOUS, RELEASED
from tasks.provenance.lineage.releases import Release, find_release, history_of
from tasks.provenance.lineage.shipping import begin
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.version_details import MODEL, ROLLBACK
from tasks.provenance.release.promotion import turn


class Rollback(FrozenModel):
    """What is asked for: the settings of the stage."""

    name: str
    version: str
    replaces: str
    """Version that was the released one."""


def roll_back(name: str, number: str, store: StoreRef, by: str = "", reason: str = "") -> Version:
    """Release an earlier version again and return it.

    Args:
        name: of the registered model.
        number: of the version; '' = the one with the alias `previous`.
        store: of the model.
        by: who decided it; '' = the user of this process, whom the signed attestation names.
        reason: why, for the statement.

    Raises:
        SettingsError: there is no such version, it is the released one, or it never passed a gate.
        TamperError: its files are not what was recorded.
        EngineError: MLflow or the store does not answer.
    """
    when = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(when))
    execution = Execution(id=f"{stamp}-{uuid.uuid4().hex[:6]}", started=when, workflow="rollback")
    with turn(name, Context(store, execution)) as turn_lease:
        earlier, current = _choose(name, number, store)
        begin(Context(store, execution))
        versions = [_number(one, store.tracking_uri) for one in (earlier, current)]
        settings = Rollback(name=name, version=versions[0], replaces=versions[1])
        code = shell_digest(__name__, roll_back.__name__)
        with stage(ROLLBACK, settings, Context(store, execution), code) as record:
            record.read(MODEL, earlier.folder)
            record.facts({"restored": versions[0], "replaced": versions[1]})
            record.facts({word: text for word, text in (("by", by), ("reason", reason)) if text})
            trusted = trusted_keys(store.uri)
            record.facts(next_promotion(name, store.uri, trusted, earlier.folder.digest))
            turn_lease.confirm()
            record.restore(name, earlier.folder.statement, ROLLBACK)
    return Lookup(store.tracking_uri).version(f"models:/{name}@{RELEASED}")


def _choose(name: str, number: str, store: StoreRef) -> tuple[Release, Release]:
    """Find the release to go back to and the current one."""
    places = store.uri, store.tracking_uri
    current = find_release(f"models:/{name}@{RELEASED}", *places)
    model = f"models:/{name}/{number}" if number else f"models:/{name}@{PREVIOUS}"
    earlier = find_release(model, *places)
    if earlier.folder.statement == current.folder.statement:
        raise SettingsError(f"{model} is the released version already")
    if earlier.folder.digest not in {one.checkpoint for one in history_of(name, store.uri)}:
        raise SettingsError(
            f"{model} was never released; choose one from the history: "
            f"eachprompt history --model {name}"
        )
    return earlier, current


def _number(release: Release, tracking_uri: str) -> str:
    """Return the number that MLflow has for a release.

    Raises:
        SettingsError: it has none, so that no alias could point at it.
    """
    version = Lookup(tracking_uri).registered(release.name, release.folder.statement)
    if version is None:
        raise SettingsError(
            f"MLflow has no version of {release.name} with the statement "
            f"{release.folder.statement}; rebuild it from the statements: {REPAIR} STORE"
        )
    return version.number
