"""RuscaRL: criteria of a hidden rubric are shown to some samples of a group, and decay.

    pyflyte run workflows/lab/recipes/rusca.py rusca

The start model must gain from seeing the criteria, or nothing is trained. Every phase and every
held-out evaluation is cached on its own, so a study that was stopped goes on. Seeds and variants
shape the graph, so they are read when it is made:

    EACHPROMPT_SEEDS=1 EACHPROMPT_VARIANTS=none pyflyte run workflows/lab/recipes/rusca.py rusca

With other sources it is the recipe for rubrics of one's own (verifier `rubric` or `rule_rubric`).
"""

from functools import partial

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.machine_settings import Positive, Share
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.rusca import presets
from tasks.lab.recipes.rusca.settings import ScaffoldSettings
from tasks.lab.recipes.rusca.task import Proved, prove_lift, tabulate_scaffold, vary_scaffold
from tasks.lab.recipes.rusca.variants import select_variants
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.curation import fit_settings, grade
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import check_settings, open_store
from tasks.stages.rl import pin_recipe, rl
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.preparation import preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
VARIANTS = environment.read("EACHPROMPT_VARIANTS", "", select_variants)


def _prove(
    settings: PipelineSettings,
    scaffold: ScaffoldSettings,
    low: float,
    high: float,
    start: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> Proved:
    """Wire grading and the gate of the scaffold."""
    graded = grade(settings=settings.grading, curated=curated, start=start, context=context)
    return prove_lift(
        settings=settings.rl_one,
        scaffold=scaffold,
        low=low,
        high=high,
        start=start,
        graded=graded,
        context=context,
    )


@subworkflow
def rusca_study(
    settings: PipelineSettings,
    shown: ScaffoldSettings,
    max_tokens: int,
    low: float,
    high: float,
    store: str,
    sources: str,
) -> ReportRef:
    """Make the start model, prove the lift, train every variant with every seed, tabulate."""
    checked = check_settings(settings=settings, sources=sources)
    context = open_store(store=store, workflow="rusca")
    with_models = ingest_models(settings=checked, context=context)
    rows = preparation(settings=with_models, context=context)
    fitted = fit_settings(settings=with_models, curated=rows.curated, store=context.store)
    tuned = fine_tuning(
        settings=fitted.sft,
        merging=fitted.merge,
        curated=rows.curated,
        base=rows.base,
        context=context,
    )
    proved = _prove(fitted, shown, low, high, tuned.merged, rows.curated, context)
    start = evaluate(
        settings=fitted.evaluation,
        name="scaffold/start",
        model=tuned.merged,
        curated=rows.curated,
        context=context,
    )
    names, trainings, held_out_evaluations = [], [], [start]
    for seed in SEEDS:
        for variant in VARIANTS:
            varied = vary_scaffold(settings=fitted, scaffold=shown, variant=variant.name, seed=seed)
            phase = partial(
                rl,
                settings=varied.settings,
                name=f"scaffold/{variant.name}/{seed}",
                start=tuned.merged,
                graded=proved.graded,
                context=context,
                max_tokens=max_tokens,
            )
            trained = (
                phase(recipe=pin_recipe(recipe=varied.scaffold)) if variant.scaffolded else phase()
            )
            held_out_evaluation = evaluate(
                settings=fitted.evaluation,
                name=f"scaffold/{variant.name}/{seed}",
                model=trained.model,
                curated=rows.curated,
                context=context,
            )
            names.append(f"{variant.name}/{seed}")
            trainings.append(trained.report)
            held_out_evaluations.append(held_out_evaluation)
    return tabulate_scaffold(
        settings=fitted.evaluation,
        names=names,
        max_tokens=max_tokens,
        lift_of_start=proved.lift,
        trainings=trainings,
        held_out_evaluations=held_out_evaluations,
        context=context,
    )


@entry_point
def rusca(
    settings: PipelineSettings = presets.HOUSE_STYLE,
    shown: ScaffoldSettings = presets.HOUSE_SCAFFOLD,
    max_tokens: Positive = 60_000,
    low: Share = 0.0,
    high: Share = 1.0,
    store: str = "runs",
    sources: str = "",
) -> ReportRef:
    """Train phase one with and without RuscaRL's scaffold.

    Args:
        settings: of the pipeline; rl_one is trained.
        shown: which criteria a step and a sample see.
        max_tokens: generated tokens that end a phase.
        low: lowest quantile of scores kept.
        high: highest quantile of scores kept.
        store: folder or s3:// prefix of results.
        sources: real files: adapter=path,adapter=path.

    Returns:
        scaffold.md, .html and .json.
    """
    return rusca_study(
        settings=settings,
        shown=shown,
        max_tokens=max_tokens,
        low=low,
        high=high,
        store=store,
        sources=sources,
    )
