"""Fill MLflow from what the store holds, after it was lost.

Every spool is applied again, producers first: same runs, curves, datasets, models, versions and
aliases. A statement whose spool is lost gives the events that can be derived from it: everything
but curves. Applying twice changes nothing, so a rebuild that was interrupted is started again.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.events import (
    ArtifactLinked,
    Event,
    ExecutionStarted,
    FactsCounted,
    FileAttached,
    ModelRegistered,
    StageFinished,
    StageStarted,
    VersionRestored,
)
from data_schemas.statements import ExecutionRecord, Output, Statement
from tasks.errors import DataError
from tasks.provenance.lineage import origins, version_details
from tasks.provenance.lineage.catalogue import STATEMENT, Catalogue
from tasks.provenance.lineage.connection import find_fault, journal_of, sqlite_path
from tasks.provenance.lineage.descriptions import (
    NOTE,
    describe_stage,
    run_tags,
    tags_for_execution,
)
from tasks.provenance.lineage.order import producers_first
from tasks.provenance.lineage.promotions import NUMBER
from tasks.provenance.lineage.registry import CARD_FILE, MANIFEST_TAG, read_description
from tasks.provenance.lineage.shipping import LEASE
from tasks.provenance.lineage.spool import SHIPPED, read_spools
from tasks.provenance.lineage.statements import flat_values, load_statement, run_key
from tasks.provenance.lineage.tombstones import PLACE, is_buried, tombstone_uri
from tasks.provenance.lineage.version_details import APPROVAL, MODEL, REPORT_FILE, ROLLBACK
from tasks.store.files import write_bytes
from tasks.store.interface import Store, store_at
from tasks.store.lease import lease

logger = logging.getLogger(__name__)

Events = tuple[str, Sequence[Event]]
"""(run, events)"""
UNKNOWN = "unknown"
"""Execution of a statement whose execution record is lost."""


@dataclass(frozen=True, slots=True)
class RebuildSummary:
    """What a rebuild applied."""

    runs: int
    derived: int
    """How many of these follow from the statement alone."""
    broken_file: str
    """Where the broken sqlite file is now; '' if there was none."""


def rebuild(store: StoreRef) -> RebuildSummary:
    """Apply everything that a store knows to its MLflow.

    A sqlite file that is not usable is kept under another name, and a new one is made.

    Raises:
        EngineError: MLflow or the store does not answer.
        DataError: MLflow refused an event.
    """
    with lease(f"{store.uri}/spool/{LEASE}", "repair of MLflow"), TemporaryDirectory() as folder:
        broken_file = set_aside(store.tracking_uri)
        spools: dict[object, Events] = {**read_spools(_spools(store, Path(folder)))}
        recorded = {_statement(events) for _, events in spools.values()}
        derived = {
            digest: (run, list(events)) for digest, run, events in _from_statements(store, recorded)
        }
        run_keys = {run for run, _ in spools.values()}
        spools |= derived
        spools |= {run: (run, events) for run, events in _reports(store) if run not in run_keys}
        catalogue = Catalogue(store.tracking_uri)
        for key in producers_first(spools):
            run, events = spools[key]
            logger.info("rebuilding %s", run)
            catalogue.apply(run, events)
        for name in store_at(f"{store.uri}/{PLACE}").list_files():
            if is_buried(store.uri, digest := name.removesuffix(".json")):
                catalogue.mark_deleted(digest, tombstone_uri(store.uri, digest))
    stages = {run for run, events in spools.values() if _is_stage(events)}
    return RebuildSummary(len(stages), len(derived), broken_file)


def set_aside(tracking_uri: str) -> str:
    """Move a sqlite file that is not usable; its new place, '' if it is usable."""
    path = sqlite_path(tracking_uri)
    fault = find_fault(path) if path is not None and path.exists() else ""
    if path is None or not fault:
        return ""
    new_place = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}")
    logger.warning("%s: %s; it is kept as %s", path, fault, new_place.name)
    if (journal := journal_of(path)).exists():  # it would undo pages of the new file
        journal.rename(journal_of(new_place))
    path.rename(new_place)
    return str(new_place)


def _spools(store: StoreRef, folder: Path) -> Iterator[Path]:
    """Every spool of the store that no stage is writing, as local files."""
    place = store_at(f"{store.uri}/spool")
    for name in place.list_files():
        if not name.endswith(".jsonl") or Path(name).parent.name not in {"", SHIPPED}:
            continue
        if place.local_path is not None:
            yield place.local_path / name
        else:
            write_bytes(folder / Path(name).name, place.read_bytes(name))
            yield folder / Path(name).name


def _is_stage(events: Sequence[Event]) -> bool:
    return any(isinstance(event, StageStarted) for event in events)


def _statement(events: Sequence[Event]) -> str:
    """The statement that the run of a spool carries, '' if it did not finish."""
    for event in events:
        if isinstance(event, StageFinished) and STATEMENT in event.tags:
            return event.tags[STATEMENT]
    return ""


def _from_statements(
    store: StoreRef, recorded: set[str]
) -> Iterator[tuple[str, str, Iterator[Event]]]:
    """Yield (digest, run, events) of the statements that no spool carries."""
    records = {record.statement: record for record in _records(store_at(f"{store.uri}/executions"))}
    for name in store_at(f"{store.uri}/statements").list_files():
        digest = name.removesuffix(".json")
        if digest in recorded:
            continue
        try:
            statement = load_statement(store.uri, digest)
        except DataError as error:
            logger.warning("left out: %s", error)
            continue
        record = records.get(digest)
        execution = record.execution if record else UNKNOWN
        yield (
            digest,
            run_key(execution, statement.stage),
            _events(store, digest, statement, record),
        )


def _records(place: Store) -> Iterator[ExecutionRecord]:
    for name in place.list_files():
        try:
            yield ExecutionRecord.model_validate_json(place.read_bytes(name))
        except (DataError, ValidationError) as error:
            logger.warning("left out: %s/%s: %.200s", place.uri, name, error)


def _reports(store: StoreRef) -> Iterator[Events]:
    """Yield the events of executions that have a report."""
    records = _records(store_at(f"{store.uri}/executions"))
    tags = {record.execution: record.tags for record in records}
    for name in store_at(version_details.reports_uri(store.uri)).list_files():
        execution = name.removesuffix(".html")
        if tags.get(execution):
            uri = version_details.report_uri(store.uri, execution)
            yield (
                execution,
                [
                    ExecutionStarted(tags=tags_for_execution(tags[execution])),
                    FileAttached(uri=uri, name=REPORT_FILE),
                ],
            )


def _events(
    store: StoreRef, digest: str, statement: Statement, record: ExecutionRecord | None
) -> Iterator[Event]:
    """Derive what a stage told MLflow, but for its curves."""
    begin = record.started if record else 0.0
    end = begin + record.seconds if record else 0.0
    execution = Execution(id=record.execution if record else UNKNOWN, started=begin)
    tags = record.tags if record else {}
    tags = tags or run_tags(execution, statement.stage, statement.code, store.id)
    yield StageStarted(
        time=begin,
        stage=statement.stage,
        params=flat_values(json.loads(statement.settings)),
        tags=tags,
    )
    for item in statement.inputs:
        kind = _kind(store.uri, item.uri, item.digest)
        name, parents = item.role, ()
        if kind == CheckpointRef.__name__ and item.statement:
            producer = load_statement(store.uri, item.statement)
            name, parents = producer.stage, tuple(one.digest for one in producer.inputs)
        yield ArtifactLinked(
            time=begin, kind="input", type=kind, name=name, parents=parents, **item.model_dump()
        )
    parents = tuple(item.digest for item in statement.inputs)
    for output in statement.outputs:
        yield ArtifactLinked(
            time=end,
            kind="output",
            type=_kind(store.uri, output.uri, output.digest),
            name=statement.stage,
            parents=parents,
            statement=digest,
            **output.model_dump(),
        )
    is_release = "manifest_sha256" in statement.facts
    if is_release:
        yield from _registration(store, digest, statement, tags, end)
    elif statement.stage in (ROLLBACK, APPROVAL) and NUMBER in statement.facts:
        settings, (restored,) = json.loads(statement.settings), statement.inputs
        yield VersionRestored(
            time=end,
            name=settings["name"],
            statement=restored.statement,
            by=statement.stage.partition("/")[0],
        )
    model, made_by = _about(digest, statement)
    yield FactsCounted(
        time=end,
        values=statement.facts,
        model=model,
        model_statement=made_by,
        of_execution=is_release,
    )
    note = describe_stage(statement.stage, statement, digest)
    yield StageFinished(time=end, status="FINISHED", tags={STATEMENT: digest, NOTE: note})


def _about(digest: str, statement: Statement) -> tuple[str, str]:
    """The checkpoint that the facts of a stage describe, one it made or else one it read.

    Returns:
        (its digest, that of the statement that made it); both '' if there is none.
    """
    for output in statement.outputs:
        if output.role == MODEL:
            return output.digest, digest
    for item in statement.inputs:
        if item.role == MODEL:
            return item.digest, item.statement
    return "", ""


def _registration(
    store: StoreRef, digest: str, statement: Statement, tags: dict[str, str], time: float
) -> Iterator[Event]:
    (model,) = statement.outputs
    place = origins.object_uri(store.uri, model.uri, model.digest)
    version_tags = version_details.version_tags(store.uri, place, tags, statement.facts)
    yield ModelRegistered(
        time=time,
        name=str(json.loads(statement.settings).get("name", "")),
        uri=model.uri,
        digest=model.digest,
        statement=digest,
        released=bool(statement.facts["released"]),
        tags={**version_tags, MANIFEST_TAG: str(statement.facts["manifest_sha256"])},
        description=_card(store.uri, model),
    )
    yield from version_details.attachments(place)


def _card(store: str, model: Output) -> str:
    try:
        uri = origins.object_uri(store, model.uri, model.digest)
        return read_description(store_at(f"{uri}/{CARD_FILE}").read_bytes().decode())
    except (DataError, UnicodeDecodeError):
        return ""


def _kind(store: str, uri: str, digest: str) -> str:
    """A folder of weights is a model to MLflow."""
    if uri.startswith("file://"):
        return "source"
    files = store_at(origins.object_uri(store, uri, digest)).list_files()
    if not files and is_buried(store, digest):  # only models are deleted on purpose
        return CheckpointRef.__name__
    weights = [name for name in files if "/" not in name and name.endswith(".safetensors")]
    is_model = "config.json" in files and bool(weights)
    return (CheckpointRef if is_model else DatasetRef).__name__
