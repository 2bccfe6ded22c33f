"""A second person says yes to a release that passed its gate: a statement signed by another key.

eachprompt approve models:/eachprompt-tiny/3 --by ann --because "read the answers page"

Where `release.approvals` asks for it, nothing else makes a version the released one: a promotion
without enough approvals counts for nobody (`tasks.provenance.lineage.promotions`). That a key is
another person's is what whoever distributes keys vouches for.
"""

import json
import time
import uuid
from collections.abc import Collection

from data_schemas.artifacts import Context, Execution, StoreRef
from data_schemas.frozen_model import FrozenModel
from tasks.errors import SettingsError
from tasks.platform.cache_version import shell_digest
from tasks.provenance.lineage.promotions import (
    AFTER,
    AWAITS,
    approvals,
    next_promotion,
)
from tasks.provenance.lineage.releases import Release, find_release, history_of
from tasks.provenance.lineage.shipping import begin
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer, trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.version_details import APPROVAL, MODEL
from tasks.provenance.release.promotion import turn


class Approval(FrozenModel):
    """What is approved, and by whom: the settings of the stage."""

    name: str
    release: str
    """Digest of its statement."""
    key: str
    """Fingerprint: two people who say the same say it in two statements."""
    by: str
    because: str


def approve_release(model: str, store: StoreRef, by: str, because: str) -> int:
    """Record a yes to a release; the last that is asked for makes it the released version.

    Args:
        model: models:/NAME/3.
        store: of the model.
        by: who decides it.
        because: why.

    Returns:
        Approvals that are still missing; 0 = it is released.

    Raises:
        SettingsError: it asks for no approval, was refused by its gate or is released already;
            another version was released since it was compared; or this key signed the release or an
            approval of it.
        TamperError: its files or its statement are not what was recorded.
        EngineError: MLflow or the store does not answer.
    """
    for option, text in (("--by", by), ("--because", because)):
        if not text.strip():
            raise SettingsError(f"{option} is empty; who decides and why is what is recorded")
    when = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(when))
    execution = Execution(id=f"{stamp}-{uuid.uuid4().hex[:6]}", started=when, workflow="approve")
    context = Context(store, execution)
    release = find_release(model, store.uri, store.tracking_uri)
    root, name = release.folder.statement, release.name
    with turn(name, context) as turn_lease:
        trusted = trusted_keys(store.uri)
        signers, before = approvals(root, store.uri, trusted)
        _check_waits(model, release, store)
        key = _own_key(model, {*release.signers, *signers}, store)
        begin(context)
        settings = Approval(name=name, release=root, key=key, by=by, because=because)
        code = shell_digest(__name__, approve_release.__name__)
        with stage(APPROVAL, settings, context, code) as record:
            record.read(MODEL, release.folder)
            record.facts({"by": by, "because": because})
            if before == 1:
                record.facts(next_promotion(name, store.uri, trusted, release.folder.digest))
                turn_lease.confirm()
                record.restore(name, root, "approve")
    return before - 1


def _own_key(model: str, signers: Collection[str], store: StoreRef) -> str:
    """Return the fingerprint of the key that is to say yes."""
    signer = find_signer(store.uri)
    if signer is None:
        raise SettingsError(f"an approval has to be signed; name a key in {KEY_VARIABLE}")
    if signer.public in signers:
        raise SettingsError(
            f"{model} is signed or approved by this key, {fingerprint(signer.public)[:16]}; "
            f"somebody else has to approve it, with a key of their own ({KEY_VARIABLE})"
        )
    return fingerprint(signer.public)


def _check_waits(model: str, release: Release, store: StoreRef) -> None:
    facts = release.statement.facts
    if not facts.get(AWAITS):
        required = json.loads(release.statement.settings).get("approvals", 0)
        cause = (
            "its gate refused it" if required else "its settings ask for none (release.approvals)"
        )
        raise SettingsError(f"{model} waits for no approval: {cause}")
    history = history_of(release.name, store.uri)
    if any(one.release == release.folder.statement for one in history):
        raise SettingsError(f"{model} is approved and was released already")
    if (history[-1].statement if history else "") != facts.get(AFTER, ""):
        raise SettingsError(
            f"another version of {release.name} was released since {model} was compared with the "
            "one before. Run it again, so that its gate compares it with the present one."
        )
