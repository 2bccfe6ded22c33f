"""Connection to MLflow: clients, the sqlite file of a local store, and MLflow's errors.

The sqlite file is created beside its place and renamed when its migrations are complete, under
a lock, so that a process that is killed, or a second one that starts at the same time, never
leaves a partial database.
"""

import fcntl
import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from data_schemas.addresses import redacted
from tasks.errors import DataError, EngineError, PipelineError, SettingsError
from tasks.provenance.lineage.descriptions import EXPERIMENT_TAGS
from tasks.provenance.lineage.registry import open_model
from tasks.store.location import sqlite_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

logger = logging.getLogger(__name__)

REPAIR = "python -m tasks.provenance.audit.repair --store"
"""The command that rebuilds MLflow; the store follows."""

_SQLITE = "sqlite:///"
_OTHER_SCHEMA = "its schema is "
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


EXPERIMENT = "eachprompt"
"""Name of the experiment of all runs."""
DEADLINE_S = 60.0
"""Limit of a whole request, all attempts included."""
LARGEST_ANSWER = 256 * 2**20
"""Bytes; a page of a thousand runs with all their parameters has a tenth."""
_PART_BYTES = 2**20
_WRONG_USER = "UNAUTHENTICATED"
_NO_RIGHT = "PERMISSION_DENIED"
_READING = ("get_", "search_")
_TRASHED = "deleted"
"""MLflow's lifecycle stage of what is in its trash."""


class OtherSchema(SettingsError):
    """The sqlite file is of another version of MLflow: it is neither damaged nor lost."""


