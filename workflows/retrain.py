"""Train on new rows and promote the result only if it passes the gate.

    pyflyte run workflows/retrain.py retrain

New files -> curate -> enough of them? -> mix with old rows -> grade -> does the released model
fail some? -> SFT if there are demonstrations -> one phase of RL -> evaluate -> gate. If any answer
is no, the run ends with the reason.
"""

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, RawRef
from data_schemas.intake import Assessment, Decision, InboxFile, Lesson, Teaching
from data_schemas.rows import Parent
from data_schemas.settings import RetrainSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import either, subworkflow
from tasks.stages.curation import grade, mix
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_retrain_models
from tasks.stages.opening import open_night
from tasks.stages.pages import night_page, retrain_summary
from tasks.stages.retraining import (
    Assessed,
    Examined,
    assess_learning_value,
    conclude,
    examine_rows,
    keep_start,
    record_skip,
    scan_inbox,
    skip_curation,
    skip_grading,
)
from tasks.stages.sft import sft
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.preparation import curation
from workflows.parts.reinforcement import reinforcement
from workflows.parts.releasing import releasing


@subworkflow
def examine(
    settings: RetrainSettings,
    files: Decision,
    listed: list[InboxFile],
    raw: RawRef,
    start: CheckpointRef,
    known: list[DatasetRef],
    held_out: DatasetRef,
    context: Context,
) -> Examined:
    """Curate new files, and count the rows that the released model does not know."""
    curated = curation(settings, raw, start, context, held_out)
    return examine_rows(
        settings=settings, files=files, listed=listed, curated=curated, known=known, context=context
    )


@subworkflow
def study(
    settings: RetrainSettings,
    rows: Decision,
    curated: DatasetRef,
    held: list[str],
    start: CheckpointRef,
    known: list[DatasetRef],
    demonstrations: Teaching,
    context: Context,
) -> Assessed:
    """Mix new rows with old ones, grade them, and decide whether they are worth training on."""
    mixed = mix(
        settings=settings,
        curated=curated,
        known=known,
        held=held,
        demonstrations=demonstrations,
        context=context,
    )
    graded = grade(settings=settings.grading, curated=mixed, start=start, context=context)
    return assess_learning_value(
        settings=settings,
        rows=rows,
        curated=mixed,
        graded=graded,
        demonstrations=demonstrations,
        context=context,
    )


@subworkflow
def teach(
    settings: RetrainSettings, lesson: Lesson, start: CheckpointRef, context: Context
) -> CheckpointRef:
    """Fine-tune the released model on new and old demonstrations together."""
    tuned = sft(
        settings=settings.sft,
        parent=Parent.COMMERCE,  # the mixture's rows are all of this parent
        curated=lesson.curated,
        base=start,
        context=context,
    )
    return tuned.model


@subworkflow
def teach_and_merge(
    settings: RetrainSettings, lesson: Lesson, start: CheckpointRef, context: Context
) -> CheckpointRef:
    """Fine-tune the released model once per parent, and merge the two by TIES."""
    tuned = fine_tuning(
        settings=settings.sft,
        merging=settings.merge,
        curated=lesson.curated,
        base=start,
        context=context,
    )
    return tuned.merged


@subworkflow
def prepare(
    settings: RetrainSettings,
    assessment: Assessment,
    by_sft: bool,
    by_merge: bool,
    start: CheckpointRef,
    context: Context,
) -> CheckpointRef:
    """Return the start of RL: the released model, fine-tuned if there are demonstrations."""
    # A promise is resolved once, so every use of the lesson is one of its own.
    tuned = either(
        "worth_fine_tuning",
        by_sft,
        lambda: teach(settings=settings, lesson=assessment.lesson, start=start, context=context),
        lambda: keep_start(start=start),
    )
    return either(
        "worth_merging",
        by_merge,
        lambda: teach_and_merge(
            settings=settings, lesson=assessment.lesson, start=tuned, context=context
        ),
        lambda: keep_start(start=tuned),
    )


