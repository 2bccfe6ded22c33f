"""Flyte task of Grove MoE: upcycle a mixture of experts."""

from data_schemas.artifacts import CheckpointRef, Context
from tasks.lab.recipes.grove_moe import upcycling
from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.resources import WEIGHTS, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage

add_stages({"upcycle": Stage("lab.recipes.grove_moe.task", WEIGHTS, "cpu", hours=6, retries=2)})


@shell("upcycle")
def upcycle(settings: UpcyclingSettings, model: CheckpointRef, context: Context) -> CheckpointRef:
    """Add adjugate experts to a mixture of experts; its logits stay as they are.

    Args:
        settings: their number, width and scale.
        model: a Qwen3-MoE.
        context: of the run.
    """
    with stage("upcycle", settings, context, code_digest("upcycle")) as record:
        folder = record.read("model", model)
        with record.output("model") as out:
            facts = upcycling.upcycle(settings, folder, out)
        record.facts(facts)
        deck_of_facts("upcycle", facts)
        return record.ref("model", CheckpointRef)
