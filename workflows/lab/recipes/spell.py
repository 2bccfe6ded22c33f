"""SPELL: the tiny model asks questions about documents, answers them and compares the answers.

    pyflyte run workflows/lab/recipes/spell.py spell

A fine-tuned model that does not write the forms of the three roles is refused. `plain` trains the
same start model on questions with references, for as many generated tokens. Seeds and variants
shape the graph, so they are read when it is made:

    EACHPROMPT_SEEDS=1 EACHPROMPT_VARIANTS=spell,plain \\
        pyflyte run workflows/lab/recipes/spell.py spell
"""

from functools import partial
from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    ReportRef,
)
from data_schemas.machine_settings import Positive
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.spell.presets import SPELL, SPELL_RECIPE, SPELL_VARIANTS, select_variants
from tasks.lab.recipes.spell.settings import SpellRecipe
from tasks.lab.recipes.spell.task import Formed, check_forms, tabulate_self_play
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.curation import grade
from tasks.stages.evaluation import compare, evaluate
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import check_settings, open_store, with_seed
from tasks.stages.pages import summary
from tasks.stages.rl import Trained, pin_recipe, rl
from tasks.stages.sft import sft
from workflows.parts.preparation import preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
VARIANTS = environment.read("EACHPROMPT_VARIANTS", "", select_variants)


class Prepared(NamedTuple):
    """Outputs of one seed before RL."""

    settings: PipelineSettings
    formed: Formed
    curated: DatasetRef
    graded: GradedRef
    tuning: ReportRef


def _prepare(settings: PipelineSettings, context: Context) -> Prepared:
    """Wire the fine-tuning of the three roles, its gate and grading."""
    with_models = ingest_models(settings=settings, context=context)
    rows = preparation(settings=with_models, context=context)
    tuned = sft(
        settings=with_models.sft,
        parent=Parent.REASONING,
        curated=rows.curated,
        base=rows.base,
        context=context,
    )
    formed = check_forms(
        settings=with_models.evaluation, start=tuned.model, curated=rows.curated, context=context
    )
    graded = grade(
        settings=with_models.grading, curated=rows.curated, start=formed.model, context=context
    )
    return Prepared(with_models, formed, rows.curated, graded, tuned.report)


def _train(
    variant: str, recipe: SpellRecipe, max_tokens: int, prepared: Prepared, context: Context
) -> Trained:
    """Wire one phase; that of 'spell' has the recipe that was asked for."""
    own_recipe = SPELL_VARIANTS[variant]
    settings = prepared.settings
    phase = partial(
        rl,
        settings=settings.rl_two if own_recipe is None else settings.rl_one,
        name=f"rl/{variant}",
        start=prepared.formed.model,
        graded=prepared.graded,
        context=context,
        max_tokens=max_tokens,
    )
    if own_recipe is None:
        return phase()
    return phase(recipe=pin_recipe(recipe=recipe if variant == "spell" else own_recipe))


def _held_out(
    name: str, seed: int, model: CheckpointRef, prepared: Prepared, context: Context
) -> ReportRef:
    """Wire the evaluation of one model; flytekit resolves an attribute of a promise only once."""
    return evaluate(
        settings=prepared.settings.evaluation,
        name=f"spell/{name}/{seed}",
        model=model,
        curated=prepared.curated,
        context=context,
    )


@subworkflow
def self_play_study(
    settings: PipelineSettings, recipe: SpellRecipe, max_tokens: int, store: str
) -> ReportRef:
    """Fine-tune, train every variant with every seed, evaluate and tabulate."""
    context = open_store(store=store, workflow="spell")
    names, starts, trainings, evaluations = [], [], [], []
    for seed in SEEDS:
        seeded = with_seed(settings=check_settings(settings=settings, sources=""), seed=seed)
        prepared = _prepare(seeded, context)
        starts.append(_held_out("start", seed, prepared.formed.model, prepared, context))
        for variant in VARIANTS:
            trained = _train(variant, recipe, max_tokens, prepared, context)
            names.append(f"{variant}/{seed}")
            trainings.append(trained.report)
            model = trained.model
            evaluations.append(_held_out(variant, seed, model, prepared, context))
        progression = compare(
            settings=prepared.settings.evaluation,
            candidate=evaluations[-len(VARIANTS)],
            parents=starts[-1:],
            context=context,
        )
        summary(
            settings=seeded,
            curated=prepared.curated,
            reports=[prepared.tuning, *trainings[-len(VARIANTS) :], progression],
            releases=[],
            context=context,
        )
    return tabulate_self_play(
        settings=settings.evaluation,
        names=names,
        starts=starts,
        trainings=trainings,
        held_out_evaluations=evaluations,
        context=context,
    )


@entry_point
def spell(
    settings: PipelineSettings = SPELL,
    recipe: SpellRecipe = SPELL_RECIPE,
    max_tokens: Positive = 110_000,
    store: str = "runs",
) -> ReportRef:
    """Train questioner, responder and verifier in one policy, and compare with a plain phase.

    Args:
        settings: of curation, sft, grading, rl_one (self-play), rl_two (plain) and evaluation;
            seeds are replaced.
        recipe: of the variant 'spell': what the roles are shown, and which of them train.
        max_tokens: of every phase: it ends after the step with this many generated tokens.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        spell.md and spell.json: forms, difficulty, memory, false accepts and held-out answers.
    """
    return self_play_study(settings=settings, recipe=recipe, max_tokens=max_tokens, store=store)