@subworkflow
def promote(
    settings: RetrainSettings,
    lesson: Lesson,
    decision: Decision,
    start: CheckpointRef,
    taught: CheckpointRef,
    replaces: str,
    files: list[InboxFile],
    context: Context,
) -> str:
    """Train the released model on new rows, and release the result if it passes the gate."""
    before = evaluate(
        settings=settings.evaluation,
        name="released",
        model=start,
        curated=lesson.curated,
        context=context,
    )
    trained = reinforcement(
        settings=lesson.phase,
        evaluation=settings.evaluation,
        name="rl/retrain",
        start=taught,
        graded=lesson.graded,
        curated=lesson.curated,
        context=context,
    )
    released = releasing(
        settings=settings.release,
        evaluation=settings.evaluation,
        candidate=trained.model,
        held_out_evaluation=trained.evaluation,
        parents=[before],
        replaces=replaces,
        context=context,
    )
    page = retrain_summary(
        settings=settings,
        curated=lesson.curated,
        reports=[trained.training, released.progression],
        releases=[released.model],
        context=context,
    )
    return conclude(
        settings=settings,
        page=page,
        decision=decision,
        candidate=released.model,
        files=files,
        context=context,
    )


@subworkflow
def night(
    settings: RetrainSettings,
    start: CheckpointRef,
    release: str,
    known: list[DatasetRef],
    held_out: DatasetRef,
    demonstrations: Teaching,
    context: Context,
) -> str:
    """Decide on new files step by step, and train if they are worth it."""
    with_models = ingest_retrain_models(settings=settings, context=context)
    news = scan_inbox(settings=with_models, context=context)
    # In sequence, not nested: flytekit executes both sides of a nested conditional.
    lesson = either(
        "worth_reading",
        news.is_enough,
        lambda: examine(
            settings=with_models,
            files=news.decision,
            listed=news.files,
            raw=news.raw,
            start=start,
            known=known,
            held_out=held_out,
            context=context,
        ),
        lambda: skip_curation(decision=news.decision),
    )
    assessed = either(
        "worth_grading",
        lesson.is_enough,
        lambda: study(
            settings=with_models,
            rows=lesson.examination.decision,
            curated=lesson.examination.curated,
            held=lesson.examination.held,
            start=start,
            known=known,
            demonstrations=demonstrations,
            context=context,
        ),
        lambda: skip_grading(settings=with_models, decision=lesson.examination.decision),
    )
    taught = prepare(
        settings=with_models,
        assessment=assessed.assessment,
        by_sft=assessed.by_sft,
        by_merge=assessed.by_merge,
        start=start,
        context=context,
    )
    message = either(
        "worth_learning",
        assessed.is_worth,
        lambda: promote(
            settings=with_models,
            lesson=assessed.assessment.lesson,
            decision=assessed.assessment.decision,
            start=start,
            taught=taught,
            replaces=release,
            files=news.files,
            context=context,
        ),
        lambda: record_skip(
            settings=with_models,
            decision=assessed.assessment.decision,
            files=news.files,
            context=context,
        ),
    )
    return night_page(message=message, context=context)


@subworkflow
def retraining(
    settings: RetrainSettings, inbox: str, model: str, demonstrations: Teaching, store: str
) -> str:
    """Look for new files; without one, a second small pod writes the page and nothing else runs."""
    opened = open_night(settings=settings, from_inbox=inbox, model=model, store=store)
    return either(
        "news",
        opened.is_news,
        lambda: night(
            settings=opened.settings,
            start=opened.model,
            release=opened.release,
            known=opened.known,
            held_out=opened.held_out,
            demonstrations=demonstrations,
            context=Context(opened.store, opened.execution),
        ),
        lambda: night_page(message=opened.message, context=Context(opened.store, opened.execution)),
    )


@entry_point
def retrain(
    settings: RetrainSettings = presets.NIGHTLY,
    inbox: str = "",
    model: str = "",
    demonstrations: Teaching = Teaching.SFT,
    store: str = "runs",
) -> str:
    """Train the released model on new rows, and promote the result only through the gate.

    Args:
        settings: inbox, thresholds and stages; only fields that differ need to be given.
        inbox: folder or s3:// prefix; replaces that of the settings.
        model: registered model; replaces release.name of the settings.
        demonstrations: before RL, 'sft' fine-tunes one model on them, 'merge' one per parent and
            merges them, 'off' counts them only.
        store: where the released model and its lineage are.

    Returns:
        What became of the new files and why, with the HTML report of a trained model.
    """
    return retraining(
        settings=settings, inbox=inbox, model=model, demonstrations=demonstrations, store=store
    )
