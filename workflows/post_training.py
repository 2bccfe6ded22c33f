"""The pipeline: a base model in, an audited reasoning model out.

    pyflyte run workflows/post_training.py post_training

curate -> SFT of two parents -> TIES merge -> grade -> RL one -> RL two -> evaluate -> release

With epochs of general_sft, a general fine-tuning follows RL.
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, DatasetRef, ReportRef
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.curation import fit_settings, grade
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import check_settings, open_store
from tasks.stages.pages import summary
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.general_tuning import finishing
from workflows.parts.preparation import preparation
from workflows.parts.reinforcement import reinforcement
from workflows.parts.releasing import releasing
from workflows.parts.scoring import scoring


class Pipeline(NamedTuple):
    """All artifacts of a run."""

    model: CheckpointRef
    curated: DatasetRef
    evaluations: list[ReportRef]
    page: str


class Released(NamedTuple):
    """Outputs of a run."""

    model: CheckpointRef
    page: str


@subworkflow
def pipeline(
    settings: PipelineSettings, store: str, sources: str, base_model: str = "", release: str = ""
) -> Pipeline:
    """Curate, fine-tune, merge, reinforce in two phases, evaluate, release."""
    checked = check_settings(
        settings=settings, sources=sources, base_model=base_model, release=release
    )
    context = open_store(store=store, workflow="post_training", last="summary")
    with_models = ingest_models(settings=checked, context=context)
    rows = preparation(settings=with_models, context=context)
    fitted = fit_settings(settings=with_models, curated=rows.curated, store=context.store)
    tuned = fine_tuning(
        settings=fitted.sft,
        merging=fitted.merge,
        curated=rows.curated,
        base=rows.base,
        context=context,
    )
    graded = grade(
        settings=fitted.grading, curated=rows.curated, start=tuned.merged, context=context
    )
    one = reinforcement(
        settings=fitted.rl_one,
        evaluation=fitted.evaluation,
        name="rl/one",
        start=tuned.merged,
        graded=graded,
        curated=rows.curated,
        context=context,
    )
    two = reinforcement(
        settings=fitted.rl_two,
        evaluation=fitted.evaluation,
        name="rl/two",
        start=one.model,
        graded=graded,
        curated=rows.curated,
        context=context,
        earlier=one.training,
    )

    last = finishing(fitted, two, rows.curated, context)
    scores = scoring(
        settings=fitted.evaluation,
        base=rows.base,
        reasoning=tuned.reasoning,
        commerce=tuned.commerce,
        merged=tuned.merged,
        curated=rows.curated,
        context=context,
    )
    before = [scores.base, scores.reasoning, scores.commerce, scores.merged, one.evaluation]
    evaluations = [*before, two.evaluation]
    released = releasing(
        settings=fitted.release,
        evaluation=fitted.evaluation,
        candidate=last.model,
        held_out_evaluation=last.evaluation,
        parents=evaluations,
        context=context,
    )
    parents = [tuned.reasoning_training, tuned.commerce_training]
    training = [*parents, one.training, two.training, last.training]
    page = summary(
        settings=fitted,
        curated=rows.curated,
        reports=[*training, released.progression],
        releases=[released.model],
        context=context,
    )
    return Pipeline(model=released.model, curated=rows.curated, evaluations=evaluations, page=page)


@entry_point
def post_training(
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
    base_model: str = "",
    release: str = "",
) -> Released:
    """Turn a base model into a released reasoning model, with lineage from raw rows on.

    Args:
        settings: only the groups and fields that differ from the defaults need to be given.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.
        base_model: Hugging Face directory, in place of that of the settings.
        release: name of the registered model, in place of that of the settings.

    Returns:
        model: the registered model; it has the alias 'released' if it passed the gate.
        page: the HTML report of this run.
    """
    run = pipeline(
        settings=settings, store=store, sources=sources, base_model=base_model, release=release
    )
    return Released(model=run.model, page=run.page)
