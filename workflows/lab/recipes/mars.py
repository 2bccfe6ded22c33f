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
from tasks.stages.curation import grade
from tasks.stages.evaluation import compare, evaluate
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import check_settings, open_store, with_seed
from tasks.stages.pages import summary
from tasks.stages.rl import pin_recipe, rl
from tasks.stages.sft import sft
from workflows.parts.preparation import preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))


class Agents(NamedTuple):
    """Outputs of one seed."""

    model: CheckpointRef
    measured: ReportRef
    page: str


@subworkflow
def train_agents(settings: PipelineSettings, recipe: MarsRecipe, store: str) -> Agents:
    """Fine-tune the three agents, train them together by RL, and measure each of them."""
    checked = check_settings(settings=settings, sources="")
    context = open_store(store=store, workflow="mars")
    with_models = ingest_models(settings=checked, context=context)
    rows = preparation(settings=with_models, context=context)
    tuned = sft(
        settings=with_models.sft,
        parent=Parent.REASONING,
        curated=rows.curated,
        base=rows.base,
        context=context,
    )
    graded = grade(
        settings=with_models.grading, curated=rows.curated, start=tuned.model, context=context
    )
    trained = rl(
        settings=with_models.rl_one,
        recipe=pin_recipe(recipe=recipe),
        name="rl/mars",
        start=tuned.model,
        graded=graded,
        context=context,
    )
    solver = [
        evaluate(
            settings=with_models.evaluation,
            name=name,
            model=model,
            curated=rows.curated,
            context=context,
        )
        for name, model in (("sft/reasoning", tuned.model), ("rl/mars", trained.model))
    ]
    measured = measure_agents(
        settings=with_models.evaluation,
        before=tuned.model,
        after=trained.model,
        curated=rows.curated,
        context=context,
    )
    progression = compare(
        settings=with_models.evaluation, candidate=solver[1], parents=[solver[0]], context=context
    )
    page = summary(
        settings=with_models,
        curated=rows.curated,
        reports=[tuned.report, trained.report, progression],
        releases=[],
        context=context,
    )
    return Agents(model=trained.model, measured=measured, page=page)


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
    context = open_store(store=store, workflow="mars")
    return tabulate_agents(settings=settings.evaluation, parts=measured, context=context)
