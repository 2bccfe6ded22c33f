"""Send the spools that did not arrive: after an outage, or after a stage that was killed.

A store in S3 keeps every spool, below `spool/` until it arrived and below `spool/shipped/` then.
"""

import logging
import os
import tempfile
from pathlib import Path

from data_schemas.artifacts import StoreRef
from tasks.errors import EngineError
from tasks.lineage.catalogue import Catalogue
from tasks.lineage.spool import SHIPPED, ship_left_over
from tasks.store.files import write_bytes
from tasks.store.interface import store_at
from tasks.store.lease import lease

logger = logging.getLogger(__name__)

_PATIENCE_S = 120.0
"""How long a stage waits for another process that sends what an outage left."""
LEASE = "sync.lease"
"""Name of the lease, below `spool/`, of whoever sends what is left."""


def sync(store: StoreRef) -> bool:
    """Send the events that earlier stages could not send; False if MLflow does not answer.

    One process at a time does so, on whichever machine: two would make every run twice.
    """
    folder = workplace(store) / "spool"
    if not _waiting(store, folder):
        return True
    try:
        with lease(f"{store.uri}/spool/{LEASE}", "sync with MLflow", patience_s=_PATIENCE_S):
            return _sync(store, folder)
    except EngineError as error:
        logger.warning("events for MLflow are kept for later: %s", error)
        return False


def _sync(store: StoreRef, folder: Path) -> bool:
    place = store_at(f"{store.uri}/spool")
    away = _waiting(store, folder) if place.local_path is None else set()
    for name in away:
        if not (folder / name).exists() and not (folder / SHIPPED / name).exists():
            write_bytes(folder / name, place.read_bytes(name))
    left = ship_left_over(folder, Catalogue(store.tracking_uri))
    for name in away:
        if (folder / SHIPPED / name).exists():
            place.upload_file(folder / SHIPPED / name, f"{SHIPPED}/{name}")
            place.delete_file(name)
    return left.reachable


def _waiting(store: StoreRef, folder: Path) -> set[str]:
    """Names of the spools that did not arrive, on this machine and in a remote store."""
    place = store_at(f"{store.uri}/spool")
    names = {path.name for path in folder.glob("*.jsonl")}
    if place.local_path is None:
        names |= {name for name in place.list_files() if name.count("/") == 0}
    return {name for name in names if name.endswith(".jsonl")}


def workplace(store: StoreRef) -> Path:
    """The local folder of a store: itself, or the cache of a remote one."""
    cache = Path(tempfile.gettempdir()) / f"eachprompt-{os.getuid()}-{store.id}"
    return store_at(store.uri).local_path or cache
