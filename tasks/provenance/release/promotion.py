"""One promotion at a time: nobody else may release under a name between question and answer.

The question is which version is released, the answer that of the registry.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from data_schemas.artifacts import Execution, StoreRef
from tasks.errors import SettingsError
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.promotions import promotions
from tasks.provenance.lineage.registry import KEY, RELEASED
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.statements import load_statement
from tasks.provenance.release.champion import CANDIDATE
from tasks.store.files import sha256_bytes
from tasks.store.lease import Lease, lease


@contextmanager
def turn(name: str, store: StoreRef, execution: Execution) -> Iterator[Lease]:
    """Hold the lease of a registered model while the block runs; wait for another holder."""
    place = f"{store.uri}/leases/release-{sha256_bytes(name.encode())[:16]}"
    with lease(place, f"{execution.id}, release of {name}") as held:
        yield held


def is_current(name: str, statement: str, candidate: str, store: str) -> bool:
    """Look up in the signed statements whether a release is the current one; MLflow can be edited.

    A release of this candidate that follows it counts too: a task may be tried again after that.

    Args:
        name: of the registered model.
        statement: of the release, or of the rollback, that has to be current.
        candidate: digest of the checkpoint that is to follow.
        store: uri. One without any promotion of the name contradicts nothing.
    """
    found = promotions(name, store, trusted_keys(store))
    if not found or statement == found[-1].release:
        return True
    followed = {one.statement: one.release for one in found}
    made = load_statement(store, found[-1].release)
    return followed.get(found[-1].before) == statement and any(
        item.role == CANDIDATE and item.digest == candidate for item in made.inputs
    )


def is_released(name: str, statement: str, execution: str, tracking_uri: str) -> bool:
    """Ask the registry whether the alias `released` is where it was when training began.

    A release by this execution counts too: its task may be tried again after it was registered.

    Args:
        name: of the registered model.
        statement: of the version that was released when training began.
        execution: id of this one.
        tracking_uri: of MLflow.

    Raises:
        EngineError: MLflow does not answer.
    """
    try:
        version = Lookup(tracking_uri).version(f"models:/{name}@{RELEASED}")
    except SettingsError:  # there is none any more
        return False
    mine = version.tags.get(KEY, "").startswith(f"{execution}.")
    return mine or version.tags.get("statement") == statement
