"""A paper's recipe at the size of the tiny model.

pyflyte run workflows/recipe.py recipe --name ring_lite
"""

from tasks.intake.task import scaled_recipe
from tasks.platform.entry_point import entry_point
from workflows.post_training import Released, pipeline


@entry_point
def recipe(name: str = "compassmax", store: str = "runs") -> Released:
    """Run the whole pipeline with the switches of a published recipe, on the tiny model.

    tasks/rl/RECIPES.md lists what each paper says and what runs here.

    Args:
        name: compassmax, ring_lite or compass_thinker.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        model: the registered model; it has the alias 'released' if it passed the gate.
        page: the HTML report of this run.
    """
    run = pipeline(settings=scaled_recipe(name=name), store=store, sources="")
    return Released(model=run.model, page=run.page)
