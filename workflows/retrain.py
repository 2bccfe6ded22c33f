"""Train on new rows and promote the result only if it passes the gate.

    pyflyte run workflows/retrain.py retrain

New files -> checked rows -> enough of them? -> curate, grade -> does the released model fail some?
-> one phase of RL -> evaluate -> gate. If either answer is no, the run ends with the reason.

"""

from typing import cast

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.intake import InboxFile, Lesson
from data_schemas.settings import RetrainSettings
from tasks.curation.task import curate, grade
from tasks.evaluation.task import evaluate
from tasks.intake.task import open_store
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import either, subworkflow
from tasks.report.task import retrain_summary
from tasks.retraining.task import (
    Assessed,
    assess_learning_value,
    conclude,
    find_start,
    record_skip,
    scan_inbox,
    skip_grading,
)
from workflows.parts.reinforcement import reinforcement
from workflows.parts.releasing import releasing


@subworkflow
def promote(
    settings: RetrainSettings,
    lesson: Lesson,
    start: CheckpointRef,
    files: list[InboxFile],
    store: StoreRef,
    execution: Execution,
) -> str:
    """Train the released model on new rows, and release the result if it passes the gate."""
    before = evaluate(
        settings=settings.evaluation,
        name="released",
        model=start,
        curated=lesson.curated,
        store=store,
        execution=execution,
    )
    trained = reinforcement(
        settings=lesson.phase,
        evaluation=settings.evaluation,
        name="rl/retrain",
        start=start,
        graded=lesson.graded,
        curated=lesson.curated,
        store=store,
        execution=execution,
    )
    judged = releasing(
        settings=settings.release,
        evaluation=settings.evaluation,
        candidate=trained.model,
        held_out_evaluation=trained.evaluation,
        parents=[before],
        store=store,
        execution=execution,
    )
    page = retrain_summary(
        settings=settings,
        curated=lesson.curated,
        reports=[trained.training, judged.progression],
        releases=[judged.model],
        store=store,
        execution=execution,
    )
    return conclude(settings=settings, page=page, files=files, store=store)


@subworkflow
def study(
    settings: RetrainSettings,
    raw: DatasetRef,
    start: CheckpointRef,
    held_out: DatasetRef,
    store: StoreRef,
    execution: Execution,
) -> Assessed:
    """Curate and grade new rows, and decide whether they are worth training on."""
    curated = curate(
        settings=settings.curation,
        raw=raw,
        base=start,
        store=store,
        execution=execution,
        held_out_from=held_out,
    )
    graded = grade(
        settings=settings.grading, curated=curated, start=start, store=store, execution=execution
    )
    return assess_learning_value(settings=settings, curated=curated, graded=graded, store=store)


@entry_point
def retrain(settings: RetrainSettings = presets.NIGHTLY, store: str = "runs") -> str:
    """Train the released model on new rows, and promote the result only through the gate.

    Args:
        settings: inbox, thresholds and stages; only fields that differ need to be given.
        store: where the released model and its lineage are.

    Returns:
        The HTML report, or why nothing was trained.
    """
    run, execution = open_store(store=store, workflow="retrain")
    start = find_start(settings=settings, store=run)
    news = scan_inbox(settings=settings, known=start.known, store=run, execution=execution)
    # In sequence, not nested: flytekit executes both sides of a nested conditional.
    found = either(
        "worth_grading",
        news.is_enough,
        lambda: study(
            settings=settings,
            raw=news.raw,
            start=start.model,
            held_out=start.held_out,
            store=run,
            execution=execution,
        ),
        lambda: skip_grading(decision=news.decision),
    )
    return either(
        "worth_learning",
        found.is_worth,
        lambda: promote(
            settings=settings,
            # This branch runs only if there is one.
            lesson=cast("Lesson", found.assessment.lesson),
            start=start.model,
            files=news.files,
            store=run,
            execution=execution,
        ),
        lambda: record_skip(
            settings=settings, decision=found.assessment.decision, files=news.files, store=run
        ),
    )
