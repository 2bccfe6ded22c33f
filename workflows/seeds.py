"""The pipeline three times, with three seeds, and the checkpoint progression over all of them.

pyflyte run workflows/seeds.py seeds
"""

from data_schemas import presets
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.opening import open_store, with_seed
from workflows.parts.pooling import pooled_page
from workflows.post_training import pipeline

CHECKPOINTS = ("base", "sft/reasoning", "sft/commerce", "merged", "rl/one", "rl/two")


@subworkflow
def three_seeds(settings: PipelineSettings, store: str, sources: str) -> str:
    """Run the pipeline with the seeds 0, 1 and 2; return the report of all three together."""
    runs = [
        pipeline(settings=with_seed(settings=settings, seed=seed), store=store, sources=sources)
        for seed in (0, 1, 2)
    ]
    run, execution = open_store(store=store, workflow="seeds")
    by_seed = [
        {name: one.evaluations[place] for place, name in enumerate(CHECKPOINTS)} for one in runs
    ]
    return pooled_page(settings, runs[0].curated, by_seed, run, execution)


@entry_point
def seeds(
    settings: PipelineSettings = presets.CPU_SMOKE, store: str = "runs", sources: str = ""
) -> str:
    """Run the whole pipeline with the seeds 0, 1 and 2 and pool their results.

    Every seed draws its own sample world, its own held-out problems and its own training.

    Args:
        settings: of all three runs; their seeds are replaced.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        The HTML report of all three together.
    """
    return three_seeds(settings=settings, store=store, sources=sources)
