"""OpenLineage events of a store: what they say, where they go, what its library makes of them."""

import json
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jsonschema
import pytest

from tasks.errors import EngineError, SettingsError
from tasks.provenance.audit.open_lineage import NAMESPACE, main, run_events, send
from tasks.store import location
from tests.processes import run_process, serving
from tests.test_layout import ROOT

pytestmark = pytest.mark.parametrize("original", ["sqlite"], indirect=True)
PYTHON = ROOT / ".venv-tools" / "bin" / "python"
STAGES = ["ingest", "foundation", "curate", "sft/reasoning", "sft/commerce", "merge", "rl/one"]
STAGES += ["evaluate", "release"]


@pytest.fixture
def events(chain):
    return list(run_events(location.existing_store(str(chain.store), "")))


def test_every_stage_starts_and_completes_in_the_order_of_time(events):
    told = [(event["job"]["name"], event["eventType"]) for event in events]

    assert [(name, kind) for name in STAGES for kind in ("START", "COMPLETE")] == told
    assert sorted(event["eventTime"] for event in events) == [
        event["eventTime"] for event in events
    ]
    assert 1 == len({event["run"]["facets"]["parent"]["run"]["runId"] for event in events})
    assert {NAMESPACE} == {event["job"]["namespace"] for event in events}


def test_datasets_are_named_by_place_and_versioned_by_digest(chain, events):
    made = {
        one["name"]: one["facets"]["version"]["datasetVersion"]
        for event in events
        for one in event.get("outputs", [])
    }

    assert {str(chain.folder(name)): ref.digest for name, ref in chain.refs.items()} == made
    read = {one["name"] for event in events for one in event["inputs"]}
    assert read - made.keys() == {str(chain.outside / "base")}


URI = {"type": "string", "pattern": "^[a-z][a-z0-9+.-]*:.+"}
UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
NAMES = ("namespace", "name")


def needs(**kinds):
    """A schema of an object that has all of these."""
    return {"type": "object", "required": [*kinds], "properties": kinds}


JOB = needs(**{name: {"type": "string", "minLength": 1} for name in NAMES})
FACET = {"_producer": URI, "_schemaURL": URI}
PARENT = needs(**FACET, run=needs(runId=UUID), job=JOB)
VERSION = needs(**FACET, datasetVersion={"type": "string"})
DATASET = {"allOf": [JOB, needs(facets=needs(version=VERSION))]}
EVENT = needs(
    eventTime={
        "type": "string",
        "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
    },
    producer=URI,
    schemaURL={"const": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"},
    eventType={"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
    run={"allOf": [needs(runId=UUID), needs(facets=needs(parent=PARENT))]},
    job=JOB,
)
EVENT["properties"] |= {name: {"type": "array", "items": DATASET} for name in ("inputs", "outputs")}
"""OpenLineage 2-0-2: $defs BaseEvent, RunEvent, Run, Job, Dataset and BaseFacet; of the facets that
are written, ParentRunFacet 1-2-0 and DatasetVersionDatasetFacet 1-0-1. Read from their text.
"""


def test_every_event_has_what_the_specification_requires(events):
    validator = jsonschema.Draft202012Validator(EVENT)

    assert [] == [error.message for event in events for error in validator.iter_errors(event)]
    for name in ("eventTime", "producer", "schemaURL", "run", "job"):
        assert not validator.is_valid({key: events[0][key] for key in events[0] if key != name})
    # "It is required to issue 1 START event and 1 of [COMPLETE, ABORT, FAIL] event per run."
    kinds: dict[str, list[str]] = {}
    for event in events:
        kinds.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert [["START", "COMPLETE"]] * len(STAGES) == [*kinds.values()]


def test_the_same_store_has_the_same_ids(chain, events):
    again = list(run_events(location.existing_store(str(chain.store), "")))

    assert events == again
    assert 9 == len({uuid.UUID(event["run"]["runId"]) for event in again})


def test_the_command_writes_one_line_for_every_event(chain, events, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)
    main(["--store", str(chain.store), "--out", str(tmp_path / "events.jsonl")])

    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert events == [json.loads(line) for line in lines]
    assert f"18 events of {chain.store} written to" in capsys.readouterr().out


def test_the_command_sends_to_the_address_of_the_environment(chain, events, tmp_path, monkeypatch):
    taken = []

    class Catalogue(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Catalogue) as server, serving(server):
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_address[1]}/")
        monkeypatch.setenv("OPENLINEAGE_API_KEY", "key")
        main(["--store", str(chain.store), "--out", str(tmp_path / "none")])

    assert [("/api/v1/lineage", "Bearer key", event) for event in events] == taken
    assert not (tmp_path / "none").exists()


def test_a_catalogue_that_is_away_may_be_tried_again_and_a_wrong_address_not(events):
    with pytest.raises(EngineError, match="did not take an event"):
        send(events, "http://127.0.0.1:9", "")
    with pytest.raises(SettingsError, match="OPENLINEAGE_URL: 'ftp://x' is no base URL"):
        send(events, "ftp://x", "")


@pytest.mark.tools
def test_openlineage_makes_the_same_events(chain, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)
    main(["--store", str(chain.store), "--out", str(tmp_path / "events.jsonl")])
    tool = Path(__file__).with_name("open_lineage_tool.py")
    done = run_process([PYTHON, tool, tmp_path / "events.jsonl"], check=False)

    assert "18 the same\n" == done.stdout, done.stderr
