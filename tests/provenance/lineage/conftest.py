"""A store with its own MLflow: a sqlite file in the store, and a real server."""

import shutil

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.store.interface import store_at


@pytest.fixture(params=["sqlite", "server"])
def store(request, tmp_path, migrated) -> StoreRef:
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    if request.param == "sqlite":
        shutil.copy(migrated, folder / "mlflow.db")
        tracking_uri = f"sqlite:///{folder / 'mlflow.db'}"
    else:
        server = request.getfixturevalue("mlflow_server")
        server.load(migrated)
        tracking_uri = server.uri
    return StoreRef(uri=str(folder), id=identity, tracking_uri=tracking_uri)


@pytest.fixture
def execution() -> Execution:
    return Execution(id="exec-1", started=1000.0)
