"""MLflow for tests: databases copied from one that was migrated once, and a real server."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrackingServer:
    """A running `mlflow server` on sqlite."""

    uri: str
    database: Path

    def load(self, content: Path) -> None:
        """Replace everything the server knows by the content of another database."""
        copy_database(content, self.database)


def copy_database(source: Path, target: Path) -> None:
    """Copy a database in one transaction; other processes may have the target open."""
    with closing(sqlite3.connect(source)) as new, closing(sqlite3.connect(target)) as old:
        new.backup(old)


@contextmanager
def tracking_server(folder: Path, migrated: Path) -> Iterator[TrackingServer]:
    """Start `mlflow server` on loopback and end it, with its workers, afterwards."""
    database = folder / "server.db"
    copy_database(migrated, database)
    with reserved_port() as port, _server_on(port, folder, database) as uri:
        yield TrackingServer(uri, database)


@contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port that no other process is given, and that one server here may listen on."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def _server_on(port: int, folder: Path, database: Path) -> Iterator[str]:
    command = [Path(sys.executable).with_name("mlflow"), "server", "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{database}", "--serve-artifacts"]
    command += ["--artifacts-destination", folder / "artifacts"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = os.environ | {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    log = folder / "log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            command, env=environment, stdout=stream, stderr=stream, start_new_session=True
        )
    uri = f"http://127.0.0.1:{port}"
    try:
        while not _answers(uri):
            assert server.poll() is None, log.read_text()[-3000:]
            time.sleep(0.2)
        yield uri
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _answers(uri: str) -> bool:
    try:
        with urllib.request.urlopen(f"{uri}/health", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False
