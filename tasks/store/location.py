"""Locations of the store and of MLflow, from the options of a run."""

from data_schemas.addresses import has_credentials, has_password, redacted
from data_schemas.artifacts import StoreRef
from tasks.errors import DataError, SettingsError
from tasks.store.interface import store_at
from tasks.store.local import STORE_MARK, id_in


def absolute_store(store: str, option: str = "--store") -> str:
    """Return the absolute uri of a store, independent of the working directory of a stage.

    Raises:
        SettingsError: empty, or of a scheme that is not supported.
    """
    if not store.strip():
        raise SettingsError(f"{option} is empty. Name a folder or s3://bucket/prefix.")
    path = store_at(store).local_path
    return str(path.expanduser().resolve()) if path else store.rstrip("/")


def existing_file(file: str, option: str) -> str:
    """Return the absolute uri of an input file.

    Raises:
        SettingsError: it does not exist or is not a file; the message names the option.
    """
    uri = absolute_store(file, option)
    path = store_at(uri).local_path
    if path is not None and not path.is_file():
        raise SettingsError(f"{option} {file} is no file. Correct the path.")
    return uri


def existing_store(store: str, environment: str) -> StoreRef:
    """Find a store and its MLflow.

    Args:
        store: option of a command.
        environment: value of MLFLOW_TRACKING_URI, '' if unset.

    Raises:
        SettingsError: there is no store.
    """
    uri = absolute_store(store)
    try:
        identity = id_in(store_at(uri).read_bytes(STORE_MARK))
    except (DataError, ValueError) as error:
        raise SettingsError(f"--store {store} is no store: {error}. Correct it.") from error
    return StoreRef(uri=uri, id=identity, tracking_uri=tracking_uri(uri, environment))


def identity(store: str) -> str:
    """Return the id of a store, which its copies share; '' where it has none."""
    try:
        return id_in(store_at(store).read_bytes(STORE_MARK))
    except (DataError, ValueError):
        return ""


def tracking_uri(store: str, environment: str) -> str:
    """Return the MLflow tracking URI: that of the environment, or a file in the store.

    Args:
        store: absolute uri.
        environment: value of MLFLOW_TRACKING_URI, '' if unset.

    Raises:
        SettingsError: the store is in S3, where MLflow cannot keep a sqlite file; or the
            environment's URI has credentials in it.
    """
    if environment:
        return _without_credentials(environment)
    if store_at(store).local_path is None:
        raise SettingsError(
            f"store {store} is remote; set MLFLOW_TRACKING_URI to an MLflow server as well"
        )
    return sqlite_uri(f"{store}/mlflow.db")


def sqlite_uri(path: str) -> str:
    """Return the address of a database file, in which `%` and `?` have other meanings.

    MLflow makes an empty folder of the address as it is written beside such a path.
    """
    return f"sqlite:///{path.replace('%', '%25').replace('?', '%3F')}"


def _without_credentials(uri: str) -> str:
    """Refuse credentials in the address of MLflow, which is an input of every task."""
    is_server = uri.startswith(("http://", "https://"))
    if is_server and has_credentials(uri):
        raise SettingsError(
            f"MLFLOW_TRACKING_URI {redacted(uri)} has credentials in it, which would be recorded. "
            "Leave them out and set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
            "MLFLOW_TRACKING_TOKEN."
        )
    if has_password(uri):
        raise SettingsError(
            f"MLFLOW_TRACKING_URI {redacted(uri)} has a password in it, which would be recorded. "
            "Leave it out: the database's driver reads one from PGPASSWORD or ~/.pgpass, or run "
            "an MLflow server in front of the database."
        )
    return uri
