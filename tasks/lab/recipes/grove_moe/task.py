"""Flyte task of Grove MoE: upcycle a mixture of experts."""

from data_schemas.artifacts import CheckpointRef, Context
from tasks.lab.recipes.grove_moe import upcycling
from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.platform.resources import WEIGHTS, Stage, add_stages
from tasks.platform.shell import shell
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, run

add_stages({"upcycle": Stage("lab.recipes.grove_moe.task", WEIGHTS, "cpu", hours=6, retries=2)})


def _upcycle(settings: UpcyclingSettings, inputs: Inputs, outputs: Outputs, _: Work) -> Facts:
    return upcycling.upcycle(settings, inputs["model"], outputs["model"])


UPCYCLE = Record("upcycle", _upcycle, CheckpointRef, "model")


@shell("upcycle")
def upcycle(settings: UpcyclingSettings, model: CheckpointRef, context: Context) -> CheckpointRef:
    """Add adjugate experts to a mixture of experts; its logits stay as they are.

    Args:
        settings: their number, width and scale.
        model: a Qwen3-MoE.
        context: of the run.
    """
    return run(UPCYCLE, settings, {"model": model}, context)
