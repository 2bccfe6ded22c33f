"""Record of one stage: its inputs, outputs, facts and metrics.

    with stage("curate", settings, context, code) as record:
        with record.output("curated") as out:
            record.facts(curate(settings, record.read("raw", raw), out))
        return record.ref("curated", DatasetRef)

The first `ref` closes the statement: a reference carries the statement's digest, so
the statement must be complete by then. Metrics, rows and `register` may
still follow. An outage of MLflow stops no stage but the release, and loses no event (see `spool`).
"""

import logging
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from data_schemas.artifacts import (
    STAGES,
    AnyRef,
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    RawRef,
    ReportRef,
)
from data_schemas.events import (
    ArtifactLinked,
    FactsCounted,
    MetricsLogged,
    ModelRegistered,
    StageFinished,
    StageStarted,
    VersionRestored,
)
from data_schemas.statements import ExecutionRecord, Input, Output, Statement
from tasks.errors import DataError, EngineError, SettingsError
from tasks.platform import telemetry
from tasks.platform.progress import say
from tasks.platform.resources import reserved_gpus
from tasks.plugins import references_in
from tasks.provenance.lineage import builder, statements, version_details
from tasks.provenance.lineage.catalogue import STATEMENT, Catalogue
from tasks.provenance.lineage.descriptions import ERROR, NOTE, ROW_SOURCE, describe_stage, run_tags
from tasks.provenance.lineage.mark import sign_mark
from tasks.provenance.lineage.origins import source_digest
from tasks.provenance.lineage.shipping import STOPPED, put_away, sync, workplace
from tasks.provenance.lineage.signatures.model import sign_model
from tasks.provenance.lineage.signatures.time_stamps import stamp_statement
from tasks.provenance.lineage.spool import Spool, new_spool
from tasks.provenance.lineage.version_details import MODEL
from tasks.store.files import canonical_json, disk_error
from tasks.store.local import new_object
from tasks.store.objects import keep_beside, localise, publish

# Which adapters' rows an artifact consists of: a fact of the statements that lead to a model.
#
# Tables of rows have a column `source`, the name of the adapter that read the row. A stage
# inherits the sources of everything it reads, so that a checkpoint names those of all its
# ancestors.

_COLUMN = "source"


def sources_in(folder: Path) -> set[str]:
    """Read the sources of all tables directly in a folder; what is no table has none."""
    results: set[str] = set()
    for path in folder.glob("*.parquet"):
        try:
            if _COLUMN in pq.read_schema(path).names:
                column = pq.read_table(path, columns=[_COLUMN])[_COLUMN]
                results |= {str(name) for name in column.unique().to_pylist() if name}
        except pa.ArrowInvalid:
            continue
    return results


def inherited(statement: Statement) -> set[str]:
    """Return the sources that a statement names."""
    return {name for name in str(statement.facts.get(ROW_SOURCE, "")).split(",") if name}


def row_source_fact(names: Iterable[str]) -> dict[str, float | int | str]:
    """Return the fact that names sources; empty without any."""
    sources = ",".join(sorted(names))
    return {ROW_SOURCE: sources} if sources else {}


logger = logging.getLogger(__name__)

Ref = TypeVar("Ref", CheckpointRef, RawRef, DatasetRef, GradedRef, ReportRef)

_SHIP_EVERY_S = 10.0
"""How stale MLflow's curves may be while a stage runs."""


