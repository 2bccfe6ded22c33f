"""Send the spools that did not arrive: after an outage, or after a stage that was killed.

A store in S3 keeps every spool, below `spool/` until it arrived and below `spool/shipped/` then.
"""

import logging
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from data_schemas.artifacts import Context, StoreRef
from data_schemas.events import ExecutionEnded, ExecutionStarted, FileAttached
from tasks.errors import DataError, EngineError, PreemptionError, SettingsError
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.descriptions import execution_tags
from tasks.provenance.lineage.spool import SHIPPED, Spool, new_spool, ship_left_over
from tasks.provenance.lineage.version_details import REPORT_FILE
from tasks.store.files import write_bytes
from tasks.store.interface import store_at
from tasks.store.lease import lease

STOPPED = (PreemptionError, KeyboardInterrupt, SystemExit)
"""Somebody or something ended the process; nothing is wrong with what it ran."""
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


def begin(context: Context) -> None:
    """Make the run of an execution in MLflow, before stages that run side by side need it."""
    _tell(context)


def attach_report(context: Context, uri: str) -> None:
    """Make the report of an execution an artifact of its run in MLflow."""
    _tell(context, FileAttached(uri=uri, name=REPORT_FILE))


def end(context: Context, task: str, message: str = "") -> None:
    """Say in MLflow that a task has ended, and how, if the execution is over with it."""
    if task in context.execution.last:
        _tell(context, ExecutionEnded(message=message, task=task))


def finish(context: Context) -> None:
    """Say in MLflow that an execution has ended well with the process that ran it."""
    _tell(context, ExecutionEnded(message=""))


def close(context: Context, error: BaseException) -> None:
    """Say in MLflow that an execution has ended with an error, unless one of its stages did."""
    status = "KILLED" if isinstance(error, STOPPED) else "FAILED"
    reason = f"{type(error).__name__}: {error}"[:500]
    try:
        Catalogue(context.store.tracking_uri).close(context.execution.id, status, reason)
    except (EngineError, DataError) as problem:  # the error is the news
        logger.warning("%s", problem)


def _tell(context: Context, *events: FileAttached | ExecutionEnded) -> None:
    spool = new_spool(workplace(context.store) / "spool", context.execution.id)
    tags = execution_tags(context.execution, context.store.id)
    for event in (ExecutionStarted(tags=tags), *events):
        spool.append(event)
    shipped = True
    try:
        spool.ship(Catalogue(context.store.tracking_uri))
    except (EngineError, DataError) as error:
        logger.warning("%s", error)
        shipped = False
    put_away(context.store, spool, shipped=shipped)


def put_away(store: StoreRef, spool: Spool, *, shipped: bool) -> None:
    """Close a spool; a remote store keeps a copy, as the local disk may be lost."""
    place = store_at(f"{store.uri}/spool")
    if place.local_path is None:
        name = spool.path.name
        place.write_bytes(spool.path.read_bytes(), f"{SHIPPED}/{name}" if shipped else name)
    spool.close(shipped=shipped)


def _sync(store: StoreRef, folder: Path) -> bool:
    place = store_at(f"{store.uri}/spool")
    away = _waiting(store, folder) if place.local_path is None else set()
    for name in away:
        if not (folder / name).exists() and not (folder / SHIPPED / name).exists():
            write_bytes(folder / name, place.read_bytes(name))
    left_over = ship_left_over(folder, Catalogue(store.tracking_uri))
    for name in away:
        if (folder / SHIPPED / name).exists():
            place.upload_file(folder / SHIPPED / name, f"{SHIPPED}/{name}")
            place.delete_file(name)
    return left_over.reachable


def _waiting(store: StoreRef, folder: Path) -> set[str]:
    """Names of the spools that did not arrive, on this machine and in a remote store."""
    place = store_at(f"{store.uri}/spool")
    names = {path.name for path in folder.glob("*.jsonl")}
    if place.local_path is None:
        names |= {name for name in place.list_files() if name.count("/") == 0}
    return {name for name in names if name.endswith(".jsonl")}


def workplace(store: StoreRef) -> Path:
    """The local folder of a store: itself, or the cache of a remote one.

    Raises:
        SettingsError: the cache belongs to somebody else, or others may write it: whoever made it
            first could exchange files between their check and their use.
    """
    if local := store_at(store.uri).local_path:
        return local
    cache = Path(tempfile.gettempdir()) / f"eachprompt-{os.getuid()}-{store.id}"
    with suppress(FileExistsError):
        cache.mkdir(mode=0o700, parents=True)
    result = cache.lstat()
    if not stat.S_ISDIR(result.st_mode) or result.st_uid != os.getuid() or result.st_mode & 0o022:
        raise SettingsError(
            f"{cache}, the local copy of {store.uri}, is not a folder of this user that only it "
            "may write. Somebody else made it: delete it, or set TMPDIR to a folder of your own."
        )
    return cache
