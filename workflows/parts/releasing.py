"""A model against all before it, then the gate. Part of several workflows."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, Execution, ReportRef, StoreRef
from data_schemas.settings import EvaluationSettings, ReleaseSettings
from tasks.evaluation.task import compare
from tasks.platform.shell import subworkflow
from tasks.release.task import release


class Judged(NamedTuple):
    """The registered model and what it was judged by."""

    model: CheckpointRef
    progression: ReportRef


@subworkflow
def releasing(
    settings: ReleaseSettings,
    evaluation: EvaluationSettings,
    candidate: CheckpointRef,
    held_out_evaluation: ReportRef,
    parents: list[ReportRef],
    store: StoreRef,
    execution: Execution,
) -> Judged:
    """Compare a model with those it was made from, let the gate decide, and register it.

    Args:
        settings: of the gate.
        evaluation: of the bootstrap.
        candidate: the model.
        held_out_evaluation: its evaluation.
        parents: evaluations of the others, in the order they were made.
        store: of the run.
        execution: of the workflow.
    """
    progression = compare(
        settings=evaluation,
        candidate=held_out_evaluation,
        parents=parents,
        store=store,
        execution=execution,
    )
    model = release(
        settings=settings,
        candidate=candidate,
        progression=progression,
        store=store,
        execution=execution,
    )
    return Judged(model=model, progression=progression)
