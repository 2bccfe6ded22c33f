"""What answers in the place of MLflow, and is not MLflow: nothing counts as delivered."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from data_schemas.events import MetricsLogged, StageFinished, StageStarted
from tasks.errors import EngineError
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.connection import boundary, connect
from tasks.provenance.lineage.spool import new_spool

pytestmark = pytest.mark.attack
EVENTS = (
    StageStarted(time=1.0, stage="rl", params={"steps": "3"}, tags={"t": "v"}),
    MetricsLogged(time=2.0, step=1, values={"loss": 0.5}),
    StageFinished(time=3.0, status="FINISHED"),
)


@pytest.fixture
def store_database(tmp_path, migrated) -> Path:
    return Path(shutil.copy(migrated, tmp_path / "mlflow.db"))


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Answer every request of every method in one way."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_GET = do_POST = do_PATCH = _any

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def empty_object(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", "2")
    request.end_headers()
    request.wfile.write(b"{}")


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(3 * 2**30))
    request.end_headers()
    try:
        while True:
            request.wfile.write(b" " * 2**20)
    except OSError:
        pass  # whoever asked has heard enough


def runs_in(database) -> list:
    client = connect(f"sqlite:///{database}")
    experiments = [one.experiment_id for one in client.search_experiments()]
    return client.search_runs(experiments)


def test_a_proxy_that_answers_everything_with_an_empty_object_delivers_nothing(
    tmp_path, store_database
):
    spool = new_spool(tmp_path / "spool", "e1.rl")
    for event in EVENTS:
        spool.append(event)

    with serving(empty_object) as uri, pytest.raises(EngineError, match="does not have what it"):
        spool.ship(Catalogue(uri))
    spool.ship(Catalogue(f"sqlite:///{store_database}"))

    (run,) = [run for run in runs_in(store_database) if run.info.run_name == "rl"]
    assert ("FINISHED", {"loss": 0.5}) == (run.info.status, run.data.metrics)
    spool.close(shipped=True)


class _Forgetful(Catalogue):
    """What stands in front of MLflow begins to answer in its place within a stage."""

    def __init__(self, uri: str, other: str) -> None:
        super().__init__(uri)
        self._other = connect(other)

    def apply(self, run, events) -> None:
        if isinstance(events[0], StageFinished):
            self.__dict__["_client"] = self._other
        super().apply(run, events)


def test_a_proxy_that_begins_to_answer_within_a_stage_delivers_nothing(tmp_path, store_database):
    spool = new_spool(tmp_path / "spool", "e1.rl")
    for event in EVENTS:
        spool.append(event)

    with serving(empty_object) as uri, pytest.raises(EngineError, match="does not have what it"):
        spool.ship(_Forgetful(f"sqlite:///{store_database}", uri))
    assert not list((tmp_path / "spool").glob("*.offset"))  # all of it is sent again
    spool.ship(Catalogue(f"sqlite:///{store_database}"))

    (run,) = [run for run in runs_in(store_database) if run.info.run_name == "rl"]
    assert ("FINISHED", {"loss": 0.5}) == (run.info.status, run.data.metrics)
    spool.close(shipped=True)


def test_an_answer_of_gigabytes_is_ended_at_its_limit(monkeypatch):
    monkeypatch.setattr("tasks.provenance.lineage.connection.LARGEST_ANSWER", 8 * 2**20)

    with (
        serving(endless) as uri,
        pytest.raises(EngineError, match="the answer has more than 8 MiB"),
        boundary(),
    ):
        connect(uri).search_experiments()
