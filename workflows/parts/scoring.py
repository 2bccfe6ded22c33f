"""Evaluation of the models before RL on the held-out suites. Part of post_training."""

from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.settings import EvaluationSettings
from tasks.platform.shell import subworkflow
from tasks.stages.evaluation import evaluate


class Scores(NamedTuple):
    """One evaluation per model, in the order they were made."""

    base: ReportRef
    reasoning: ReportRef
    commerce: ReportRef
    merged: ReportRef


@subworkflow
def scoring(
    settings: EvaluationSettings,
    base: CheckpointRef,
    reasoning: CheckpointRef,
    commerce: CheckpointRef,
    merged: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> Scores:
    """Evaluate the base, both fine-tuned parents and the merged model.

    Args:
        settings: of the held-out suites.
        base: before any training.
        reasoning: the long-CoT parent.
        commerce: the e-commerce parent.
        merged: start of reinforcement.
        curated: contains the held-out suites.
        context: of the run.
    """
    return Scores(
        base=evaluate(settings=settings, name="base", model=base, curated=curated, context=context),
        reasoning=evaluate(
            settings=settings,
            name="sft/reasoning",
            model=reasoning,
            curated=curated,
            context=context,
        ),
        commerce=evaluate(
            settings=settings, name="sft/commerce", model=commerce, curated=curated, context=context
        ),
        merged=evaluate(
            settings=settings, name="merged", model=merged, curated=curated, context=context
        ),
    )
