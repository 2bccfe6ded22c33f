"""Upcycle a mixture of experts to Grove MoE; compare it with the model it was upcycled from.

    pyflyte run workflows/lab/recipes/grove_moe.py upcycle --model path/to/model
    pyflyte run workflows/lab/recipes/grove_moe.py grove

Where `post_training` or `seeds` ran on the same store, the models without adjugates are in Flyte's
cache. The number of seeds shapes the graph, so it is read when it is made:

    EACHPROMPT_SEEDS=1 pyflyte run workflows/lab/recipes/grove_moe.py grove
"""

from dataclasses import replace
from typing import Any, NamedTuple

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, DatasetRef, ReportRef
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.lab.recipes.grove_moe.task import upcycle as add_adjugates
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.chain import Chain, link, renamed, wire
from tasks.stages.evaluation import pool
from tasks.stages.foundation import ingest_base
from tasks.stages.opening import open_store, with_seed
from workflows.parts.chain import (
    END,
    FINE_TUNING,
    FITTING,
    PREPARATION,
    comparing,
    ending,
    evaluation,
    opening,
    report,
)

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
UPCYCLING = UpcyclingSettings()


class GroveScores(NamedTuple):
    """Evaluations of both bases and of what is fine-tuned and merged from each, for one seed."""

    curated: DatasetRef
    base_plain: ReportRef
    merged_plain: ReportRef
    base_grove: ReportRef
    merged_grove: ReportRef


NAMES = GroveScores._fields[1:]


def _side(name: str, base: str) -> Chain:
    """Fine-tune and merge a base, and evaluate it and the merge.

    In an execution of its own, because an execution has a stage of a name once.
    """
    own = {one.result: f"{one.result}/{name}" for one in FINE_TUNING}
    own |= {"context": f"context/{name}", "base": base}
    stages = (
        *(replace(one, result=own[one.result]) for one in FINE_TUNING),
        evaluation(f"base/{name}", "base"),
        evaluation(f"merged/{name}", "merged"),
    )
    constants = {"workflow": "grove", "last": END}
    opened = link(own["context"], open_store, "store", constants=constants)
    scores = (f"evaluation/{stage}/{name}.uri" for stage in ("base", "merged"))
    return (opened, *renamed(stages, **own), ending(*scores, context=own["context"]))


UPCYCLED = link("upcycled", add_adjugates, "context", settings="upcycling", model="base")
CHAIN = (
    *opening("grove", "sources"),
    *PREPARATION,
    *FITTING,
    UPCYCLED,
    ending("curated.uri", "upcycled.uri"),
    *_side("plain", "base"),
    *_side("grove", "upcycled"),
)


@subworkflow
def train_twins(
    settings: PipelineSettings, upcycling: UpcyclingSettings, sources: str, store: str
) -> GroveScores:
    """Fine-tune a base and its upcycled twin on the same rows, and evaluate both."""
    trained = wire(CHAIN, settings=settings, upcycling=upcycling, sources=sources, store=store)
    names = [f"evaluation/{name.replace('_', '/')}" for name in NAMES]
    return GroveScores(trained["curated"], *(trained[name] for name in names))


UPCYCLING_ALONE = (
    link("context", open_store, "store", constants={"workflow": "upcycle", "last": END}),
    link("base", ingest_base, "path", "context", constants={"name": "base"}),
    UPCYCLED,
    ending("upcycled.uri"),
)
POOLING = (
    *(
        link(
            name,
            pool,
            "context",
            constants={"name": name.replace("_", "/")},
            settings="settings.evaluation",
            parts=[f"seed/{seed}.{name}" for seed in SEEDS],
        )
        for name in NAMES
    ),
    comparing(NAMES[-1], [*NAMES[:-1]], "settings"),
    *renamed([report("settings", ["progression"])], curated=f"seed/{SEEDS[0]}.curated"),
)
"""The same checkpoints with several seeds, as one comparison and one page."""


@entry_point
def upcycle(
    settings: UpcyclingSettings = UPCYCLING,
    model: str = "",
    store: str = "runs",
) -> CheckpointRef:
    """Add an adjugate expert to every group of experts; the logits stay as they are.

    Copy the folder this prints, and name the copy in the settings of post_training as base_model.
    Only the embedded engines have the layer.

    Args:
        settings: experts of a group, width and scale of an adjugate, seed.
        model: Hugging Face directory, s3:// prefix or models:/NAME@alias of a Qwen3-MoE; empty =
            the shipped one.
        store: folder or s3:// prefix where artifacts and lineage are kept.

    Returns:
        The model, a Hugging Face directory.
    """
    return wire(UPCYCLING_ALONE, upcycling=settings, path=model, store=store)["upcycled"]


@entry_point
def grove(
    settings: PipelineSettings = presets.CPU_SMOKE, store: str = "runs", sources: str = ""
) -> str:
    """Fine-tune a base and its upcycled twin on the same rows, and compare them.

    Args:
        settings: of the preceding stages.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        The HTML report: every model's accuracy, and the gain of Grove MoE with its interval.
    """
    context = open_store(store=store, workflow="grove", last="summary")
    values: dict[str, Any] = {"settings": settings, "context": context}
    for seed in SEEDS:
        values[f"seed/{seed}"] = train_twins(
            settings=with_seed(settings=settings, seed=seed),
            upcycling=UpcyclingSettings(seed=seed),
            sources=sources,
            store=store,
        )
    return wire(POOLING, **values)["page"]
