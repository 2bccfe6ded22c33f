"""Two parents from one base, and their merge. Part of post_training."""

from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.rows import Parent
from data_schemas.settings import MergeSettings, SFTSettings
from tasks.platform.shell import subworkflow
from tasks.stages.foundation import ingest_parents
from tasks.stages.merge import merge
from tasks.stages.sft import sft


class FineTuning(NamedTuple):
    """The merged model and its parents."""

    merged: CheckpointRef
    reasoning: CheckpointRef
    commerce: CheckpointRef
    reasoning_training: ReportRef
    commerce_training: ReportRef


@subworkflow
def fine_tuning(
    settings: SFTSettings,
    merging: MergeSettings,
    curated: DatasetRef,
    base: CheckpointRef,
    context: Context,
) -> FineTuning:
    """Fine-tune the base for reasoning and for commerce, and merge the two.

    Args:
        settings: of both fine-tunings.
        merging: of the merge.
        curated: demonstrations of both parents.
        base: common ancestor.
        context: of the run.
    """
    starts = ingest_parents(settings=settings, base=base, context=context)
    reasoning = sft(
        settings=settings,
        parent=Parent.REASONING,
        curated=curated,
        base=starts.reasoning,
        context=context,
    )
    commerce = sft(
        settings=settings,
        parent=Parent.COMMERCE,
        curated=curated,
        base=starts.commerce,
        context=context,
    )
    merged = merge(
        settings=merging,
        base=base,
        reasoning=reasoning.model,
        commerce=commerce.model,
        context=context,
    )
    return FineTuning(
        merged=merged,
        reasoning=reasoning.model,
        commerce=commerce.model,
        reasoning_training=reasoning.report,
        commerce_training=commerce.report,
    )
