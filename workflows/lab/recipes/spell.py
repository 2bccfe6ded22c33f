"""SPELL: the tiny model asks questions about documents, answers them and compares the answers.

    pyflyte run workflows/lab/recipes/spell.py spell

A fine-tuned model that does not write the forms of the three roles is refused. `plain` trains the
same start model on questions with references, for as many generated tokens. Seeds and variants
shape the graph, so they are read when it is made:

    EACHPROMPT_SEEDS=1 EACHPROMPT_VARIANTS=spell,plain \\
        pyflyte run workflows/lab/recipes/spell.py spell
"""

from itertools import chain

from data_schemas.artifacts import ReportRef
from data_schemas.machine_settings import Positive
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.spell.presets import SPELL, SPELL_RECIPE, SPELL_VARIANTS, select_variants
from tasks.lab.recipes.spell.settings import SpellRecipe
from tasks.lab.recipes.spell.task import check_forms, tabulate_self_play
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.chain import Chain, link, renamed, wire
from tasks.stages.opening import open_store, with_seed
from tasks.stages.rl import pin_recipe
from workflows.parts.chain import (
    END,
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
VARIANTS = environment.read("EACHPROMPT_VARIANTS", "", select_variants)


def _chain(seed: int) -> Chain:
    """Fine-tune the three roles, check their forms, train every variant, and compare."""
    checked, _, models = opening("spell")
    reports = [f"rl/{variant}.report" for variant in VARIANTS]
    return (
        checked,
        link("seeded", with_seed, constants={"seed": seed}, settings="checked"),
        *renamed([models], checked="seeded"),
        *PREPARATION,
        tuning("sft/reasoning", Parent.REASONING, "models.sft", "base"),
        link(
            "formed",
            check_forms,
            "curated",
            "context",
            settings="models.evaluation",
            start="sft/reasoning.model",
        ),
        grading("formed.model", "models"),
        evaluation(f"spell/start/{seed}", "formed.model", "models", "evaluation/start"),
        *chain.from_iterable(_variant(name, seed) for name in VARIANTS),
        comparing(f"evaluation/{VARIANTS[0]}", ["evaluation/start"], "models"),
        report("seeded", ["sft/reasoning.report", *reports, "progression"]),
    )


def _variant(variant: str, seed: int) -> Chain:
    """Train a variant and evaluate it; that of 'spell' has the recipe that was asked for."""
    own, name, start = SPELL_VARIANTS[variant], f"rl/{variant}", "formed.model"
    model, result = f"{name}.model", f"evaluation/{variant}"
    scores = evaluation(f"spell/{variant}/{seed}", model, "models", result)
    if own is None:
        return training(name, "models.rl_two", start, max_tokens="max_tokens"), scores
    reads = {"recipe": "recipe"} if variant == "spell" else {}
    constants = {} if variant == "spell" else {"recipe": own}
    pinned = f"pinned/{variant}"
    return (
        link(pinned, pin_recipe, constants=constants, reads=reads),
        training(name, "models.rl_one", start, max_tokens="max_tokens", recipe=pinned),
        scores,
    )


@subworkflow
def self_play_study(
    settings: PipelineSettings, recipe: SpellRecipe, max_tokens: int, store: str
) -> ReportRef:
    """Fine-tune, train every variant with every seed, evaluate and tabulate."""
    context = open_store(store=store, workflow="spell", last=END)
    values = {"settings": settings, "recipe": recipe, "max_tokens": max_tokens}
    values |= {"store": store, "context": context}
    by_seed = [wire(_chain(seed), **values) for seed in SEEDS]
    trained = [(one, variant) for one in by_seed for variant in VARIANTS]
    table = tabulate_self_play(
        settings=settings.evaluation,
        names=[f"{variant}/{seed}" for seed in SEEDS for variant in VARIANTS],
        starts=[one["evaluation/start"] for one in by_seed],
        trainings=[one[f"rl/{variant}"].report for one, variant in trained],
        held_out_evaluations=[one[f"evaluation/{variant}"] for one, variant in trained],
        context=context,
    )
    pages = [f"page/{seed}" for seed in SEEDS]
    made = dict(zip(pages, (one["page"] for one in by_seed), strict=True)) | {"table": table}
    wire([ending("table.uri", *pages)], context=context, **made)
    return table


@entry_point
def spell(
    settings: PipelineSettings = SPELL,
    recipe: SpellRecipe = SPELL_RECIPE,
    max_tokens: Positive = 110_000,
    store: str = "runs",
) -> ReportRef:
    """Train three roles in one policy, beside a plain phase.

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
