"""MLflow as a catalogue of the statements.

One MLflow run per stage and execution, nested in the run of the execution; datasets and models
are linked as its inputs and outputs. MLflow can be edited by any client, so nothing here is
evidence: the audit checks it against the statements. Only MlflowClient is used, without global
state except where MLflow itself reads it (`registry`).

Limits of MLflow 3.17: dataset digests end at 36 characters, the full sha256 is a
tag; metric names refuse `@`; linking an output twice is an error; a run has no dataset
outputs, so these are inputs with the context `output/<role>`.
"""

import json
import logging
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from data_schemas.events import (
    ArtifactLinked,
    Event,
    ExecutionEnded,
    ExecutionStarted,
    FactsCounted,
    FileAttached,
    MetricsLogged,
    ModelRegistered,
    StageFinished,
    StageStarted,
    VersionRestored,
)
from tasks.errors import DataError, EngineError
from tasks.provenance.lineage.connection import (
    EXPERIMENT,
    boundary,
    connect,
    find_experiment,
    sqlite_path,
)
from tasks.provenance.lineage.descriptions import (
    EXECUTION,
    EXPERIMENT_TAGS,
    FLYTE_EXECUTION,
    PARENT,
    ROW_SOURCE,
)
from tasks.provenance.lineage.execution_runs import ExecutionRuns, attach
from tasks.provenance.lineage.registry import (
    KEY,
    SHA256,
    PromotionEntry,
    promote,
    register_release,
    versions_of,
)
from tasks.provenance.lineage.spool import BATCH, NotKeptError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel

logger = logging.getLogger(__name__)

STATEMENT = "eachprompt.statement"
FROM = "from."
"""Tag of a run, followed by the role of an input: the execution that made it, if another did."""
CONTEXT = "mlflow.data.context"
DELETED = "deleted"
"""Tag of what made, is or names a model whose files were deleted on purpose: its tombstone."""

_MAX_DIGEST = 36
MAX_VALUE = 500
"""Characters of a parameter or tag."""
_PARAMS_PER_REQUEST = 100


_NO_MLFLOW = (
    "it answered, but does not have what it took. Check that MLFLOW_TRACKING_URI names MLflow, and "
    "what is in front of it"
)


