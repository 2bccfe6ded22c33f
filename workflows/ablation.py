"""The effect of each feature of RL: same start model, seeds and tokens, one feature off at a time.

    pyflyte run workflows/ablation.py ablation

The model comes from the pipeline's own first stages; where `post_training` ran on the same store,
they are in Flyte's cache. Every phase and every held-out evaluation is cached on its own, so a
study that was stopped goes on. Seeds and variants shape the graph, so they are read when it is
made:

    EACHPROMPT_SEEDS=1 EACHPROMPT_VARIANTS=gspo,zv_off pyflyte run workflows/ablation.py ablation

The variants `clip` are a scan of the policy losses with 1, 4 and 8 updates per step, on rollouts of
the newest policy and of those one or two versions older; `espo` changes the parts of ESPO one by
one. The variants `domains` train maths and code alone, mixed, and one after the other.
"""

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.group import Positive
from data_schemas.settings import EvaluationSettings, PipelineSettings
from tasks.ablation.task import tabulate, vary
from tasks.ablation.variants import select_variants
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.curation import fit_settings, grade
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import check_settings, open_store
from tasks.stages.rl import rl
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.preparation import preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
VARIANTS = environment.read("EACHPROMPT_VARIANTS", "", select_variants)
SETTINGS = presets.CPU_SMOKE.model_copy(update={"evaluation": EvaluationSettings(samples=2)})
"""Two responses per held-out problem: there are as many held-out evaluations as phases."""


@subworkflow
def study(settings: PipelineSettings, max_tokens: int, store: str, sources: str) -> ReportRef:
    """Make the start model, train every variant with every seed, and tabulate the results."""
    checked = check_settings(settings=settings, sources=sources)
    run, execution = open_store(store=store, workflow="ablation")
    named = ingest_models(settings=checked, store=run, execution=execution)
    rows = preparation(settings=named, store=run, execution=execution)
    fitted = fit_settings(settings=named, curated=rows.curated, store=run)
    tuned = fine_tuning(
        settings=fitted.sft,
        merging=fitted.merge,
        curated=rows.curated,
        base=rows.base,
        store=run,
        execution=execution,
    )
    graded = grade(
        settings=fitted.grading,
        curated=rows.curated,
        start=tuned.merged,
        store=run,
        execution=execution,
    )
    start = evaluate(
        settings=fitted.evaluation,
        name="ablation/start",
        model=tuned.merged,
        curated=rows.curated,
        store=run,
        execution=execution,
    )
    names, trainings, held_out_evaluations = [], [], [start]
    models = {}
    for seed in SEEDS:
        for variant in VARIANTS:
            name = f"{variant.name}/{seed}"
            phase = vary(settings=fitted, variant=variant.name, seed=seed)
            trained = rl(
                settings=phase,
                name=f"ablation/{name}",
                start=models.get((variant.after, seed), tuned.merged),
                graded=graded,
                store=run,
                execution=execution,
                max_tokens=max_tokens,
            )
            held_out_evaluation = evaluate(
                settings=fitted.evaluation,
                name=f"ablation/{name}",
                model=trained.model,
                curated=rows.curated,
                store=run,
                execution=execution,
            )
            models[variant.name, seed] = trained.model
            names.append(name)
            trainings.append(trained.report)
            held_out_evaluations.append(held_out_evaluation)
    return tabulate(
        settings=fitted.evaluation,
        names=names,
        max_tokens=max_tokens,
        trainings=trainings,
        held_out_evaluations=held_out_evaluations,
        store=run,
        execution=execution,
    )


@entry_point
def ablation(
    settings: PipelineSettings = SETTINGS,
    max_tokens: Positive = 100_000,
    store: str = "runs",
    sources: str = "",
) -> ReportRef:
    """Train one phase per variant and seed from the merged model and tabulate the results.

    Args:
        settings: of the preceding stages; the phases use rl_two's settings and all domains.
        max_tokens: every phase ends after the step in which it has generated this many.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        ablation.md, .html, .png and .json.
    """
    return study(settings=settings, max_tokens=max_tokens, store=store, sources=sources)
