"""Flyte task of Super Experts: profile the experts of a model."""

from pathlib import Path

from pydantic import Field

from data_schemas.artifacts import CheckpointRef, Context, ReportRef
from data_schemas.frozen_model import FrozenModel
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.super_experts import expert_profile
from tasks.lab.recipes.super_experts.readings import INPUTS_FILE, PROFILE_FILE
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, run
from tasks.store.files import canonical_json, write_bytes

# Their text lies outside.
add_stages(
    {
        "check_text": Stage(
            "lab.recipes.super_experts.task", SMALL, "cpu", hours=WAIT, cached=False
        ),
        "profile_experts": Stage(
            "lab.recipes.super_experts.task", GPU_NODE, "trainer", hours=6, retries=2, cached=False
        ),
    }
)


class CalibrationText(FrozenModel):
    """What the experts of a model are profiled on, as recorded in the statement."""

    text: str = Field(description="file; '' = the marketplace")


@shell("check_text")
def check_text(text: str, model: str) -> str:
    """Refuse a text that cannot be read, before the model is copied; return the model.

    Args:
        text: file, or ''.
        model: to profile.
    """
    next(expert_profile.texts(text), "")
    return model


def _profile(
    source: CalibrationText,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    settings: PipelineSettings,
) -> Facts:
    if source.text:
        work.entry.source("text", Path(source.text))
    result = expert_profile.profile(inputs["model"], expert_profile.texts(source.text))
    write_bytes(outputs["report"] / PROFILE_FILE, canonical_json(result))
    protected = expert_profile.protect(settings, result).model_dump(mode="json")
    write_bytes(outputs["report"] / INPUTS_FILE, canonical_json({"settings": protected}))
    return expert_profile.facts(result)


PROFILE = Record("profile_experts", _profile, ReportRef, "report")


@shell("profile_experts")
def profile_experts(
    settings: PipelineSettings, model: CheckpointRef, text: str, context: Context
) -> ReportRef:
    """Find the Super Experts of a model; write settings in which merge and FP8 spare them.

    Args:
        settings: of the pipeline that will train the model.
        model: to profile, with its experts as the pipeline will receive them.
        text: file whose beginning the model reads; '' for documents of the marketplace.
        context: of the run.
    """
    return run(PROFILE, CalibrationText(text=text), {"model": model}, context, [settings])
