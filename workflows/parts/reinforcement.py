"""One phase of reinforcement learning: train, then measure. Used twice by post_training.

    pyflyte run workflows/post_training.py post_training

runs it; alone it is useful with an existing start model and graded problems.
"""

from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    ReportRef,
)
from data_schemas.rl_settings import RLSettings
from data_schemas.settings import EvaluationSettings
from tasks.platform.shell import subworkflow
from tasks.stages.evaluation import evaluate
from tasks.stages.rl import rl


class Phase(NamedTuple):
    """Outputs of a phase."""

    model: CheckpointRef
    training: ReportRef
    evaluation: ReportRef


@subworkflow
def reinforcement(
    settings: RLSettings,
    evaluation: EvaluationSettings,
    name: str,
    start: CheckpointRef,
    graded: GradedRef,
    curated: DatasetRef,
    context: Context,
    earlier: ReportRef | None = None,
) -> Phase:
    """Run one RL phase and evaluate the resulting model.

    Args:
        settings: of the phase.
        evaluation: of the held-out suites.
        name: in the checkpoint progression, 'rl/one' or 'rl/two'.
        start: model the phase starts from.
        graded: problems with the pass rates of the start model.
        curated: contains the held-out suites.
        context: of the run.
        earlier: report of the phase before: what it has learned of the prompts.
    """
    trained = rl(
        settings=settings, name=name, start=start, graded=graded, context=context, earlier=earlier
    )
    held_out_evaluation = evaluate(
        settings=evaluation, name=name, model=trained.model, curated=curated, context=context
    )
    return Phase(model=trained.model, training=trained.report, evaluation=held_out_evaluation)
