"""Connection to MLflow: clients, the sqlite file of a local store, and MLflow's errors.

The sqlite file is created beside its place and renamed when its migrations are complete, under
a lock, so that a process that is killed, or a second one that starts at the same time, never
leaves a partial database.
"""

import fcntl
import logging
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tasks.errors import DataError, EngineError, PipelineError, SettingsError

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

REPAIR = "python -m tasks.provenance.audit.repair --store"
"""The command that rebuilds MLflow; the store follows."""

_SQLITE = "sqlite:///"
_SERVERS = ("http", "https")
_DATABASES = ("postgresql", "mysql", "mssql")
_ENVIRONMENT = {
    # The defaults block a training step for four minutes when the server is away.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_REFUSALS = {
    "BAD_REQUEST",
    "INVALID_PARAMETER_VALUE",
    "INVALID_STATE",
    "RESOURCE_ALREADY_EXISTS",
    "RESOURCE_DOES_NOT_EXIST",  # somebody deleted the run
}


_DENIED = {"UNAUTHENTICATED", "PERMISSION_DENIED"}


def check_tracking_uri(uri: str) -> None:
    """Refuse a tracking URI that no MLflow store can have.

    Raises:
        SettingsError: neither a server, a database nor the absolute path of a sqlite file.
    """
    scheme, _, rest = uri.partition("://")
    dialect = scheme.partition("+")[0]
    try:
        is_place = bool(urlsplit(uri).hostname)
    except ValueError:  # brackets that are no IPv6 address
        is_place = False
    if (scheme in _SERVERS or dialect in _DATABASES) and is_place:
        return
    if uri.startswith(f"{_SQLITE}/") and rest.strip("/"):
        return
    # The rest of the uri may hold a password.
    raise SettingsError(
        f"the MLflow tracking URI '{scheme[:40]}://...' is neither http(s)://HOST, a database "
        "(postgresql, mysql, mssql) nor sqlite:////ABSOLUTE/PATH. Correct MLFLOW_TRACKING_URI."
    )


def connect(tracking_uri: str) -> "MlflowClient":
    """Open a client with short timeouts; the first use of a new sqlite file takes seconds.

    Raises:
        SettingsError: no MLflow store can have this URI, or the file cannot be created.
        DataError: the sqlite file is broken; the message names the command that rebuilds it.
    """
    check_tracking_uri(tracking_uri)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    path = sqlite_path(tracking_uri)
    if path is not None:
        for name in ("alembic", "mlflow.store.db.utils"):
            logging.getLogger(name).setLevel(logging.WARNING)
        if not path.exists():
            _create_sqlite(path)
        elif fault := find_fault(path):
            raise DataError(
                f"the MLflow store {path} is not usable: {fault}. All of it can be rebuilt from "
                f"the statements: {REPAIR} {path.parent}"
            )
    return MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)


def sqlite_path(tracking_uri: str) -> Path | None:
    """Return the file of a `sqlite:///` uri."""
    return Path(tracking_uri.removeprefix(_SQLITE)) if tracking_uri.startswith(_SQLITE) else None


def require_sqlite(tracking_uri: str) -> None:
    """Refuse a sqlite file that does not exist; `connect` would create it.

    Raises:
        SettingsError: the message names the command that rebuilds it.
    """
    path = sqlite_path(tracking_uri)
    if path and not path.exists():
        raise SettingsError(
            f"there is no MLflow store at {path}. Correct --store; if MLflow was lost, rebuild "
            f"it from the statements: {REPAIR} {path.parent}"
        )


@contextmanager
def boundary() -> Iterator[None]:
    """Convert errors of MLflow: DataError if refused, EngineError if unavailable.

    Wrong credentials are a refusal: nothing is lost, and trying again does not help.
    """
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        from mlflow.exceptions import MlflowException

        if isinstance(error, MlflowException) and error.error_code in _REFUSALS:
            raise DataError(str(error)) from error
        if isinstance(error, MlflowException) and error.error_code in _DENIED:
            raise DataError(
                f"MLflow refuses these credentials: {error}. Correct MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN; a retry alone does not help."
            ) from error
        raise EngineError(f"{type(error).__name__}: {error}") from error


def require_access(tracking_uri: str) -> None:
    """Refuse credentials that an MLflow server does not take, before any stage.

    A server that does not answer stops nothing: events wait on the spool.

    Raises:
        SettingsError: it answers, and refuses.
    """
    if urlsplit(tracking_uri).scheme not in _SERVERS:
        return
    try:
        with boundary():
            connect(tracking_uri).search_experiments(max_results=1)
    except DataError as error:
        raise SettingsError(str(error)) from error
    except EngineError as error:
        logger.warning("%s: %s", tracking_uri, error)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file; wait for a process of this machine that holds it."""
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _create_sqlite(path: Path) -> None:
    from mlflow import MlflowClient

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(path.with_name(f".{path.name}.lock")):
            if path.exists():
                return
            logger.info("creating the MLflow store %s; its migrations take a while", path)
            for unfinished in path.parent.glob(f".{path.name}.*.new*"):
                unfinished.unlink()
            # MLflow caches stores by uri, so every attempt needs a name of its own.
            new = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.new")
            MlflowClient(f"{_SQLITE}{new}", f"{_SQLITE}{new}").search_experiments(max_results=1)
            new.rename(path)
    except OSError as error:
        raise SettingsError(
            f"the MLflow store {path} cannot be created: {error.strerror}. "
            "Choose another --store or set MLFLOW_TRACKING_URI."
        ) from error


def find_fault(path: Path) -> str:
    """Say why a sqlite file is no complete MLflow store, before MLflow tries to migrate it.

    Returns:
        '' if it is one of the installed version of MLflow.

    Raises:
        EngineError: another process holds its lock.
    """
    try:
        # Read only: a missing file is not created, and a read-only store can be audited.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=20)) as database:
            found = [row[0] for row in database.execute("SELECT version_num FROM alembic_version")]
    except sqlite3.DatabaseError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise EngineError(f"{path}: {error}") from error
        return str(error)
    return "" if found == [_schema()] else f"its schema is {', '.join(found)}, not {_schema()}"


@cache
def _schema() -> str:
    """Version of the database schema of the installed MLflow."""
    from mlflow.store.db.utils import _get_latest_schema_revision

    return str(_get_latest_schema_revision())
