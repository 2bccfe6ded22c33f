"""Upcycle a mixture of experts to Grove MoE; compare it with the model it was upcycled from.

    pyflyte run workflows/lab/recipes/grove_moe.py upcycle --model path/to/model
    pyflyte run workflows/lab/recipes/grove_moe.py grove

Where `post_training` or `seeds` ran on the same store, the models without adjugates are in Flyte's
cache. The number of seeds shapes the graph, so it is read when it is made:

    EACHPROMPT_SEEDS=1 pyflyte run workflows/lab/recipes/grove_moe.py grove
"""

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, DatasetRef, ReportRef
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.lab.recipes.grove_moe.task import upcycle as add_adjugates
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.stages.curation import fit_settings
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_base, ingest_models
from tasks.stages.opening import check_settings, open_store, with_seed
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.pooling import pooled_page
from workflows.parts.preparation import preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
UPCYCLING = UpcyclingSettings()


def _scores(
    settings: PipelineSettings, seed: int, folder: str
) -> tuple[DatasetRef, dict[str, ReportRef]]:
    """Wire both fine-tunings of a seed and an evaluation of each merge; Grove MoE is the last.

    Each has an execution of its own, because an execution has a stage of a name once.
    """
    context = open_store(store=folder, workflow="grove")
    with_models = ingest_models(settings=settings, context=context)
    rows = preparation(settings=with_models, context=context)
    fitted = fit_settings(settings=with_models, curated=rows.curated, store=context.store)
    upcycled = add_adjugates(
        settings=UpcyclingSettings(seed=seed), model=rows.base, context=context
    )
    starts: dict[str, CheckpointRef] = {"plain": rows.base, "grove": upcycled}
    reports: dict[str, ReportRef] = {}
    for name, base in starts.items():
        own = open_store(store=folder, workflow="grove")
        tuned = fine_tuning(
            settings=fitted.sft, merging=fitted.merge, curated=rows.curated, base=base, context=own
        )
        for part, model in (("base", base), ("merged", tuned.merged)):
            reports[f"{part}/{name}"] = evaluate(
                settings=fitted.evaluation,
                name=f"{part}/{name}",
                model=model,
                curated=rows.curated,
                context=own,
            )
    return rows.curated, reports


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
    context = open_store(store=store, workflow="upcycle")
    base = ingest_base(path=model, name="base", context=context)
    return add_adjugates(settings=settings, model=base, context=context)


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
    context = open_store(store=store, workflow="grove")
    curated: list[DatasetRef] = []
    by_seed: list[dict[str, ReportRef]] = []
    for seed in SEEDS:
        seeded = with_seed(settings=settings, seed=seed)
        checked = check_settings(settings=seeded, sources=sources)
        rows, reports = _scores(checked, seed, store)
        curated.append(rows)
        by_seed.append(reports)
    return pooled_page(settings, curated[0], by_seed, context)
