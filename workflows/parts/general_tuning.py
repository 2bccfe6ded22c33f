"""General fine-tuning of the model after RL, then its evaluation. Part of post_training."""

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
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
    store: StoreRef,
    execution: Execution,
) -> Finished:
    """Fine-tune the model after RL on all demonstrations and evaluate it.

    Args:
        settings: of the fine-tuning.
        evaluation: of the held-out suites.
        start: the model after RL.
        curated: demonstrations and held-out suites.
        store: of the run.
        execution: of the workflow.
    """
    tuned = sft(
        settings=settings,
        parent=Parent.GENERAL,
        curated=curated,
        base=start,
        store=store,
        execution=execution,
    )
    held_out_evaluation = evaluate(
        settings=evaluation,
        name="sft/general",
        model=tuned.model,
        curated=curated,
        store=store,
        execution=execution,
    )
    return Finished(model=tuned.model, training=tuned.report, evaluation=held_out_evaluation)


def finishing(
    settings: PipelineSettings,
    last: Phase,
    curated: DatasetRef,
    store: StoreRef,
    execution: Execution,
) -> Finished:
    """Wire a general fine-tuning behind the last phase of RL, if the settings have epochs of it.

    Args:
        settings: general_sft and evaluation.
        last: phase of RL.
        curated: demonstrations and held-out suites.
        store: of the run.
        execution: of the workflow.
    """
    return either(
        "general_sft",
        has_epochs(settings=settings.general_sft),
        lambda: general_tuning(
            settings=settings.general_sft,
            evaluation=settings.evaluation,
            start=last.model,
            curated=curated,
            store=store,
            execution=execution,
        ),
        lambda: keep_model(model=last.model, training=last.training, evaluation=last.evaluation),
    )
