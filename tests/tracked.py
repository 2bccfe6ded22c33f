"""All that a tracking store holds about the project, without the ids that MLflow draws."""

from collections.abc import Iterable
from typing import Any

from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.registry import MODEL_TAG

_DRAWN = {"mlflow.loggedModels", "mlflow.modelVersions", "mlflow.artifactLocation", MODEL_TAG}
"""Tags that MLflow writes and that hold ids."""


def content(tracking_uri: str) -> dict[str, Any]:
    """Runs with curves and links, models, versions and aliases; equal for equal stores."""
    client = connect(tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt")
    runs = client.search_runs([experiment.experiment_id])
    names = {run.info.run_id: run.data.tags["eachprompt.key"] for run in runs}
    models = {
        model.model_id: (model.name, model.model_type, _tags(model.tags))
        for model in client.search_logged_models([experiment.experiment_id])
    }
    return {
        "runs": sorted((_run(client, run.info.run_id, models, names) for run in runs), key=str),
        "models": sorted(models.values(), key=str),
        "versions": sorted(
            (version.name, str(version.version), _tags(version.tags), version.description or "")
            for version in client.search_model_versions("")
        ),
        "aliases": {
            model.name: {alias: str(number) for alias, number in model.aliases.items()}
            for model in client.search_registered_models()
        },
    }


def _run(client, run_id: str, models: dict[str, Any], names: dict[str, str]) -> Any:
    run = client.get_run(run_id)
    inputs, outputs = run.inputs, run.outputs
    datasets = [
        (one.dataset.name, one.dataset.digest, one.dataset.source, _pairs(one.tags))
        for one in inputs.dataset_inputs
    ]
    return {
        "name": run.info.run_name,
        "status": run.info.status,
        "times": (run.info.start_time, run.info.end_time),
        "tags": [
            (key, names.get(value, value) if key == "mlflow.parentRunId" else value)
            for key, value in _tags(run.data.tags)
        ],
        "params": sorted(run.data.params.items()),
        "metrics": sorted(
            (name, point.step, point.value, point.timestamp)
            for name in run.data.metrics
            for point in client.get_metric_history(run_id, name)
        ),
        "datasets": sorted(datasets),
        "reads": sorted(str(models[one.model_id]) for one in inputs.model_inputs),
        "makes": sorted(str(models[one.model_id]) for one in outputs.model_outputs),
    }


def _tags(tags: dict[str, str]) -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in tags.items() if key not in _DRAWN)


def _pairs(tags: Iterable[Any]) -> list[tuple[str, str]]:
    return sorted((tag.key, tag.value) for tag in tags)
