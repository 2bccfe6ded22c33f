"""Find a model's Super Experts, and write settings in which merge and FP8 spare them.

pyflyte run workflows/lab/recipes/super_experts.py super_experts --model path/to/model
"""

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.super_experts.task import check_text, profile_experts
from tasks.platform.entry_point import entry_point
from tasks.stages.foundation import ingest_base
from tasks.stages.opening import open_store


@entry_point
def super_experts(
    settings: PipelineSettings = presets.CPU_SMOKE,
    model: str = "",
    text: str = "",
    store: str = "runs",
) -> ReportRef:
    """Profile the experts of a model on calibration text.

    Args:
        settings: of the pipeline that will train the model; they are written out with the
            protection of what was found, for `post_training --inputs-file`.
        model: Hugging Face directory, s3:// prefix or models:/NAME@alias; empty = the shipped MoE.
        text: file whose beginning is read, 8,192 tokens; empty = documents of the marketplace.
        store: folder or s3:// prefix where artifacts and lineage are kept.

    Returns:
        profile.json with peaks and three readings; inputs.json with the settings.
    """
    context = open_store(store=store, workflow="super_experts", last="profile_experts")
    base = ingest_base(
        path=check_text(text=text, model=model),
        name="base",
        context=context,
        architecture=settings.architecture,
    )
    return profile_experts(settings=settings, model=base, text=text, context=context)
