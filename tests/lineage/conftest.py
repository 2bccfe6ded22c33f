"""A store with its own MLflow, copied from one that was migrated once per session."""

import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.lineage.catalogue import connect
from tasks.store.interface import store_at


@pytest.fixture(scope="session")
def migrated(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    connect(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def store(tmp_path, migrated) -> StoreRef:
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    return StoreRef(uri=str(folder), id=identity, tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")


@pytest.fixture
def execution() -> Execution:
    return Execution(id="exec-1", started=1000.0)
