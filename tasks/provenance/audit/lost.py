"""The newest release of a model by the statements alone, for an audit after MLflow was lost."""

import json

from pydantic import ValidationError

from data_schemas.statements import ExecutionRecord, Statement
from tasks.errors import DataError
from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.lookup import Version
from tasks.provenance.lineage.registry import MANIFEST_TAG
from tasks.store.interface import store_at


def newest_release(name: str, evidence: Evidence) -> Version | None:
    """Describe the newest release as MLflow would; None if the store has none of that name.

    A release that passed its gate comes before a newer one that did not. The order is that of
    the execution records, which are no evidence.
    """
    results = dict(_releases(name, evidence))
    if not results:
        return None
    times = started(evidence.store)
    digest = max(
        results, key=lambda one: (bool(results[one].facts["released"]), times.get(one, 0.0))
    )
    release = results[digest]
    tags = {
        "statement": digest,
        "sha256": release.outputs[0].digest,
        MANIFEST_TAG: str(release.facts["manifest_sha256"]),
    }
    return Version(name=name, number="unknown", aliases=(), tags=tags, model=None)


def _releases(name: str, evidence: Evidence) -> list[tuple[str, Statement]]:
    releases = []
    for file in store_at(f"{evidence.store}/statements").list_files():
        digest = file.removesuffix(".json")
        statement = evidence.peek(digest)
        if statement is None or not {"manifest_sha256", "released"} <= statement.facts.keys():
            continue
        if json.loads(statement.settings).get("name") == name and statement.outputs:
            releases.append((digest, statement))
    return releases


def started(store: str) -> dict[str, float]:
    """When each statement was written, by the execution records that can be read."""
    times: dict[str, float] = {}
    folder = store_at(f"{store}/executions")
    for file in folder.list_files():
        try:
            record = ExecutionRecord.model_validate_json(read_record(f"{folder.uri}/{file}"))
        except (DataError, ValidationError):
            continue
        times[record.statement] = max(record.started, times.get(record.statement, 0.0))
    return times
