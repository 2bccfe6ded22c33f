"""Where the store of a run and its MLflow are, from what people say."""

from pathlib import Path

from tasks.errors import SettingsError
from tasks.store.remote import is_remote


def absolute_store(store: str) -> str:
    """Say where a store lies, whatever folder a stage runs in.

    Raises:
        SettingsError: empty.
    """
    if not store.strip():
        raise SettingsError("--store is empty. Name a folder or s3://bucket/prefix.")
    return store.rstrip("/") if is_remote(store) else str(Path(store).expanduser().resolve())


def tracking_uri(store: str, environment: str) -> str:
    """Choose the MLflow store: the environment's, or a file in the store itself.

    Args:
        store: absolute uri.
        environment: value of MLFLOW_TRACKING_URI, '' if unset.

    Raises:
        SettingsError: the store is in S3, where MLflow cannot keep a sqlite file.
    """
    if environment:
        return environment
    if is_remote(store):
        raise SettingsError(
            f"store {store} is remote; set MLFLOW_TRACKING_URI to an MLflow server as well"
        )
    return f"sqlite:///{store}/mlflow.db"
