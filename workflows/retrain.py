"""Train on new rows and promote the result only if it passes the gate.

    pyflyte run workflows/retrain.py retrain

New files -> curate -> enough of them? -> mix with old rows -> grade -> does the released model
fail some? -> SFT if there are demonstrations -> one phase of RL -> evaluate -> gate. If any answer
is no, the run ends with the reason.
"""

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, RawRef
from data_schemas.intake import Assessment, InboxFile, IntakeDecision, Lesson, Teaching
from data_schemas.rows import Parent
from data_schemas.settings import RetrainSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import either, subworkflow
from tasks.stages.chain import link, renamed, wire
from tasks.stages.curation import mix
from tasks.stages.foundation import ingest_retrain_models
from tasks.stages.opening import open_night
from tasks.stages.pages import night_page, retrain_summary
from tasks.stages.retraining import (
    AssessmentOutputs,
    ExaminationOutputs,
    assess_learning_value,
    conclude,
    examine_rows,
    keep_start,
    record_skip,
    scan_inbox,
    skip_curation,
    skip_grading,
)
from workflows.parts.chain import (
    FINE_TUNING,
    curation,
    evaluation,
    grading,
    releasing,
    training,
    tuning,
)

EXAMINATION = (
    *curation(held_out_from="held_out"),
    link(
        "examined",
        examine_rows,
        *("files", "listed", "curated", "known", "context"),
        settings="models",
    ),
)
STUDY = (
    link("mixed", mix, "curated", "known", "held", "demonstrations", "context", settings="models"),
    grading("start", "models", curated="mixed"),
    link(
        "assessed",
        assess_learning_value,
        *("rows", "graded", "demonstrations", "context"),
        settings="models",
        curated="mixed",
    ),
)
# The mixture's rows are all of this parent.
TEACHING = (tuning("sft", Parent.COMMERCE, "fitted.sft", "start", "lesson.curated"),)
MERGING = renamed(FINE_TUNING, base="start", curated="lesson.curated")
PROMOTION = renamed(
    (
        evaluation("released", "start"),
        training("rl/retrain", "lesson.phase", "taught"),
        evaluation("rl/retrain", "rl/retrain.model"),
        *releasing(
            "rl/retrain.model",
            "evaluation/rl/retrain",
            ["evaluation/released"],
            replaces="replaces",
        ),
        link(
            "page",
            retrain_summary,
            "curated",
            "context",
            settings="fitted",
            reports=["rl/retrain.report", "progression"],
            releases=["released"],
        ),
        link(
            "message",
            conclude,
            *("page", "decision", "files", "context"),
            settings="fitted",
            candidate="released",
        ),
    ),
    curated="lesson.curated",
    graded="lesson.graded",
)


@subworkflow
def examine(
    settings: RetrainSettings,
    files: IntakeDecision,
    listed: list[InboxFile],
    raw: RawRef,
    start: CheckpointRef,
    known: list[DatasetRef],
    held_out: DatasetRef,
    context: Context,
) -> ExaminationOutputs:
    """Curate new files, and count the rows that the released model does not know."""
    examined = wire(
        EXAMINATION,
        models=settings,
        files=files,
        listed=listed,
        raw=raw,
        base=start,
        known=known,
        held_out=held_out,
        context=context,
    )
    return examined["examined"]


@subworkflow
def study(
    settings: RetrainSettings,
    rows: IntakeDecision,
    curated: DatasetRef,
    held: list[str],
    start: CheckpointRef,
    known: list[DatasetRef],
    demonstrations: Teaching,
    context: Context,
) -> AssessmentOutputs:
    """Mix new rows with old ones, grade them, and decide whether they are worth training on."""
    values = {"models": settings, "rows": rows, "curated": curated, "held": held, "start": start}
    values |= {"known": known, "demonstrations": demonstrations, "context": context}
    return wire(STUDY, **values)["assessed"]


@subworkflow
def teach(
    settings: RetrainSettings, lesson: Lesson, start: CheckpointRef, context: Context
) -> CheckpointRef:
    """Fine-tune the released model on new and old demonstrations together."""
    tuned = wire(TEACHING, fitted=settings, lesson=lesson, start=start, context=context)
    return tuned["sft"].model


@subworkflow
def teach_and_merge(
    settings: RetrainSettings, lesson: Lesson, start: CheckpointRef, context: Context
) -> CheckpointRef:
    """Fine-tune the released model once per parent, and merge the two by TIES."""
    tuned = wire(MERGING, fitted=settings, lesson=lesson, start=start, context=context)
    return tuned["merged"]


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
    decision: IntakeDecision,
    start: CheckpointRef,
    taught: CheckpointRef,
    replaces: str,
    files: list[InboxFile],
    context: Context,
) -> str:
    """Train the released model on new rows, and release the result if it passes the gate."""
    promoted = wire(
        PROMOTION,
        fitted=settings,
        lesson=lesson,
        decision=decision,
        start=start,
        taught=taught,
        replaces=replaces,
        files=files,
        context=context,
    )
    return promoted["message"]


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