class Catalogue:
    """Writes the events of stages into one tracking store; applying twice changes nothing."""

    def __init__(self, tracking_uri: str) -> None:
        self._tracking_uri = tracking_uri
        self._runs: dict[str, str] = {}

    def apply(self, run: str, events: Sequence[Event]) -> None:
        """Record events of the run with this key, in order.

        Raises:
            EngineError: the tracking store does not answer.
            DataError: it refused one of them for good.
        """
        with boundary():
            for is_curve, run_events in groupby(
                events, lambda event: isinstance(event, MetricsLogged)
            ):
                if is_curve:
                    self._metrics(
                        run, [one for one in run_events if isinstance(one, MetricsLogged)]
                    )
                    continue
                for event in run_events:
                    self._apply(run, event)

    def _apply(self, run: str, event: Event) -> None:
        match event:
            case ExecutionStarted():
                self._runs[run] = self._executions.open(event.tags)
            case ExecutionEnded():
                self._executions.end(
                    self._run(run), event.message, _milliseconds(event), event.task
                )
            case StageStarted():
                self._start(run, event)
            case ArtifactLinked():
                self._link(run, event)
            case FactsCounted():
                self._facts(run, event)
            case FileAttached():
                self._attach(run, event)
            case ModelRegistered():
                self._register(run, event)
            case VersionRestored():
                self._restore(run, event)
            case StageFinished():
                self._finish(run, event)

    def fail(self, flyte_execution: str, reason: str, *, reported: bool) -> None:
        """Mark the runs of an execution of Flyte as failed, whatever its stages say.

        Args:
            flyte_execution: project/domain/name.
            reason: for people.
            reported: whether they were told.

        Raises:
            EngineError: MLflow does not answer.
        """
        with boundary():
            self._executions.fail(flyte_execution, reason, reported=reported)

    def close(self, execution: str, status: str, reason: str) -> None:
        """End the run of an execution if it still runs.

        Raises:
            EngineError: MLflow does not answer.
        """
        with boundary():
            run_id = self._executions.find(execution)
            if run_id and self._client.get_run(run_id).info.status == "RUNNING":
                self._executions.close(run_id, status, reason)

    def mark_deleted(self, digest: str, note: str) -> None:
        """Say at a model, its versions and the run that made it that its files were deleted.

        Args:
            digest: of the files.
            note: uri of the tombstone.

        Raises:
            EngineError: MLflow does not answer.
        """
        with boundary():
            models = f"tags.{SHA256} = '{digest}'"
            for model in self._client.search_logged_models([self._experiment], models):
                self._client.set_logged_model_tags(model.model_id, {DELETED: note})
                if model.source_run_id:
                    self._client.set_tag(model.source_run_id, DELETED, note)
            for version in self._client.search_model_versions(models):
                self._client.set_model_version_tag(version.name, version.version, DELETED, note)

    def run_id(self, run: str) -> str:
        """Return the MLflow run with this key, '' if there is none or MLflow does not answer."""
        try:
            with boundary():
                return self._runs.get(run) or self._executions.find(run)
        except (EngineError, DataError):
            return ""

    def registered(self, run: str, name: str) -> str:
        """Return the version that this run registered, 'models:/NAME/3', as the registry has it.

        Raises:
            EngineError: the registry does not answer.
            DataError: it has no such version.
        """
        with boundary():
            versions = versions_of(self._client, name, run)
        if not versions:
            raise DataError(f"MLflow has no version of {name} by {run} although it took one")
        return f"models:/{name}/{max(int(version.version) for version in versions)}"

    @cached_property
    def _client(self) -> "MlflowClient":
        return connect(self._tracking_uri)

    @cached_property
    def _experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        experiment = find_experiment(self._client, self._tracking_uri)
        if experiment is not None:
            for name, value in EXPERIMENT_TAGS.items():
                if name not in experiment.tags:
                    self._client.set_experiment_tag(experiment.experiment_id, name, value)
            return experiment.experiment_id
        try:
            return self._client.create_experiment(
                EXPERIMENT, _artifact_location(self._tracking_uri), tags=EXPERIMENT_TAGS
            )
        except MlflowException:
            # Another stage created it at the same time.
            experiment = find_experiment(self._client, self._tracking_uri)
            if experiment is None:
                raise
            return experiment.experiment_id

    @cached_property
    def _executions(self) -> ExecutionRuns:
        return ExecutionRuns(self._client, self._experiment)

    def _parent(self, run: str) -> str:
        return self._client.get_run(self._run(run)).data.tags.get(PARENT, "")

    def _run(self, run: str) -> str:
        if run not in self._runs:
            run_id = self._executions.find(run)
            if not run_id:
                raise DataError(f"run {run} was never started in {self._tracking_uri}")
            self._runs[run] = run_id
        return self._runs[run]

    def _start(self, run: str, event: StageStarted) -> None:
        run_id = self._executions.find(run)
        parent = self._executions.open(event.tags)
        # First: of a pod that dies here, whoever looks has to know the execution.
        self._executions.resume(parent, event.tags, _milliseconds(event))
        nested = {PARENT: parent} if parent else {}
        if not run_id:
            run_id = self._client.create_run(
                self._experiment,
                start_time=_milliseconds(event),
                tags={KEY: run, **event.tags, **nested},
                run_name=event.stage,
            ).info.run_id
            if not run_id:
                raise NotKeptError(_NO_MLFLOW)
        else:
            self._client.update_run(run_id, status="RUNNING")
            # Recover goes on with it in another execution of Flyte.
            flyte = {name: event.tags[name] for name in (FLYTE_EXECUTION,) if name in event.tags}
            for name, value in (nested | flyte).items():
                self._client.set_tag(run_id, name, value)
        self._runs[run] = run_id
        from mlflow.entities import Param

        params = [
            Param(mlflow_name(name), value[:MAX_VALUE]) for name, value in event.params.items()
        ]
        for first in range(0, len(params), _PARAMS_PER_REQUEST):
            self._client.log_batch(run_id, params=params[first : first + _PARAMS_PER_REQUEST])

    def _metrics(self, run: str, events: Sequence[MetricsLogged]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(mlflow_name(name), value, _milliseconds(event), event.step)
            for event in events
            for name, value in event.values.items()
        ]
        for first in range(0, len(metrics), BATCH):
            self._client.log_batch(self._run(run), metrics=metrics[first : first + BATCH])

    def _facts(self, run: str, event: FactsCounted) -> None:
        from mlflow.entities import Metric

        run_id, now = self._run(run), _milliseconds(event)
        numbers = {
            mlflow_name(name): float(value)
            for name, value in event.values.items()
            if not isinstance(value, str)
        }
        model_id = self._known_model(event.model, event.model_statement)
        metrics = [Metric(name, value, now, 0) for name, value in numbers.items()]
        about = [Metric(name, value, now, 0, model_id=model_id) for name, value in numbers.items()]
        parent = self._parent(run) if event.of_execution else ""
        for first in range(0, len(metrics), BATCH):
            part = slice(first, first + BATCH)
            self._client.log_batch(run_id, metrics=(about if model_id else metrics)[part])
            if parent:
                self._client.log_batch(parent, metrics=metrics[part])
        for name, value in event.values.items():
            if isinstance(value, str):
                self._client.set_tag(run_id, f"fact.{name}", value[:MAX_VALUE])
        if ROW_SOURCE in event.values:
            self._client.set_tag(run_id, ROW_SOURCE, str(event.values[ROW_SOURCE])[:MAX_VALUE])

    def _attach(self, run: str, event: FileAttached) -> None:
        run_id = (self._parent(run) if event.to_execution else "") or self._run(run)
        attach(self._client, run_id, event.uri, event.name)

    def _link(self, run: str, event: ArtifactLinked) -> None:
        from mlflow.entities import LoggedModelInput, LoggedModelOutput

        run_id = self._run(run)
        if event.kind == "input":
            self._name_maker(run_id, event)
        if event.type != "CheckpointRef":
            self._client.log_inputs(run_id, datasets=[_dataset_input(event)])
            return
        linked = self._client.get_run(run_id)
        if event.kind == "input":
            model_id = self._model(event, None).model_id
            self._client.log_inputs(run_id, models=[LoggedModelInput(model_id)])
            return
        model_id = self._model(event, run_id).model_id
        outputs = linked.outputs.model_outputs if linked.outputs else []
        if model_id not in {output.model_id for output in outputs}:
            self._client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])

    def _name_maker(self, run_id: str, event: ArtifactLinked) -> None:
        """Tag a run with the execution that made an input, unless its own did: a cached result."""
        producers = self._client.search_runs(
            [self._experiment],
            f"tags.`{STATEMENT}` = '{event.statement}'",
            order_by=["attributes.start_time DESC"],
        )
        makers = [one.data.tags.get(EXECUTION, "") for one in producers]
        if makers and self._client.get_run(run_id).data.tags.get(EXECUTION) not in makers:
            self._client.set_tag(run_id, f"{FROM}{event.role}", makers[0])

    def _model(self, event: ArtifactLinked | ModelRegistered, run_id: str | None) -> "LoggedModel":
        """Find the model of this content and statement, or make it."""
        existing = self._find_model(event.digest, event.statement)
        if existing is not None:
            return existing
        parents = event.parents if isinstance(event, ArtifactLinked) else ()
        model = self._client.create_logged_model(
            self._experiment,
            name=model_name(event.name),
            source_run_id=run_id,
            tags={
                "mlflow.model.isExternal": "true",
                SHA256: event.digest,
                "uri": event.uri,
                "statement": event.statement,
                "parents": json.dumps(parents),
            },
            model_type=event.name.split("/")[0],
        )
        return self._client.finalize_logged_model(model.model_id, "READY")

    def _find_model(self, digest: str, statement: str) -> "LoggedModel | None":
        result = self._client.search_logged_models(
            [self._experiment], f"tags.{SHA256} = '{digest}'"
        )
        return next((one for one in result if one.tags.get("statement") == statement), None)

    def _known_model(self, digest: str, statement: str) -> str | None:
        model = self._find_model(digest, statement) if digest else None
        return model.model_id if model else None

    def _finish(self, run: str, event: StageFinished) -> None:
        run_id = self._run(run)
        for name, value in event.tags.items():
            self._client.set_tag(run_id, name, value)
        self._client.set_terminated(run_id, event.status, end_time=_milliseconds(event))
        result = self._client.get_run(run_id)
        if (result.info.run_id, result.info.status) != (run_id, event.status):
            raise NotKeptError(_NO_MLFLOW)
        self._executions.settle(self._parent(run))

    def _register(self, run: str, event: ModelRegistered) -> None:
        version = register_release(
            self._client,
            name=event.name,
            model_id=self._model(event, self._run(run)).model_id,
            folder=event.uri,
            run_id=self._run(run),
            tags={
                KEY: run,
                SHA256: event.digest,
                "statement": event.statement,
                **event.tags,
            },
            description=event.description,
        )
        released = event.released
        if released:
            new = PromotionEntry(
                version=version,
                sha256=event.digest,
                statement=event.statement,
                key=run,
                time=event.time,
                by="release",
            )
            released = promote(self._client, event.name, new, event.replaces)
            if not released:
                logger.warning("%s is not released: another version was, meanwhile", run)
        model = f"models:/{event.name}/{version}"
        self._executions.show_model(self._parent(run), model, released=released)

    def _restore(self, run: str, event: VersionRestored) -> None:
        result = self._client.search_model_versions(
            f"name = '{event.name}' and tags.statement = '{event.statement}'"
        )
        if not result:
            raise DataError(f"MLflow has no version of {event.name} with {event.statement}")
        version = max(result, key=lambda one: int(one.version))
        new = PromotionEntry(
            version=str(version.version),
            sha256=version.tags.get(SHA256, ""),
            statement=event.statement,
            key=run,
            time=event.time,
            by=event.by,
        )
        promote(self._client, event.name, new)


def mlflow_name(name: str) -> str:
    """Convert a metric's or a setting's name to the characters MLflow accepts.

    'pass@4' is 'pass_at_4', and a pattern of `merge.copied` keeps its letters.
    """
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))[:250]


def _dataset_input(event: ArtifactLinked) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(
        name=event.role,
        digest=event.digest[:_MAX_DIGEST],
        source_type="s3" if event.uri.startswith("s3://") else "local",
        source=json.dumps({"uri": event.uri}),
    )
    tags = {
        CONTEXT: f"{event.kind}/{event.role}",
        SHA256: event.digest,
        "statement": event.statement,
        "uri": event.uri,
    }
    return DatasetInput(dataset, [InputTag(key, value) for key, value in tags.items()])


def model_name(stage: str) -> str:
    """Convert a stage's name to one that MLflow accepts for a model."""
    return re.sub(r"[/:.%\"']", "-", stage)


def _artifact_location(tracking_uri: str) -> str | None:
    """Keep MLflow from making ./mlruns wherever the process stands."""
    path = sqlite_path(tracking_uri)
    return str(path.parent / "artifacts") if path else None


def _milliseconds(event: Event) -> int:
    return int(event.time * 1000)
