"""Tell an OpenLineage catalogue (Marquez, DataHub, ...) what a store holds.

python -m tasks.provenance.audit.open_lineage --store runs --out openlineage.jsonl

Every stage that ran gives a START and a COMPLETE event, from its statement and the record of its
execution. Ids follow from the store, so that sending twice changes nothing. With OPENLINEAGE_URL
the events are sent there instead of written; OPENLINEAGE_API_KEY is sent along if it is set.

Source: https://openlineage.io/spec/2-0-2/OpenLineage.json. Differs from openlineage-python, which
sends from within a stage: nothing is imported and nothing waits while a stage runs. `make
test-tools` compares the events with those of that library's classes.
"""

import json
import os
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from data_schemas.addresses import redacted, split_base_url
from data_schemas.artifacts import StoreRef
from data_schemas.statements import ExecutionRecord, Input, Output
from tasks.errors import EngineError, SettingsError
from tasks.platform.command_line import command_parser, run
from tasks.platform.tables import Screen
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.descriptions import WORKFLOW
from tasks.provenance.lineage.statements import load_executions, load_statement
from tasks.store import location
from tasks.store.files import canonical_json, write_bytes
from tasks.store.interface import store_at

Json = dict[str, Any]
URL_VARIABLE = "OPENLINEAGE_URL"
KEY_VARIABLE = "OPENLINEAGE_API_KEY"
"""Both are read by OpenLineage's own clients, too."""
NAMESPACE = "eachprompt"
_PRODUCER = "https://eachprompt.invalid/open_lineage"
"""OpenLineage wants a URI that identifies the code; a reserved domain, as the project has none."""
_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
_TIMEOUT_S = 30.0


def run_events(store: StoreRef) -> Iterator[Json]:
    """Yield the events of everything that ran in a store, oldest execution first.

    Raises:
        DataError: a statement is gone or was changed.
    """
    names = store_at(f"{store.uri}/executions").list_files()
    for execution in sorted({name.partition("/")[0] for name in names}):
        for record in load_executions(store.uri, execution):
            yield from _events(store, record)


def _events(store: StoreRef, record: ExecutionRecord) -> Iterator[Json]:
    statement = load_statement(store.uri, record.statement)
    workflow = record.tags.get(WORKFLOW, "execution")
    parent = {
        "run": {"runId": _id(store, record.execution)},
        "job": {"namespace": NAMESPACE, "name": workflow},
    }
    common = {
        "producer": _PRODUCER,
        "schemaURL": _EVENT,
        "run": {
            "runId": _id(store, f"{record.execution} {record.stage}"),
            "facets": {"parent": _facet("1-2-0/ParentRunFacet", parent)},
        },
        "job": {"namespace": NAMESPACE, "name": record.stage},
        "inputs": [_dataset(store.uri, item) for item in statement.inputs],
    }
    outputs = [_dataset(store.uri, item) for item in statement.outputs]
    yield common | {"eventType": "START", "eventTime": _time(record.started)}
    finished = _time(record.started + record.seconds)
    yield common | {"eventType": "COMPLETE", "eventTime": finished, "outputs": outputs}


def _dataset(store: str, item: Input | Output) -> Json:
    is_source = isinstance(item, Input) and origins.is_source(item)
    uri = item.uri if is_source else origins.object_uri(store, item.uri, item.digest)
    scheme, _, rest = uri.rpartition("://")
    bucket, _, key = rest.partition("/")
    place = (
        {"namespace": f"s3://{bucket}", "name": key}
        if scheme == "s3"
        else {
            "namespace": "file",
            "name": rest,
        }
    )
    version = _facet("1-0-1/DatasetVersionDatasetFacet", {"datasetVersion": item.digest})
    return place | {"facets": {"version": version}}


def _facet(name: str, values: Json) -> Json:
    kind = name.partition("/")[2]
    return {"_producer": _PRODUCER, "_schemaURL": f"{_FACETS}/{name}.json#/$defs/{kind}"} | values


def _id(store: StoreRef, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{store.id} {name}"))


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")


def send(events: Sequence[Json], url: str, key: str) -> None:
    """Post events to a catalogue, one after another.

    Raises:
        SettingsError: the address is none.
        EngineError: the catalogue does not answer, or refuses an event.
    """
    try:
        split_base_url(url)
    except ValueError as error:
        raise SettingsError(f"{URL_VARIABLE}: {error}. Correct it.") from error
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    for event in events:
        body = json.dumps(event).encode()
        request = urllib.request.Request(f"{url.rstrip('/')}/api/v1/lineage", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
                pass
        except OSError as error:
            raise EngineError(f"{redacted(url)} did not take an event: {error}") from error


def main(arguments: Sequence[str]) -> None:
    """Write or send the events; see --help."""
    parser = command_parser("python -m tasks.provenance.audit.open_lineage", __doc__)
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    parser.add_argument("--out", default="openlineage.jsonl", help="file [openlineage.jsonl]")
    args = parser.parse_args(arguments)
    # Nothing of MLflow is needed; only a remote store asks for its address.
    store = location.existing_store(args.store, "http://unused.invalid")
    events = list(run_events(store))
    if url := os.environ.get(URL_VARIABLE, ""):
        send(events, url, os.environ.get(KEY_VARIABLE, ""))
        place = f"sent to {redacted(url)}"
    else:
        write_bytes(
            Path(args.out).absolute(), b"".join(canonical_json(one) + b"\n" for one in events)
        )
        place = f"written to {args.out}"
    console = Screen(soft_wrap=True)
    console.print(f"{len(events)} events of {store.uri} {place}.")


if __name__ == "__main__":
    run(main)
