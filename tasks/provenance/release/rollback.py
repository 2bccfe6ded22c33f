"""Make an earlier version of a registered model the released one again.

eachprompt rollback --store runs --model eachprompt-tiny

goes back to the version with the alias `previous`; --to 3 to that version. Only a version that
passed its gate and whose files are what was recorded is released again. The rollback is a stage of
its own: it writes a statement, and the history of the model names it.
"""

import json
import time
import uuid

from pydantic import BaseModel, ConfigDict

from data_schemas.artifacts import CheckpointRef, Execution, StoreRef
from tasks.errors import SettingsError, TamperError
from tasks.platform.cache_version import shell_digest
from tasks.provenance.lineage.finished import read_history
from tasks.provenance.lineage.lookup import Lookup, Version
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.registry import PREVIOUS, RELEASED
from tasks.provenance.lineage.shipping import MODEL, ROLLBACK, begin
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import open_statement, statement_uri
from tasks.provenance.release.promotion import turn
from tasks.store.interface import store_at


class Rollback(BaseModel):
    """What is asked for: the settings of the stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    with turn(name, store, execution) as turn_lease:
        earlier, current = _choose(name, number, store.tracking_uri)
        begin(store, execution)
        settings = Rollback(name=name, version=earlier.number, replaces=current.number)
        code = shell_digest(__name__, roll_back.__name__)
        with stage(ROLLBACK, settings, store, execution, code) as record:
            restored = _release(earlier, store)
            record.read(MODEL, restored)
            record.facts({"restored": earlier.number, "replaced": current.number})
            record.facts({word: text for word, text in (("by", by), ("reason", reason)) if text})
            trusted = trusted_keys(store.uri)
            record.facts(next_promotion(name, store.uri, trusted, restored.digest))
            turn_lease.confirm()
            record.restore(name, earlier.tags["statement"])
    return Lookup(store.tracking_uri).version(f"models:/{name}@{RELEASED}")


def _choose(name: str, number: str, tracking_uri: str) -> tuple[Version, Version]:
    """Find the version to go back to and the released one."""
    lookup = Lookup(tracking_uri)
    current = lookup.version(f"models:/{name}@{RELEASED}")
    earlier = lookup.version(f"models:/{name}/{number}" if number else f"models:/{name}@{PREVIOUS}")
    if earlier.number == current.number:
        raise SettingsError(f"models:/{name}/{earlier.number} is the released version already")
    if earlier.number not in {entry.version for entry in read_history(name, tracking_uri)}:
        raise SettingsError(
            f"models:/{name}/{earlier.number} was never released; choose one from the history: "
            f"eachprompt history --model {name}"
        )
    return earlier, current


def _release(version: Version, store: StoreRef) -> CheckpointRef:
    statement, digest = version.tags["statement"], version.tags["sha256"]
    where = statement_uri(store.uri, statement)
    released = open_statement(store_at(where).read_bytes(), statement, store.uri)
    outputs = {output.digest: output for output in released.statement.outputs}
    trusted = trusted_keys(store.uri)
    if trusted and not any(signer in trusted for signer in released.signers):
        raise TamperError(f"{where} is not signed by a key that this run trusts. Run the audit.")
    if json.loads(released.statement.settings).get("name") != version.name or not int(
        released.statement.facts.get("released", 0)
    ):
        raise SettingsError(
            f"models:/{version.name}/{version.number} did not pass the gate of a release of that "
            "name, whatever MLflow's history says. Run the audit."
        )
    if digest not in outputs:
        raise SettingsError(
            f"models:/{version.name}/{version.number} is not what its statement made. "
            "Run the audit."
        )
    return CheckpointRef(uri=outputs[digest].uri, digest=digest, statement=statement)
