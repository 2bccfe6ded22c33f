"""The base model and the curated rows. Part of several workflows."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, RawRef
from data_schemas.settings import PipelineSettings, RetrainSettings
from data_schemas.sources import Part
from tasks.platform.resources import CURATION_TASKS
from tasks.platform.shell import map_over, subworkflow
from tasks.stages.curation import curate, curate_part, ingest
from tasks.stages.foundation import ingest_base


class Prepared(NamedTuple):
    """The inputs of training."""

    base: CheckpointRef
    curated: DatasetRef


@subworkflow
def preparation(settings: PipelineSettings, context: Context) -> Prepared:
    """Import the base model and the raw files, check both, and curate.

    Args:
        settings: base_model, chat and curation.
        context: of the run.
    """
    base = ingest_base(
        path=settings.base_model,
        name="base",
        context=context,
        architecture=settings.architecture,
        chat=settings.chat,
    )
    raw = ingest(settings=settings.curation, context=context)
    curated = curation(settings, raw, base, context)
    return Prepared(base=base, curated=curated)


def curation(
    settings: PipelineSettings | RetrainSettings,
    raw: RawRef,
    base: CheckpointRef,
    context: Context,
    held_out_from: DatasetRef | None = None,
) -> DatasetRef:
    """Wire curation, behind a map task for what it does to single rows if there are several tasks.

    `settings.curation` is evaluated anew for every task: flytekit resolves a promise's attribute
    in place, so one promise cannot be the input of two tasks.

    Args:
        settings: curation.
        raw: list of raw files.
        base: its tokenizer measures lengths.
        context: of the run.
        held_out_from: an earlier curated set, whose held-out suites are reused.
    """
    parts: list[DatasetRef] = []
    if CURATION_TASKS > 1:
        parts = map_over(
            curate_part,
            "part",
            [Part(number=number, of=CURATION_TASKS) for number in range(CURATION_TASKS)],
            settings=settings.curation,
            raw=raw,
            base=base,
            context=context,
            held_out_from=held_out_from,
        )
    return curate(
        settings=settings.curation,
        raw=raw,
        base=base,
        parts=parts,
        context=context,
        held_out_from=held_out_from,
    )
