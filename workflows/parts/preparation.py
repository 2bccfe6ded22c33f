"""The base model and the curated rows. Part of several workflows."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.settings import PipelineSettings
from tasks.curation.task import curate, ingest
from tasks.foundation.task import ingest_base
from tasks.platform.shell import subworkflow


class Prepared(NamedTuple):
    """The inputs of training."""

    base: CheckpointRef
    curated: DatasetRef


@subworkflow
def preparation(settings: PipelineSettings, store: StoreRef, execution: Execution) -> Prepared:
    """Import the base model and the raw files, check both, and curate.

    Args:
        settings: base_model and curation.
        store: of the run.
        execution: of the workflow.
    """
    base = ingest_base(path=settings.base_model, name="base", store=store, execution=execution)
    raw = ingest(settings=settings.curation, store=store, execution=execution)
    curated = curate(
        settings=settings.curation, raw=raw, base=base, store=store, execution=execution
    )
    return Prepared(base=base, curated=curated)
