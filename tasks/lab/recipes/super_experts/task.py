"""Flyte task of Super Experts: profile the experts of a model."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.artifacts import CheckpointRef, Context, ReportRef
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.super_experts import expert_profile
from tasks.lab.recipes.super_experts.formulas import INPUTS_FILE, PROFILE_FILE
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage
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


class CalibrationText(BaseModel):
    """What the experts of a model are profiled on, as recorded in the statement."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    source, code = CalibrationText(text=text), code_digest("profile_experts")
    with stage("profile_experts", source, context, code) as record:
        folder = record.read("model", model)
        if text:
            record.source("text", Path(text))
        result = expert_profile.profile(folder, expert_profile.texts(text))
        with record.output("report") as out:
            write_bytes(out / PROFILE_FILE, canonical_json(result))
            protected = expert_profile.protect(settings, result).model_dump(mode="json")
            write_bytes(out / INPUTS_FILE, canonical_json({"settings": protected}))
        facts = expert_profile.facts(result)
        record.facts(facts)
        deck_of_facts("profile_experts", facts)
        return record.ref("report", ReportRef)
