"""How a night ended is told to a webhook, and a webhook that fails changes nothing."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.pages.webhook import post
from tasks.stages.pages import night_page
from tasks.store.interface import store_at
from tests.processes import serving

ENDS = {
    "promoted": "Promoted: version 2, trained on 1 file (a.jsonl).",
    "refused by the gate": "Refused by the release gate: a model trained on 1 file (a.jsonl).",
    "not promoted": "Not promoted: another model was released while this one was trained.",
    "needs people": "Not retrained: 3 rows; needs people: a.csv",
    "nothing trained": "Not retrained: nothing new in inbox.",
}


@pytest.fixture
def heard() -> Iterator[tuple[str, list[str]]]:
    """Address of a webhook, and the texts that it was sent; below /gone it refuses them."""
    texts: list[str] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not self.path.startswith("/gone"):
                texts.append(json.loads(body)["text"])
            self.send_response(404 if self.path.startswith("/gone") else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Chat) as server, serving(server):
        yield f"http://127.0.0.1:{server.server_port}", texts


@pytest.fixture
def end(tmp_path):
    """The last task of a retraining."""
    store = StoreRef(
        uri=str(tmp_path), id=store_at(str(tmp_path)).open(), tracking_uri="http://nobody"
    )

    def run(message: str, *last: str) -> str:
        execution = Execution(id="e1", started=0.0, last=last)
        said = cast("Any", night_page).task_function(
            message=message, store=store, execution=execution
        )
        message, _, page = said.rpartition(" Page: ")
        assert Path(page).is_file()  # also of a night that read nothing
        return message

    return run


def test_every_end_of_a_night_is_told_under_its_own_name(heard, end, monkeypatch):
    address, texts = heard
    monkeypatch.setenv("EACHPROMPT_WEBHOOK", f"{address}/T0/secret")

    assert list(ENDS.values()) == [end(message) for message in ENDS.values()]
    told = [text.rpartition(" Page: ")[0] for text in texts]
    assert [f"[{name}] retraining e1: {text}" for name, text in ENDS.items()] == told


@pytest.mark.parametrize(("last", "times"), [("night_page", 0), ("nights_page", 1)])
def test_a_message_is_printed_here_unless_it_is_the_output_of_the_workflow(
    end, last, times, capsys, monkeypatch
):
    monkeypatch.delenv("EACHPROMPT_WEBHOOK", raising=False)

    end(ENDS["promoted"], last)

    assert times == capsys.readouterr().out.count(ENDS["promoted"])


def test_without_a_webhook_nobody_is_told(heard, end, monkeypatch):
    monkeypatch.delenv("EACHPROMPT_WEBHOOK", raising=False)

    assert ENDS["promoted"] == end(ENDS["promoted"])
    assert [] == heard[1]


def test_a_webhook_that_fails_changes_no_decision_and_is_named(heard, end, monkeypatch):
    monkeypatch.setenv("EACHPROMPT_WEBHOOK", f"{heard[0]}/gone/secret")

    assert (
        f"{ENDS['promoted']} Nobody was told: EACHPROMPT_WEBHOOK answered with status 404."
        == end(ENDS["promoted"])
    )


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:9/secret", "did not answer (URLError)"),
        ("http://127.0.0.1:port/secret", "did not answer (InvalidURL)"),
        ("http://[secret", "did not answer (ValueError)"),
        ("file:///etc/passwd?secret", "is no http or https address"),
        ("secret", "is no http or https address"),
    ],
)
def test_the_address_is_in_no_reason(address, reason):
    assert f"EACHPROMPT_WEBHOOK {reason}" == post(address, "text")
