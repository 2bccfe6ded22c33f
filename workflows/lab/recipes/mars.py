"""MarsRL: the tiny model learns to solve, to verify and to correct.

    pyflyte run workflows/lab/recipes/mars.py mars

The number of seeds shapes the graph, so it is read when it is made: EACHPROMPT_SEEDS=1.
"""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, ReportRef
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.mars.presets import MARS, MARS_RECIPE
from tasks.lab.recipes.mars.settings import MarsRecipe
from tasks.lab.recipes.mars.task import measure_agents, tabulate_agents
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.chain import link, wire
from tasks.stages.opening import open_store, with_seed
from tasks.stages.rl import pin_recipe
from workflows.parts.chain import (
    PREPARATION,
    comparing,
    ending,
    evaluation,
    grading,
    opening,
    report,
    training,
    tuning,
)

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))


CHAIN = (
    *opening("mars"),
    *PREPARATION,
    tuning("sft/reasoning", Parent.REASONING, "models.sft", "base"),
    grading("sft/reasoning.model", "models"),
    link("pinned", pin_recipe, "recipe"),
    training("rl/mars", "models.rl_one", "sft/reasoning.model", recipe="pinned"),
    evaluation("sft/reasoning", "sft/reasoning.model", "models"),
    evaluation("rl/mars", "rl/mars.model", "models"),
    link(
        "measured",
        measure_agents,
        "curated",
        "context",
        settings="models.evaluation",
        before="sft/reasoning.model",
        after="rl/mars.model",
    ),
    comparing("evaluation/rl/mars", ["evaluation/sft/reasoning"], "models"),
    report("models", ["sft/reasoning.report", "rl/mars.report", "progression"]),
    ending("measured.uri", "page"),
)


class Agents(NamedTuple):
    """Outputs of one seed."""

    model: CheckpointRef
    measured: ReportRef
    page: str


@subworkflow
def train_agents(settings: PipelineSettings, recipe: MarsRecipe, store: str) -> Agents:
    """Fine-tune the three agents, train them together by RL, and measure each of them."""
    trained = wire(CHAIN, settings=settings, recipe=recipe, store=store)
    return Agents(
        model=trained["rl/mars"].model, measured=trained["measured"], page=trained["page"]
    )


@entry_point
def mars(
    settings: PipelineSettings = MARS,
    recipe: MarsRecipe = MARS_RECIPE,
    store: str = "runs",
) -> ReportRef:
    """Train solver, verifier and corrector in one policy, and measure what RL changes.

    Args:
        settings: of curation, sft, grading, rl_one and evaluation; their seeds are replaced.
        recipe: which responses become inputs of the next agent, and when.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        agents.md and agents.json: separation, harm and system minus solver, over all seeds.
    """
    measured = [
        train_agents(
            settings=with_seed(settings=settings, seed=seed), recipe=recipe, store=store
        ).measured
        for seed in SEEDS
    ]
    context = open_store(store=store, workflow="mars", last="tabulate_agents")
    return tabulate_agents(settings=settings.evaluation, parts=measured, context=context)
