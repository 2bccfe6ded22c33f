"""Read versions, models and runs from MLflow as plain records.

Every client can edit these records; `tasks.provenance.audit` compares them with the statements.
"""

import json
import re
import sqlite3
from collections.abc import Container, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tasks.errors import SettingsError
from tasks.provenance.lineage.catalogue import CONTEXT, SHA256, STATEMENT
from tasks.provenance.lineage.connection import (
    REPAIR,
    boundary,
    connect,
    find_experiment,
    require_sqlite,
    sqlite_path,
)
from tasks.provenance.lineage.registry import logged_model

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run

_KNOWN = """
    SELECT 'models:/' || name || '@' || alias FROM registered_model_aliases
    UNION ALL SELECT 'models:/' || name || '/' || version FROM model_versions
    WHERE current_stage <> 'Deleted_Internal'
"""
"""Every name of every version in the database of MLflow; the newest aliases first."""
_SHOWN = 4
_MODEL_URI = re.compile(r"models:/(?P<name>[^/@]+)(@(?P<alias>[^/@]+)|/(?P<version>\d+))")


@dataclass(frozen=True, slots=True)
class LoggedModel:
    """A logged model."""

    id: str
    name: str
    tags: Mapping[str, str]
    location: str = ""
    """Where MLflow's own client downloads it from."""
    status: str = "READY"
    type: str = ""
    run_id: str = ""
    """The run that made it; '' for a model that another store made."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a registered model."""

    name: str
    number: str
    aliases: tuple[str, ...]
    tags: Mapping[str, str]
    model: LoggedModel | None
    """None if the logged model it points at is gone."""
    description: str = ""
    """Text of its page."""
    run_id: str = ""
    """The run that made it."""
    location: str = ""
    """Where MLflow's own client downloads it from."""
    status: str = "READY"
    stage: str = "None"
    """By which an older client finds it: models:/NAME/Production."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset linked to a run."""

    name: str
    uri: str
    """Where its bytes are."""
    way: str
    """'input' or 'output'."""
    role: str
    digest: str
    """Written once, cut at 36 characters."""
    sha256: str
    """The whole of what `digest` begins, from a tag."""


@dataclass(frozen=True, slots=True)
class StageRun:
    """A run of one stage."""

    id: str
    name: str
    status: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    """Last value of every curve."""
    datasets: tuple[Dataset, ...]
    models_in: tuple[LoggedModel, ...] = field(default=())
    models_out: tuple[LoggedModel, ...] = field(default=())


def parse_model_uri(uri: str) -> tuple[str, str, str]:
    """Return (name, alias, number) of `models:/NAME@alias` or `models:/NAME/3`; one is ''.

    Raises:
        SettingsError: not of that form.
    """
    match = _MODEL_URI.fullmatch(uri)
    if match is None:
        raise SettingsError(f"{uri!r} names no model; use models:/NAME@released or models:/NAME/3")
    return match["name"], match["alias"] or "", match["version"] or ""


def missing_version(model_uri: str, tracking_uri: str) -> str:
    """Say that the sqlite file of a store has no such version, without loading MLflow.

    Returns:
        '' if it has, or if only MLflow can tell: a server, or a file that cannot be read.

    Raises:
        SettingsError: `model_uri` is not of the form of one.
    """
    parse_model_uri(model_uri)
    path = sqlite_path(tracking_uri)
    if path is None or not path.is_file():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            uris = [uri for (uri,) in database.execute(_KNOWN)]
    except sqlite3.Error:
        return ""
    if model_uri in uris:
        return ""
    has = f"which has {', '.join(uris[:_SHOWN]) or 'no model'}{' ...' * (len(uris) > _SHOWN)}"
    return (
        f"{model_uri} is not in this MLflow store, {has}. Correct the name, or name another "
        f"--store; if this one was lost, rebuild it from the statements: {REPAIR} {path.parent}"
    )


