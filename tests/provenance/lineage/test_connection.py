"""Where MLflow may be, and what a process that dies while its database is created leaves."""

import os
import sqlite3
from contextlib import closing

import pytest

from tasks.errors import DataError, EngineError, SettingsError
from tasks.provenance.lineage.connection import (
    _ENVIRONMENT,
    boundary,
    check_tracking_uri,
    connect,
    find_fault,
)
from tasks.provenance.lineage.lookup import Lookup
from tests.provenance.lineage.forked import forked


@pytest.mark.parametrize(
    "uri",
    [
        "http://mlflow.example",
        "https://user:word@mlflow.example:5000/base",
        "postgresql+psycopg://mlflow@db/mlflow",
        "mysql+pymysql://db/mlflow",
        "sqlite:////store/mlflow.db",
    ],
)
def test_servers_and_databases_are_taken(uri):
    check_tracking_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "nonsense",
        "",
        "mlruns",
        "/store/mlruns",
        "file:///store/mlruns",
        "htp://mlflow.example",
        "http://",
        "http:///path",
        "http://[half",
        "sqlite://mlflow.db",
        "sqlite:///relative.db",
        "sqlite:////",
        "s3://bucket/mlflow",
        "databricks",
        "[bold]x",
    ],
)
def test_a_uri_that_no_mlflow_can_have_is_refused_by_name(uri):
    with pytest.raises(SettingsError, match=r"neither http\(s\)://HOST.*MLFLOW_TRACKING_URI"):
        check_tracking_uri(uri)


def test_a_refused_uri_does_not_show_its_password():
    with pytest.raises(SettingsError) as refused:
        connect("htp://user:word@mlflow.example")
    assert "word" not in str(refused.value)


def test_a_database_that_cannot_be_created_is_the_users_to_correct(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingsError, match="cannot be created: File exists"):
        connect(f"sqlite:///{tmp_path / 'file' / 'mlflow.db'}")


@pytest.mark.parametrize("content", [b"not a database" * 100, b""], ids=["text", "empty"])
def test_a_file_that_is_no_mlflow_store_is_named_with_the_command_that_rebuilds_it(
    tmp_path, content
):
    path = tmp_path / "mlflow.db"
    path.write_bytes(content)

    expected = f"{path} is not usable.*python -m tasks.provenance.audit.repair --store {tmp_path}"
    with pytest.raises(DataError, match=expected):
        Lookup(f"sqlite:///{path}").runs("s")
    assert content == path.read_bytes()


def test_a_database_with_half_of_its_tables_is_named(tmp_path):
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        database.execute("INSERT INTO alembic_version VALUES ('451aebb31d03')")
        database.commit()

    with pytest.raises(DataError, match=r"its schema is 451aebb31d03, not [0-9a-f]{12}"):
        connect(f"sqlite:///{path}")


def test_a_server_that_accepts_connections_and_never_answers_is_named_within_its_limits(
    monkeypatch, silent_server
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")

    with pytest.raises(EngineError, match="read timeout=1"), boundary():
        connect(silent_server).search_experiments()


def test_the_limits_of_mlflow_fit_into_a_minute(monkeypatch):
    for name in _ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    connect("http://127.0.0.1:9")

    limits = ("MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES")
    assert ["10", "1"] == [os.environ.get(name) for name in limits]


@pytest.fixture(scope="module")
def created(tmp_path_factory):
    """Databases of first users: after some that were killed, and of several at once."""
    folder = tmp_path_factory.mktemp("created")
    forked("create", str(folder))
    return folder


def test_a_first_user_that_is_killed_leaves_nothing_that_the_next_one_cannot_use(created):
    assert [] == list((created / "killed").glob(".*.new*"))
    assert "" == find_fault(created / "killed" / "mlflow.db")


def test_three_first_users_at_once_make_one_database(created):
    assert "" == find_fault(created / "once" / "mlflow.db")
