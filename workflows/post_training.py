"""The pipeline: a base model in, an audited reasoning model out.

    pyflyte run workflows/post_training.py post_training

curate -> SFT of two parents -> TIES merge -> grade -> RL one -> RL two -> evaluate -> release

With epochs of general_sft, a general fine-tuning follows RL.
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, ReportRef
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import either, subworkflow
from tasks.stages.chain import link, wire
from tasks.stages.sft import PipelineModel, has_epochs, keep_model
from workflows.parts.chain import (
    EVALUATIONS,
    FINE_TUNING,
    FITTING,
    PHASES,
    PREPARATION,
    SCORING,
    evaluation,
    grading,
    opening,
    releasing,
    report,
    tuning,
)


class RunOutputs(NamedTuple):
    """Outputs of a run."""

    model: CheckpointRef
    page: str


GENERAL_TUNING = (
    tuning("sft/general", Parent.GENERAL, "fitted.general_sft", "start"),
    evaluation("sft/general", "sft/general.model"),
)


@subworkflow
def general_tuning(
    settings: PipelineSettings, start: CheckpointRef, curated: DatasetRef, context: Context
) -> PipelineModel:
    """Fine-tune the model after RL on all demonstrations and evaluate it.

    Args:
        settings: general_sft and evaluation.
        start: the model after RL.
        curated: demonstrations and held-out suites.
        context: of the run.
    """
    tuned = wire(GENERAL_TUNING, fitted=settings, start=start, curated=curated, context=context)
    model, training = tuned["sft/general"]
    return PipelineModel(model=model, training=training, evaluation=tuned["evaluation/sft/general"])


def _finishing(
    settings: PipelineSettings,
    model: CheckpointRef,
    training: ReportRef,
    held_out: ReportRef,
    curated: DatasetRef,
    context: Context,
) -> PipelineModel:
    """Wire a general fine-tuning behind the last phase of RL, if the settings have epochs of it."""
    return either(
        "general_sft",
        has_epochs(settings=settings.general_sft),
        lambda: general_tuning(settings=settings, start=model, curated=curated, context=context),
        lambda: keep_model(model=model, training=training, evaluation=held_out),
    )


CHAIN = (
    *opening("post_training", "sources", "base_model", "release", last="summary"),
    *PREPARATION,
    *FITTING,
    *FINE_TUNING,
    grading(),
    *PHASES,
    link(
        "last",
        _finishing,
        "curated",
        "context",
        settings="fitted",
        model="rl/two.model",
        training="rl/two.report",
        held_out="evaluation/rl/two",
    ),
    *SCORING,
    *releasing("last.model", "last.evaluation", EVALUATIONS),
    report(
        "fitted",
        [
            *("sft/reasoning.report", "sft/commerce.report", "rl/one.report", "rl/two.report"),
            *("last.training", "progression"),
        ],
        ["released"],
    ),
)


@entry_point
def post_training(
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
    base_model: str = "",
    release: str = "",
) -> RunOutputs:
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
    run = wire(
        CHAIN,
        settings=settings,
        store=store,
        sources=sources,
        base_model=base_model,
        release=release,
    )
    return RunOutputs(model=run["released"], page=run["page"])
