"""One promotion at a time: nobody else may release under a name between question and answer.

The question is which version is released, the answer that of the registry.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from data_schemas.artifacts import Execution, StoreRef
from tasks.errors import SettingsError
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.registry import KEY, RELEASED
from tasks.store.files import sha256_bytes
from tasks.store.lease import Lease, lease


@contextmanager
def turn(name: str, store: StoreRef, execution: Execution) -> Iterator[Lease]:
    """Hold the lease of a registered model while the block runs; wait for another holder."""
    place = f"{store.uri}/leases/release-{sha256_bytes(name.encode())[:16]}"
    with lease(place, f"{execution.id}, release of {name}") as held:
        yield held


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
