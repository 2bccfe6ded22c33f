"""Where MLflow may be, and what a process that dies while its database is created leaves."""

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

from tasks.errors import DataError, EngineError, SettingsError
from tasks.provenance.lineage.connection import (
    _ENVIRONMENT,
    OtherSchema,
    boundary,
    check_tracking_uri,
    connect,
    find_fault,
    journal_of,
    sqlite_path,
)
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.rebuild import set_aside
from tasks.store.location import sqlite_uri
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

    with pytest.raises(DataError, match=r"no such table: experiments"):
        connect(f"sqlite:///{path}")


def test_a_database_of_another_version_of_mlflow_is_neither_broken_nor_rebuilt(tmp_path):
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE experiments (name VARCHAR(32))")
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        database.execute("INSERT INTO alembic_version VALUES ('451aebb31d03')")
        database.commit()

    expected = (
        rf"its schema is 451aebb31d03, not [0-9a-f]{{12}}. .*'mlflow db upgrade sqlite:///{path}'"
    )
    with pytest.raises(OtherSchema, match=expected):
        connect(f"sqlite:///{path}")


@pytest.mark.parametrize("name", ["ci%2Fnight", "100%", "a?b", "a#b", "a b", "a%20b"])
def test_a_database_lies_where_its_path_says_whatever_letters_it_has(created, tmp_path, name):
    place = tmp_path / name / "mlflow.db"
    place.parent.mkdir()
    shutil.copy(created / "once" / "mlflow.db", place)
    uri = sqlite_uri(str(place))

    connect(uri).create_experiment("mine")

    assert place == sqlite_path(uri)
    with closing(sqlite3.connect(place)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM experiments")]
    assert "mine" in names


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
    """A database of several first users at once."""
    folder = tmp_path_factory.mktemp("created")
    forked("once", str(folder))
    return folder


@pytest.mark.slow
def test_a_first_user_that_is_killed_leaves_nothing_that_the_next_one_cannot_use(tmp_path):
    forked("killed", str(tmp_path))

    assert [] == list((tmp_path / "killed").glob(".*.new*"))
    assert "" == find_fault(tmp_path / "killed" / "mlflow.db")


def test_three_first_users_at_once_make_one_database(created):
    assert "" == find_fault(created / "once" / "mlflow.db")


@pytest.fixture
def hot(tmp_path, migrated) -> Path:
    """A database whose writer was killed inside a commit, with the journal that undoes it."""
    path = tmp_path / "mlflow.db"
    shutil.copy(migrated, path)
    killed = (
        "import os, signal, sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1])\n"
        "database.execute('PRAGMA cache_size = 1')\n"  # pages go to the file before the commit
        "database.execute('BEGIN')\n"  # Python commits a definition at once otherwise
        "database.execute('CREATE TABLE more (content TEXT)')\n"
        "database.executemany('INSERT INTO more VALUES (?)', [('x' * 4000,)] * 200)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", killed, str(path)], check=False)
    assert journal_of(path).stat().st_size > 0
    assert path.read_bytes() != migrated.read_bytes()
    return path


@pytest.mark.attack
def test_a_kill_inside_a_commit_is_repaired_as_the_database_is_opened(hot, migrated):
    assert "" == find_fault(hot)
    assert not journal_of(hot).exists()
    assert migrated.read_bytes() == hot.read_bytes()


@pytest.mark.attack
def test_a_sound_database_that_cannot_be_read_now_is_not_called_broken(hot, migrated, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # a read-only disk; the tests may be root
    with pytest.raises(EngineError, match="killed inside a commit, and the file may not be"):
        find_fault(hot)
    monkeypatch.undo()

    assert "" == find_fault(hot)


@pytest.mark.attack
def test_a_pipe_in_place_of_the_database_is_named(tmp_path):
    path = tmp_path / "mlflow.db"
    os.mkfifo(path)

    assert "it is no regular file" == find_fault(path)


@pytest.mark.attack
@pytest.mark.parametrize("is_sound", [True, False])
def test_a_sparse_database_of_200_gigabytes_is_not_read(tmp_path, migrated, is_sound):
    path = tmp_path / "mlflow.db"
    if is_sound:
        shutil.copy(migrated, path)
    else:
        path.touch()
    os.truncate(path, 200 * 2**30)

    assert ("" if is_sound else "file is not a database") == find_fault(path)


def test_a_broken_database_is_set_aside_and_leaves_no_journal_to_the_next_one(tmp_path):
    path = tmp_path / "mlflow.db"
    path.write_bytes(b"not a database" * 100)
    journal_of(path).write_bytes(b"of the broken one")
    kept = Path(set_aside(f"sqlite:///{path}"))

    assert b"not a database" * 100 == kept.read_bytes()
    assert not journal_of(path).exists()


@pytest.mark.attack
def test_a_server_that_sends_a_byte_per_second_is_named_in_time(monkeypatch):
    monkeypatch.setattr("tasks.provenance.lineage.connection.DEADLINE_S", 1.5)
    over = threading.Event()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not over.wait(0.2):
                    connection.sendall(b" ")

        server = threading.Thread(target=drip, daemon=True)
        server.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(EngineError, match="has not finished an answer within"), boundary():
            connect(address).search_experiments()
        over.set()
        server.join()


def test_what_a_database_cannot_do_is_one_line_without_its_sql():
    """A disk that became read-only under MLflow's file, as SQLAlchemy 2 says it."""
    with pytest.raises(EngineError) as found, boundary():
        raise MlflowException(
            "(sqlite3.OperationalError) unable to open database file\n"
            "[SQL: UPDATE tags SET value=? WHERE tags.run_uuid = ?]\n[parameters: ('x', 'y')]"
        )

    line = "MlflowException: (sqlite3.OperationalError) unable to open database file"
    assert line == str(found.value)
