"""Comparison of a model with its predecessors, then the release gate. Part of several workflows."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, Context, ReportRef
from data_schemas.settings import EvaluationSettings, ReleaseSettings
from tasks.platform.shell import subworkflow
from tasks.stages.evaluation import compare
from tasks.stages.release import release


class Judged(NamedTuple):
    """The registered model, its comparison and the gate's decision."""

    model: CheckpointRef
    progression: ReportRef


@subworkflow
def releasing(
    settings: ReleaseSettings,
    evaluation: EvaluationSettings,
    candidate: CheckpointRef,
    held_out_evaluation: ReportRef,
    parents: list[ReportRef],
    context: Context,
    replaces: str = "",
) -> Judged:
    """Compare a model with its predecessors, apply the gate, and register it.

    Args:
        settings: of the gate.
        evaluation: settings of the bootstrap.
        candidate: the model.
        held_out_evaluation: its evaluation.
        parents: evaluations of the predecessors, in the order they were trained.
        context: of the run.
        replaces: statement of the version that has to be the released one; '' = any or none.
    """
    progression = compare(
        settings=evaluation, candidate=held_out_evaluation, parents=parents, context=context
    )
    model = release(
        settings=settings,
        candidate=candidate,
        progression=progression,
        replaces=replaces,
        context=context,
    )
    return Judged(model=model, progression=progression)
