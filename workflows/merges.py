"""The merges compared: one pair of parents per seed, every method, the same held-out problems.

pyflyte run workflows/merges.py merges

Where `post_training` or `seeds` ran on the same store, the parents are in Flyte's cache. The number
of seeds shapes the graph, so it is read when it is made:

    EACHPROMPT_SEEDS=1 pyflyte run workflows/merges.py merges
"""

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, DatasetRef, ReportRef
from data_schemas.settings import MergeMethod, MergeSettings, PipelineSettings
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.stages.curation import fit_settings
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_models
from tasks.stages.merge import merge
from tasks.stages.opening import check_settings, open_store, with_seed
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.pooling import pooled_page
from workflows.parts.preparation import preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
OTHERS = {
    **{
        method.value: MergeSettings(method=method)
        for method in (
            MergeMethod.TIES_MODEL,
            MergeMethod.TASK_ARITHMETIC,
            MergeMethod.DARE_TIES,
            MergeMethod.DARE_LINEAR,
        )
    },
    **{
        method.value: MergeSettings(method=method, scale=1.0)
        for method in (MergeMethod.LINEAR, MergeMethod.SLERP)
    },
}
"""What TIES of the settings is compared with; a mean of the parents is not scaled."""


def _scores(settings: PipelineSettings, folder: str) -> tuple[DatasetRef, dict[str, ReportRef]]:
    """Wire the parents of a seed, their merges and an evaluation of each; TIES is the last.

    Every merge has an execution of its own, because an execution has a stage of a name once.
    """
    store, execution = open_store(store=folder, workflow="merges")
    named = ingest_models(settings=settings, store=store, execution=execution)
    rows = preparation(settings=named, store=store, execution=execution)
    fitted = fit_settings(settings=named, curated=rows.curated, store=store)
    tuned = fine_tuning(
        settings=fitted.sft,
        merging=fitted.merge,
        curated=rows.curated,
        base=rows.base,
        store=store,
        execution=execution,
    )
    models: dict[str, CheckpointRef] = {
        "base": rows.base,
        "sft/reasoning": tuned.reasoning,
        "sft/commerce": tuned.commerce,
    }
    for name, merging in OTHERS.items():
        same, own = open_store(store=folder, workflow="merges")
        models[f"merged/{name}"] = merge(
            settings=merging,
            base=rows.base,
            reasoning=tuned.reasoning,
            commerce=tuned.commerce,
            store=same,
            execution=own,
        )
    models["merged/ties"] = tuned.merged
    reports = {
        name: evaluate(
            settings=fitted.evaluation,
            name=name,
            model=model,
            curated=rows.curated,
            store=store,
            execution=execution,
        )
        for name, model in models.items()
    }
    return rows.curated, reports


@entry_point
def merges(
    settings: PipelineSettings = presets.CPU_SMOKE, store: str = "runs", sources: str = ""
) -> str:
    """Merge the same parents with every method and compare TIES with each of the others.

    Args:
        settings: of the preceding stages; `merge` is TIES, the others are in OTHERS.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        The HTML report: every model's accuracy, and the gain of TIES over it with its interval.
    """
    run, execution = open_store(store=store, workflow="merges")
    curated: list[DatasetRef] = []
    by_seed: list[dict[str, ReportRef]] = []
    for seed in SEEDS:
        seeded = with_seed(settings=settings, seed=seed)
        checked = check_settings(settings=seeded, sources=sources)
        rows, reports = _scores(checked, store)
        curated.append(rows)
        by_seed.append(reports)
    return pooled_page(settings, curated[0], by_seed, run, execution)