class StageRecord:
    """The record of a running stage. Made by `stage`."""

    def __init__(
        self,
        name: str,
        settings: BaseModel,
        context: Context,
        code: tuple[str, ...],
        spool: Spool,
    ) -> None:
        self._name = name
        self._settings = settings
        self.store, self._execution = context
        self._code = code
        self._spool = spool
        self._tags = run_tags(self._execution, name, code, self.store.id)
        self._catalogue = Catalogue(self.store.tracking_uri)
        self._shipped = time.monotonic()
        self._sender: threading.Thread | None = None
        self._inputs: list[Input] = []
        self._outputs: dict[str, Output] = {}
        self._linked: set[str] = set()
        self._facts: dict[str, float | int | str] = {}
        self._rows = (0, 0)
        self._row_sources: set[str] = set()
        self._model: CheckpointRef | None = None
        self._registered = False
        self._statement = ""

    def read(self, role: str, ref: AnyRef) -> Path:
        """Return a verified local folder with an artifact and record it as an input.

        Raises:
            DataError: the artifact is gone.
            TamperError: it is not what was committed.
        """
        self._refuse_if_closed(f"read {role!r}")
        path = localise(ref.uri, ref.digest, workplace(self.store))
        item = Input(role=role, uri=ref.uri, digest=ref.digest, statement=ref.statement)
        self._inputs.append(item)
        producer = None
        if ref.statement:
            producer = statements.load_statement(self.store.uri, ref.statement)
            self._row_sources |= inherited(producer)
        if isinstance(ref, CheckpointRef) and producer is not None:
            # The same model in MLflow, whether its producer or its reader arrives first.
            parents = [parent.digest for parent in producer.inputs]
            self._append_link("input", "CheckpointRef", item, producer.stage, parents)
        else:
            self._append_link("input", type(ref).__name__, item, role)
        if role == MODEL and isinstance(ref, CheckpointRef):
            self._model = ref
        return path

    def source(self, role: str, path: Path, uri: str = "") -> Path:
        """Record a file or folder from outside the store, by content, as a root of the chain.

        Args:
            role: of the input.
            path: of the file or folder, or of a local copy.
            uri: where the original of a copy is.

        Raises:
            DataError: it is not there.
        """
        self._refuse_if_closed(f"read {role!r}")
        item = Input(
            role=role,
            uri=uri or path.resolve().as_uri(),
            digest=source_digest(path),
            statement="",
        )
        self._inputs.append(item)
        self._append_link("input", "source", item, role)
        return path

    @contextmanager
    def output(self, role: str) -> Iterator[Path]:
        """Yield an empty folder; when the block ends well, it is committed as an object."""
        self._refuse_if_closed(f"write {role!r}")
        assert role not in self._outputs, f"{self._name} wrote the output {role!r} already"
        with new_object(workplace(self.store)) as (folder, committed):
            yield folder
        self._row_sources |= sources_in(Path(committed.uri))
        uri = publish(Path(committed.uri), committed.digest, self.store.uri)
        self._outputs[role] = Output(role=role, uri=uri, digest=committed.digest)

    @contextmanager
    def beside(self, role: str) -> Iterator[Path]:
        """Yield an empty folder; what is in it at the end is kept beside a committed output.

        For what differs from run to run, such as times: it is no part of the statement.
        """
        with TemporaryDirectory() as folder:
            yield Path(folder)
            keep_beside(Path(folder), self.store.uri, self.digest_of(role))

    def digest_of(self, role: str) -> str:
        """Return the digest of an output that was committed."""
        return self._outputs[role].digest

    def facts(self, facts: Mapping[str, float | int | str]) -> None:
        """Add counts and results to the statement.

        Raises:
            DataError: a number is not finite, so it cannot be proved equal to anything.
        """
        self._refuse_if_closed("add facts")
        for name, value in facts.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise DataError(f"fact {name!r} of {self._name} is {value}; report a finite number")
        self._facts.update(facts)

    def rows(self, rows_in: int, rows_out: int) -> None:
        """Record the numbers of input and output rows, for the stage table."""
        self._rows = (rows_in, rows_out)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Put the metrics of one step on the spool; MLflow gets them within seconds.

        A thread sends them, so a server that accepts the connection but hangs blocks nothing.
        """
        self._spool.append(MetricsLogged(step=step, values=dict(values)))
        telemetry.show(values, {"stage": self._name, "execution": self._execution.id})
        sending = self._sender is not None and self._sender.is_alive()
        if time.monotonic() - self._shipped > _SHIP_EVERY_S and not sending:
            self._sender = threading.Thread(target=self._send, name="to-mlflow", daemon=True)
            self._sender.start()

    def ref(self, role: str, kind: type[Ref]) -> Ref:
        """Return the reference to an output and close the statement."""
        assert role in self._outputs, f"{self._name} has no output {role!r}"
        self._close()
        output = self._outputs[role]
        self._append_output(output, kind.__name__)
        ref = kind(uri=output.uri, digest=output.digest, statement=self._statement)
        if role == MODEL and isinstance(ref, CheckpointRef):
            self._model = ref
        return ref

    def register(
        self,
        role: str,
        name: str,
        *,
        released: bool,
        tags: Mapping[str, str],
        description: str = "",
        replaces: str = "",
    ) -> str:
        """Sign an output and make it a version of a registered model.

        It gets the alias `released` if it passed; its statement is stamped before.

        Returns:
            The uri of the version that the registry answered with, 'models:/NAME/3'.

        Raises:
            EngineError: MLflow does not answer; the event is kept. Or the time stamp service does
                not; nothing is registered then.
            DataError: it refused the version or an event before it; the event is kept.
        """
        ref = self.ref(role, CheckpointRef)
        sign_model(self.store.uri, ref.digest)
        if released:
            stamp_statement(self.store.uri, ref.statement)
        version_tags = version_details.version_tags(
            self.store.uri, ref.uri, self._tags, self._facts
        )
        self._spool.append(
            ModelRegistered(
                name=name,
                digest=ref.digest,
                uri=ref.uri,
                statement=ref.statement,
                released=released,
                replaces=replaces,
                tags={**version_tags, **tags},
                description=description,
            )
        )
        for file in version_details.attachments(ref.uri):
            self._spool.append(file)
        self._registered = True
        self._deliver_all()
        return self._catalogue.registered(self._spool.run, name)

    def restore(self, name: str, statement: str, by: str) -> None:
        """Make the version with a statement the released one; errors as in `register`."""
        self._close()
        stamp_statement(self.store.uri, self._statement)
        self._spool.append(VersionRestored(name=name, statement=statement, by=by))
        self._deliver_all()

    def start(self, *, reachable: bool) -> None:
        """Start the run in MLflow, unless MLflow did not answer when the stage began."""
        self._spool.append(
            StageStarted(
                stage=self._name,
                params=statements.flat_settings(self._settings),
                tags=self._tags,
            )
        )
        if reachable:
            self._ship()

    def finish(self, started: float, seconds: float, cpu: float) -> None:
        """Close the statement, file the execution record and end the MLflow run."""
        statement = self._close()
        for output in self._outputs.values():
            self._append_output(output, DatasetRef.__name__)
        model = self._model
        self._spool.append(
            FactsCounted(
                values=self._facts,
                model=model.digest if model else "",
                model_statement=model.statement if model else "",
                of_execution=self._registered,
            )
        )
        reachable = self._ship()
        record = ExecutionRecord(
            execution=self._execution.id,
            stage=self._name,
            statement=self._statement,
            started=started,
            seconds=seconds,
            cpu_seconds=cpu,
            gpus=reserved_gpus(),
            rows_in=self._rows[0],
            rows_out=self._rows[1],
            run_id=self._catalogue.run_id(self._spool.run) if reachable else "",
            tags=self._tags,
        )
        statements.save_execution(self.store.uri, record)
        say(f"{self._place()}{self._name:24} {seconds:7.1f} s{self._rows_text()}")
        note = describe_stage(self._name, statement, self._statement)
        self._end("FINISHED", {STATEMENT: self._statement, NOTE: note}, reachable=reachable)

    def _place(self) -> str:
        """Say which of how many stages it is; '' in workflows whose stages are not known before."""
        entry = STAGES.get(self._execution.workflow, ())
        return f"{entry.index(self._name) + 1:2}/{len(entry)} " if self._name in entry else ""

    def _rows_text(self) -> str:
        """Say what became of the rows; '' for a stage that has none."""
        rows_in, rows_out = self._rows
        # A row of a table may be several items.
        if self._name == "curate" and (items := self._facts.get("items")) is not None:
            return f"   {rows_out:,} of {items:,} kept"
        if skipped := self._facts.get("skipped"):
            return f"   skipped: {skipped}"
        return f"   {rows_in:,} rows in, {rows_out:,} out" if rows_in else ""

    def fail(self, error: BaseException) -> None:
        """Mark the MLflow run as failed, or as killed if it was told to stop, with the reason."""
        if not self._spool.path.exists():
            self._spool.close(shipped=False)
        elif self._spool.open:
            reason = f"{type(error).__name__}: {error}"[:500]
            note = describe_stage(self._name, error=reason)
            status = "KILLED" if isinstance(error, STOPPED) else "FAILED"
            self._end(status, {ERROR: reason, NOTE: note}, reachable=True)

    def _ship(self) -> bool:
        if self._sender is not None:
            self._sender.join()
        return self._send()

    def _send(self) -> bool:
        try:
            self._deliver()
        except (EngineError, DataError) as error:
            logger.warning("%s", error)
            return False
        return True

    def _deliver_all(self) -> None:
        if self._sender is not None:
            self._sender.join()
        # What earlier stages could not send is part of the same chain.
        sync(self.store)
        self._deliver()

    def _deliver(self) -> None:
        try:
            self._spool.ship(self._catalogue)
        finally:
            # After a failure too, so that an outage costs one attempt per period.
            self._shipped = time.monotonic()

    def _end(
        self,
        status: Literal["FINISHED", "FAILED", "KILLED"],
        tags: Mapping[str, str],
        *,
        reachable: bool,
    ) -> None:
        """End the run and close the spool, which remains if MLflow did not answer."""
        self._spool.append(StageFinished(status=status, tags=dict(tags)))
        shipped = reachable and self._ship()
        put_away(self.store, self._spool, shipped=shipped)

    def _refuse_if_closed(self, what: str) -> None:
        assert not self._statement, (
            f"{self._name} cannot {what} any more: ref() closed its statement"
        )

    def _close(self) -> Statement:
        if not self._statement:
            self._facts |= row_source_fact(self._row_sources)
        statement = Statement(
            stage=self._name,
            settings=canonical_json(self._settings).decode(),
            code=self._code,
            environment=builder.environment_digest(),
            lock=builder.lock_digest(),
            container=builder.container_image(),
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs.values()),
            facts=self._facts,
        )
        if not self._statement:
            self._statement = statements.save_statement(self.store.uri, statement)
            sign_mark(self.store.uri, self._statement)
        return statement

    def _append_output(self, output: Output, kind: str) -> None:
        if output.role not in self._linked:
            self._linked.add(output.role)
            item = Input(**output.model_dump(), statement=self._statement)
            parents = [parent.digest for parent in self._inputs]
            self._append_link("output", kind, item, self._name, parents)

    def _append_link(
        self,
        way: Literal["input", "output"],
        kind: str,
        item: Input,
        name: str,
        parents: Sequence[str] = (),
    ) -> None:
        self._spool.append(
            ArtifactLinked(
                kind=way, type=kind, name=name, parents=tuple(parents), **item.model_dump()
            )
        )


@contextmanager
def stage(
    name: str, settings: BaseModel, context: Context, code: str | Sequence[str]
) -> Iterator[StageRecord]:
    """Record one stage of an execution.

    Args:
        name: unique within the execution: 'curate', 'sft/reasoning', 'rl/one'.
        settings: of the stage.
        context: where artifacts, statements and the spool lie.
        code: source digest, or all that ran if the stage was resumed under changed code; those of
            a user's own code in the settings are added.

    Raises:
        SettingsError: a reference in the settings does not say which code it means.

    An error in the block marks the MLflow run FAILED and passes through; no statement and
    no execution record are written then.
    """
    reachable = sync(context.store)
    digests = (code,) if isinstance(code, str) else tuple(code)
    digests = tuple(dict.fromkeys((*digests, *_own_code(name, settings))))
    spool = new_spool(
        workplace(context.store) / "spool", statements.run_key(context.execution.id, name)
    )
    record = StageRecord(name, settings, context, digests, spool)
    started, clock, cpu = time.time(), time.monotonic(), _cpu_seconds()
    try:
        record.start(reachable=reachable)
        with telemetry.span(
            name, {"execution": context.execution.id, "workflow": context.execution.workflow}
        ):
            yield record
        record.finish(started, time.monotonic() - clock, _cpu_seconds() - cpu)
    except BaseException as error:
        try:
            record.fail(error)
        except (EngineError, DataError, OSError) as other:  # of the same full disk, for one
            logger.warning("the failure of %s is not recorded: %s", name, other)
        if problem := disk_error(error, workplace(context.store)):
            raise problem from error
        raise


def _own_code(name: str, settings: BaseModel) -> Iterator[str]:
    """Yield the digests of a user's own code that settings name."""
    for _, reference in references_in(settings):
        if not reference.digest:
            raise SettingsError(
                f"{name}: {reference} is not pinned, so no statement could say which code ran. "
                "Pass the settings through check_settings (tasks/stages/opening.py)"
            )
        yield reference.digest


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and the children it has waited for."""
    return sum(os.times()[:4])
