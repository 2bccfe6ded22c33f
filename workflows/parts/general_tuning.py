"""General fine-tuning of the model after RL, then its evaluation. Part of post_training."""

from data_schemas.artifacts import CheckpointRef, Context, DatasetRef
from data_schemas.rows import Parent
from data_schemas.settings import EvaluationSettings, PipelineSettings, SFTSettings
from tasks.platform.shell import either, subworkflow
from tasks.stages.evaluation import evaluate
from tasks.stages.sft import Finished, has_epochs, keep_model, sft
from workflows.parts.reinforcement import Phase


@subworkflow
def general_tuning(
    settings: SFTSettings,
    evaluation: EvaluationSettings,
    start: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> Finished:
    """Fine-tune the model after RL on all demonstrations and evaluate it.

    Args:
        settings: of the fine-tuning.
        evaluation: of the held-out suites.
        start: the model after RL.
        curated: demonstrations and held-out suites.
        context: of the run.
    """
    tuned = sft(
        settings=settings, parent=Parent.GENERAL, curated=curated, base=start, context=context
    )
    held_out_evaluation = evaluate(
        settings=evaluation, name="sft/general", model=tuned.model, curated=curated, context=context
    )
    return Finished(model=tuned.model, training=tuned.report, evaluation=held_out_evaluation)


def finishing(
    settings: PipelineSettings, last: Phase, curated: DatasetRef, context: Context
) -> Finished:
    """Wire a general fine-tuning behind the last phase of RL, if the settings have epochs of it.

    Args:
        settings: general_sft and evaluation.
        last: phase of RL.
        curated: demonstrations and held-out suites.
        context: of the run.
    """
    return either(
        "general_sft",
        has_epochs(settings=settings.general_sft),
        lambda: general_tuning(
            settings=settings.general_sft,
            evaluation=settings.evaluation,
            start=last.model,
            curated=curated,
            context=context,
        ),
        lambda: keep_model(model=last.model, training=last.training, evaluation=last.evaluation),
    )