class Lookup:
    """Queries to one tracking store.

    Every method raises EngineError when it does not answer.

    Raises:
        SettingsError: it is a file that does not exist.
    """

    def __init__(self, tracking_uri: str) -> None:
        require_sqlite(tracking_uri)
        self._tracking_uri = tracking_uri
        self._models: dict[str, LoggedModel | None] = {}
        self._runs: dict[str, list[StageRun]] = {}

    @cached_property
    def _client(self) -> "MlflowClient":
        return connect(self._tracking_uri)

    def version(self, model_uri: str) -> Version:
        """Find `models:/NAME@alias` or `models:/NAME/3`.

        Raises:
            SettingsError: not of that form, or not in this store.
        """
        name, alias, number = parse_model_uri(model_uri)
        from mlflow.exceptions import MlflowException

        with boundary():
            try:
                if not number:
                    aliased = self._client.get_model_version_by_alias(name, alias)
                    number = str(aliased.version)
                result = self._client.get_model_version(name, number)
            except MlflowException as error:
                if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                    raise
                raise SettingsError(
                    f"{model_uri} is not in this MLflow store: {error.message}. "
                    "Nothing was released under that name, or MLFLOW_TRACKING_URI names another "
                    f"MLflow. If this one was lost, rebuild it from the statements: {REPAIR} STORE"
                ) from error
            return Version(
                name=name,
                number=number,
                aliases=tuple(result.aliases),
                tags=dict(result.tags),
                model=self._model(logged_model(result)),
                description=result.description or "",
                run_id=result.run_id or "",
                location=self._client.get_model_version_download_uri(name, number),
                status=str(result.status),
                stage=str(result.current_stage or "None"),
            )

    def registered(self, name: str, statement: str) -> Version | None:
        """Find the newest version of a model that carries a statement; None if there is none."""
        with boundary():
            result = self._client.search_model_versions(
                f"name = '{name}' and tags.statement = '{statement}'"
            )
        numbers = [int(version.version) for version in result]
        return self.version(f"models:/{name}/{max(numbers)}") if numbers else None

    def has_versions(self, name: str) -> bool:
        """True if MLflow knows a version of this model."""
        with boundary():
            return bool(self._client.search_model_versions(f"name = '{name}'", max_results=1))

    def is_empty(self, location: str) -> bool:
        """True if MLflow's own client finds no file at a location of its artifacts."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        with boundary():
            return not get_artifact_repository(
                location, tracking_uri=self._tracking_uri
            ).list_artifacts()

    def points(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        """List what a run recorded for a metric, each with its step."""
        with boundary():
            history = self._client.get_metric_history(run_id, metric)
        return [(point.step, point.value) for point in history]

    def runs(self, statement: str) -> list[StageRun]:
        """List the finished runs that carry a statement; each is asked for once."""
        if statement not in self._runs:
            self._runs[statement] = self._find_runs(statement)
        return self._runs[statement]

    def _find_runs(self, statement: str) -> list[StageRun]:
        with boundary():
            experiment = find_experiment(self._client, self._tracking_uri)
            if experiment is None:
                return []
            runs = self._client.search_runs(
                [experiment.experiment_id], f"tags.`{STATEMENT}` = '{statement}'"
            )
            # What search_runs returns lacks the model inputs.
            return [self._stage_run(self._client.get_run(run.info.run_id)) for run in runs]

    def is_shared(self, dataset: Dataset, runs: Container[str]) -> bool:
        """True if a run that is none of these is linked to a dataset as well.

        MLflow keeps one dataset per name and digest, with the source that was logged first.
        """
        with boundary():
            experiment = find_experiment(self._client, self._tracking_uri)
            if experiment is None:
                return False
            users = self._client.search_runs(
                [experiment.experiment_id],
                f"dataset.name = '{dataset.name}' and dataset.digest = '{dataset.digest}'",
            )
        return any(run.info.run_id not in runs for run in users)

    def _stage_run(self, run: "Run") -> StageRun:
        inputs = run.inputs
        into = [item.model_id for item in (inputs.model_inputs if inputs else [])]
        out = [item.model_id for item in (run.outputs.model_outputs if run.outputs else [])]
        return StageRun(
            id=run.info.run_id,
            name=run.info.run_name or "",
            status=run.info.status,
            tags=dict(run.data.tags),
            params=dict(run.data.params),
            metrics=dict(run.data.metrics),
            datasets=tuple(_dataset(item) for item in (inputs.dataset_inputs if inputs else [])),
            # Logging a metric for its own output makes MLflow list that model as an input too.
            models_in=self._all(model_id for model_id in into if model_id not in out),
            models_out=self._all(out),
        )

    def _all(self, model_ids: Iterable[str]) -> tuple[LoggedModel, ...]:
        return tuple(
            self._model(model_id) or LoggedModel(model_id, "", {}) for model_id in model_ids
        )

    def _model(self, model_id: str) -> LoggedModel | None:
        from mlflow.exceptions import MlflowException

        if model_id not in self._models:
            try:
                result = self._client.get_logged_model(model_id)
                self._models[model_id] = LoggedModel(
                    id=model_id,
                    name=result.name,
                    tags=dict(result.tags),
                    location=result.artifact_location,
                    status=str(result.status),
                    type=result.model_type or "",
                    run_id=result.source_run_id or "",
                )
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                self._models[model_id] = None
        return self._models[model_id]


def _dataset(item: "DatasetInput") -> Dataset:
    tags = {tag.key: tag.value for tag in item.tags}
    way, _, role = tags.get(CONTEXT, "").partition("/")
    return Dataset(
        name=item.dataset.name,
        uri=_source_uri(item.dataset.source),
        way=way,
        role=role,
        digest=item.dataset.digest,
        sha256=tags.get(SHA256, ""),
    )


def _source_uri(source: str) -> str:
    try:
        return str(json.loads(source)["uri"])
    except (ValueError, KeyError, TypeError):
        return source
