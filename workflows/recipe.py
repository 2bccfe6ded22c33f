"""A paper's recipe at the size of the tiny model.

pyflyte run workflows/recipe.py recipe --name ring_lite
"""

from data_schemas import presets
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import either, subworkflow
from tasks.stages.chain import leading_to, link, wire
from tasks.stages.opening import needs_judge, open_store, scaled_recipe
from workflows.parts.chain import END, ending
from workflows.parts.judging import COLLECTION, judging
from workflows.post_training import CHAIN, RunOutputs

JUDGE = leading_to(
    (
        link("context", open_store, "store", constants={"workflow": "recipe", "last": END}),
        *COLLECTION,
        *judging(),
        ending("judge.report.uri"),
    ),
    "judge",
    "ended/context",
)


@subworkflow
def with_trained_judge(name: str, store: str) -> PipelineSettings:
    """Train a judge on the generated comparisons and name it in the recipe."""
    values = {"settings": presets.JUDGE, "files": [], "base_model": "", "store": store}
    trained = wire(JUDGE, **values)["judge"]
    return scaled_recipe(name=name, judge=trained.model)


@entry_point
def recipe(name: str = "compassmax", store: str = "runs") -> RunOutputs:
    """Run the whole pipeline with the switches of a published recipe, on the tiny model.

    tasks/rl/RECIPES.md lists what each paper says and what runs here.

    Args:
        name: compassmax, ring_lite or compass_thinker.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        model: the registered model; it has the alias 'released' if it passed the gate.
        page: the HTML report of this run.
    """
    settings = either(
        "judged",
        needs_judge(name=name),
        lambda: with_trained_judge(name=name, store=store),
        lambda: scaled_recipe(name=name),
    )
    run = wire(CHAIN, settings=settings, store=store, sources="", base_model="", release="")
    return RunOutputs(model=run["released"], page=run["page"])
