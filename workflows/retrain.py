"""Train on new rows and promote the result only if it passes the gate.

    pyflyte run workflows/retrain.py retrain

New files -> curate -> enough of them? -> grade -> does the released model fail some?
-> one phase of RL -> evaluate -> gate. If any answer is no, the run ends with the reason.

"""

from typing import cast

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.intake import Decision, InboxFile, Lesson
from data_schemas.settings import RetrainSettings
from tasks.curation.task import curate, grade
from tasks.evaluation.task import evaluate
from tasks.foundation.task import ingest_retrain_models
from tasks.intake.task import open_store
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import either, subworkflow
from tasks.report.task import retrain_summary
from tasks.retraining.task import (
    Assessed,
    Examined,
    assess_learning_value,
    conclude,
    examine_rows,
    find_start,
    record_skip,
    scan_inbox,
    skip_curation,
    skip_grading,
)
from workflows.parts.reinforcement import reinforcement
from workflows.parts.releasing import releasing


@subworkflow
def examine(
    settings: RetrainSettings,
    files: Decision,
    raw: DatasetRef,
    start: CheckpointRef,
    known: list[DatasetRef],
    held_out: DatasetRef,
    store: StoreRef,
    execution: Execution,
) -> Examined:
    """Curate new files, and count the rows that the released model does not know."""
    curated = curate(
        settings=settings.curation,
        raw=raw,
        base=start,
        store=store,
        execution=execution,
        held_out_from=held_out,
    )
    return examine_rows(settings=settings, files=files, curated=curated, known=known, store=store)


@subworkflow
def study(
    settings: RetrainSettings,
    rows: Decision,
    curated: DatasetRef,
    start: CheckpointRef,
    store: StoreRef,
    execution: Execution,
) -> Assessed:
    """Grade new rows, and decide whether they are worth training on."""
    graded = grade(
        settings=settings.grading, curated=curated, start=start, store=store, execution=execution
    )
    return assess_learning_value(
        settings=settings, rows=rows, curated=curated, graded=graded, store=store
    )


@subworkflow
def promote(
    settings: RetrainSettings,
    lesson: Lesson,
    decision: Decision,
    start: CheckpointRef,
    replaces: str,
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
    released = releasing(
        settings=settings.release,
        evaluation=settings.evaluation,
        candidate=trained.model,
        held_out_evaluation=trained.evaluation,
        parents=[before],
        replaces=replaces,
        store=store,
        execution=execution,
    )
    page = retrain_summary(
        settings=settings,
        curated=lesson.curated,
        reports=[trained.training, released.progression],
        releases=[released.model],
        store=store,
        execution=execution,
    )
    return conclude(
        settings=settings,
        page=page,
        decision=decision,
        candidate=released.model,
        files=files,
        store=store,
        execution=execution,
    )


@entry_point
def retrain(
    settings: RetrainSettings = presets.NIGHTLY,
    inbox: str = "",
    model: str = "",
    store: str = "runs",
) -> str:
    """Train the released model on new rows, and promote the result only through the gate.

    Args:
        settings: inbox, thresholds and stages; only fields that differ need to be given.
        inbox: folder or s3:// prefix; replaces that of the settings.
        model: registered model; replaces release.name of the settings.
        store: where the released model and its lineage are.

    Returns:
        What became of the new files and why, with the HTML report of a trained model.
    """
    run, execution = open_store(store=store, workflow="retrain")
    start = find_start(settings=settings, from_inbox=inbox, model=model, store=run)
    named = ingest_retrain_models(settings=start.settings, store=run, execution=execution)
    news = scan_inbox(settings=named, store=run, execution=execution)
    # In sequence, not nested: flytekit executes both sides of a nested conditional.
    found = either(
        "worth_reading",
        news.is_enough,
        lambda: examine(
            settings=named,
            files=news.decision,
            raw=news.raw,
            start=start.model,
            known=start.known,
            held_out=start.held_out,
            store=run,
            execution=execution,
        ),
        lambda: skip_curation(decision=news.decision),
    )
    assessed = either(
        "worth_grading",
        found.is_enough,
        lambda: study(
            settings=named,
            rows=found.examination.decision,
            # This branch runs only if there is one.
            curated=cast("DatasetRef", found.examination.curated),
            start=start.model,
            store=run,
            execution=execution,
        ),
        lambda: skip_grading(decision=found.examination.decision),
    )
    return either(
        "worth_learning",
        assessed.is_worth,
        lambda: promote(
            settings=named,
            # As above.
            lesson=cast("Lesson", assessed.assessment.lesson),
            decision=assessed.assessment.decision,
            start=start.model,
            replaces=start.release,
            files=news.files,
            store=run,
            execution=execution,
        ),
        lambda: record_skip(
            settings=named,
            decision=assessed.assessment.decision,
            files=news.files,
            store=run,
            execution=execution,
        ),
    )