class TrashedExperiment(DataError):
    """Somebody moved the experiment to MLflow's trash, with all of its runs; nothing is lost."""


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
        OtherSchema: the sqlite file is of another version of MLflow.
        DataError: the sqlite file is broken; the message names the command that rebuilds it.
    """
    check_tracking_uri(tracking_uri)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    path = sqlite_path(tracking_uri)
    if path is not None:
        logging.getLogger("alembic").setLevel(logging.WARNING)
        # Whatever it logs, with all frames and the SQL, it raises as well.
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
        if not path.exists():
            _create_sqlite(path)
        elif (fault := find_fault(path)).startswith(_OTHER_SCHEMA):
            raise OtherSchema(
                f"{path} was made with another version of MLflow: {fault}. Keep a copy, then run "
                f"'mlflow db upgrade {sqlite_uri(str(path))}', which keeps what people wrote "
                "(a newer schema needs the newer MLflow). To make it anew from the statements, "
                f"without what people wrote: {REPAIR} {path.parent}"
            )
        elif fault:
            raise DataError(
                f"the MLflow store {path} is not usable: {fault}. All of it can be rebuilt from "
                f"the statements: {REPAIR} {path.parent}"
            )
    _bound_answers()
    client = MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)
    is_server = urlsplit(tracking_uri).scheme in _SERVERS
    return cast("MlflowClient", _Punctual(client)) if is_server else client


@cache
def _bound_answers() -> None:
    """Let the sessions of MLflow end an answer that is larger than any of MLflow's.

    A session reads an answer to its end before anybody sees its size. MLflow has no setting for
    this, but makes all of its sessions of one adapter.
    """
    from mlflow.utils import request_utils
    from requests import PreparedRequest, Response

    class BoundedAdapter(request_utils.TCPKeepAliveHTTPAdapter):
        def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
            answer = super().send(request, *args, **options)
            if options.get("stream"):
                return answer  # an artifact, which goes to a file
            parts: list[bytes] = []
            for part in answer.iter_content(_PART_BYTES):
                parts.append(part)
                if len(parts) * _PART_BYTES > LARGEST_ANSWER:
                    answer.close()
                    raise ValueError(f"the answer has more than {LARGEST_ANSWER // 2**20} MiB")
            answer._content = b"".join(parts)  # where `Response.content` keeps it
            return answer

    request_utils.TCPKeepAliveHTTPAdapter = BoundedAdapter


class _Punctual:
    """A client whose every request ends in time, and names the right that it lacks.

    The timeouts of HTTP are for a connection and for the next byte: a server that sends a byte per
    second keeps within them for ever. Of a request that its user has no right to, MLflow says
    neither which right nor on what.
    """

    def __init__(self, client: "MlflowClient") -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        return partial(_permitted, name, value) if callable(value) else value


def _permitted(method: str, request: Callable[..., Any], *args: Any, **options: Any) -> Any:
    from mlflow.exceptions import MlflowException

    try:
        return _in_time(request, *args, **options)
    except MlflowException as error:
        if error.error_code != _NO_RIGHT:
            raise
        raise DataError(_missing_right(method, [*args, *options.values()])) from error


def _missing_right(method: str, values: Sequence[object]) -> str:
    """Say which right on what a method of the client needs.

    Args:
        method: its name.
        values: its arguments; the first one names a model, an experiment or a run.
    """
    right = "READ" if method.startswith(_READING) else "EDIT"
    unknown = ""
    if "registered_model" in method or "model_version" in method:
        place = f"registered model {values[0]!r}"
        # A user without rights gets the same answer of a model that does not exist.
        unknown = ", or there is none" if right == "READ" else ""
    else:
        place = f"experiment {EXPERIMENT!r}"
    user = os.environ.get("MLFLOW_TRACKING_USERNAME", "")
    return (
        f"MLflow's user {user!r} lacks {right} on the {place}{unknown}. An administrator of MLflow "
        "grants it (containers/FLYTE.md, step 4); a retry alone does not help."
    )


def _in_time(request: Callable[..., Any], *args: Any, **options: Any) -> Any:
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put((request(*args, **options), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answers.put((None, error))

    threading.Thread(target=ask, name="mlflow-request", daemon=True).start()
    try:
        answer, error = answers.get(timeout=DEADLINE_S)
    except Empty:
        raise EngineError(
            f"MLflow has not finished an answer within {DEADLINE_S:.0f} s. Check its server and "
            "what is in front of it."
        ) from None
    if error is not None:
        raise error
    return answer


def sqlite_path(tracking_uri: str) -> Path | None:
    """Return the file of a `sqlite:///` uri."""
    if not tracking_uri.startswith(_SQLITE):
        return None
    return Path(unquote(tracking_uri.removeprefix(_SQLITE)))  # as SQLAlchemy does


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
        if isinstance(error, MlflowException) and error.error_code == _WRONG_USER:
            raise DataError(
                f"MLflow refuses these credentials: {error}. Correct MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN; a retry alone does not help."
            ) from error
        # SQLAlchemy adds the statement and all of its parameters, in lines of their own.
        what = str(error).partition("\n[SQL: ")[0]
        raise EngineError(f"{type(error).__name__}: {what}") from error


def find_experiment(client: "MlflowClient", tracking_uri: str) -> "Experiment | None":
    """Return the experiment of all runs; None if there is none yet.

    Raises:
        TrashedExperiment: it is in the trash, where MLflow finds no run and takes none.
    """
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is not None and experiment.lifecycle_stage == _TRASHED:
        number = experiment.experiment_id
        raise TrashedExperiment(
            f"the experiment {EXPERIMENT!r} of {redacted(tracking_uri)} is in MLflow's trash, with "
            f"all of its runs. Restore it: MLFLOW_TRACKING_URI={redacted(tracking_uri)} mlflow "
            f"experiments restore --experiment-id {number}"
        )
    return experiment


def require_access(tracking_uri: str, model: str = "") -> None:
    """Refuse credentials and rights with which an MLflow server would fail a later stage.

    A server that does not answer stops nothing: events wait on the spool.

    Args:
        tracking_uri: of MLflow; only servers have users.
        model: registered model that a release will be a version of; '' for none.

    Raises:
        SettingsError: it answers, and refuses.
    """
    if urlsplit(tracking_uri).scheme not in _SERVERS:
        return
    try:
        with boundary():
            client = connect(tracking_uri)
            client.search_experiments(max_results=1)
            if experiment := find_experiment(client, tracking_uri):
                name, value = next(iter(EXPERIMENT_TAGS.items()))
                client.set_experiment_tag(experiment.experiment_id, name, value)
            if model:
                open_model(client, model)
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


@cache
def _empty_database() -> list[bytes]:
    """Keep the first one that this process lets MLflow migrate, which takes a second each time."""
    return []


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
            if _empty_database():
                new.write_bytes(_empty_database()[0])
            else:
                MlflowClient(sqlite_uri(str(new)), sqlite_uri(str(new))).search_experiments(
                    max_results=1
                )
                _empty_database().append(new.read_bytes())
            new.rename(path)
    except OSError as error:
        raise SettingsError(
            f"the MLflow store {path} cannot be created: {error.strerror}. "
            "Choose another --store or set MLFLOW_TRACKING_URI."
        ) from error


def find_fault(path: Path) -> str:
    """Say why a sqlite file is no complete MLflow store, before MLflow tries to migrate it.

    A process that is killed inside a commit leaves the journal that undoes it. SQLite repairs the
    file as it is opened, but only if it may write.

    Returns:
        '' if it is one of the installed version of MLflow.

    Raises:
        EngineError: it cannot be read now: another process holds its lock, or it needs a repair and
            may not be written. That says nothing about its content.
    """
    if not path.is_file():
        return "it is no regular file"
    # Never `rwc`: a missing file is not created, and a read-only store can be audited.
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    try:
        address = f"{path.as_uri()}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=20)) as database:
            results = [
                row[0] for row in database.execute("SELECT version_num FROM alembic_version")
            ]
            database.execute("SELECT 1 FROM experiments LIMIT 1")
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return str(error)
        if mode == "ro" and journal_of(path).exists():
            raise EngineError(
                f"{path}: a process was killed inside a commit, and the file may not be written to "
                "undo it. Open the store once where it may be, or copy it."
            ) from error
        raise EngineError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        return str(error)
    if results == [_schema()]:
        return ""
    return f"{_OTHER_SCHEMA}{', '.join(results)}, not {_schema()}"


def journal_of(path: Path) -> Path:
    """Return where SQLite keeps what undoes an unfinished commit."""
    return path.with_name(f"{path.name}-journal")


@cache
def _schema() -> str:
    """Version of the database schema of the installed MLflow."""
    from mlflow.store.db.utils import _get_latest_schema_revision

    return str(_get_latest_schema_revision())
