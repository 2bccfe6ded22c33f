"""PromptCoT 2.0: a model writes problems from concepts, and another one learns from them.

    pyflyte run workflows/lab/recipes/promptcot.py promptcot

A writer p(rationale, problem | concepts) and a planner q(rationale | concepts, problem) are trained
by EM; the writer's problems are labelled by a solver's majority, curated, graded like any others,
and train the solver by DPO, and by RL beside as many drawn problems. The number of seeds shapes the
graph, so it is read when it is made:

    EACHPROMPT_SEEDS=1 pyflyte run workflows/lab/recipes/promptcot.py promptcot
"""

from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    ReportRef,
)
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.promptcot.presets import SYNTHESIS, SYNTHESIS_RECIPE
from tasks.lab.recipes.promptcot.settings import SynthesisRecipe
from tasks.lab.recipes.promptcot.task import (
    begin_synthesis,
    expect_rationales,
    label_problems,
    maximise_rationales,
    measure_synthesis,
    measure_writer,
    prefer,
    seed_recipe,
    tabulate_synthesis,
    take_as_many,
    write_problems,
)
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.curation import grade
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import check_settings, open_store, with_seed
from tasks.stages.rl import rl
from tasks.stages.sft import sft
from workflows.parts.preparation import Prepared, curation, preparation

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))


class Writers(NamedTuple):
    """The writer after EM, and what EM changed."""

    writer: CheckpointRef
    seeds: DatasetRef
    before: ReportRef
    expected: ReportRef
    after: ReportRef


@subworkflow
def train_writer(
    recipe: SynthesisRecipe, base: CheckpointRef, address: str, context: Context
) -> Writers:
    """Fine-tune writer and planner on rationales of teachers, then one round of EM.

    The round is an execution of its own, because an execution has a stage of a name once.
    """
    seeds = begin_synthesis(settings=recipe.synthesis, context=context)
    writer, planner = (
        sft(
            settings=recipe.cold_start,
            parent=parent,
            curated=seeds,
            base=base,
            context=context,
        ).model
        for parent in (Parent.WRITER, Parent.PLANNER)
    )
    before = measure_writer(
        settings=recipe.synthesis,
        name="cold_start",
        writer=writer,
        planner=planner,
        seeds_of_run=seeds,
        context=context,
    )
    own = open_store(store=address, workflow="promptcot")
    expected = expect_rationales(
        settings=recipe.synthesis,
        writer=writer,
        planner=planner,
        seeds_of_run=seeds,
        gate=before,
        context=own,
    )
    better_planner = sft(
        settings=recipe.em, parent=Parent.PLANNER, curated=expected, base=planner, context=own
    )
    maximised = maximise_rationales(
        settings=recipe.synthesis, planner=better_planner.model, seeds_of_run=seeds, context=own
    )
    better_writer = sft(
        settings=recipe.em, parent=Parent.WRITER, curated=maximised, base=writer, context=own
    )
    after_e, after_m = (
        measure_writer(
            settings=recipe.synthesis,
            name=name,
            writer=model,
            planner=better_planner.model,
            seeds_of_run=seeds,
            context=own,
        )
        for name, model in (("after_e_step", writer), ("after_m_step", better_writer.model))
    )
    return Writers(
        writer=better_writer.model, seeds=seeds, before=before, expected=after_e, after=after_m
    )


class Learned(NamedTuple):
    """What the solver learned by DPO and by RL."""

    preference: ReportRef
    evaluations: list[ReportRef]
    """Of the solver, after DPO, after RL on synthesised problems, after RL on drawn ones."""


@subworkflow
def learn(
    settings: PipelineSettings,
    recipe: SynthesisRecipe,
    solver: CheckpointRef,
    graded: GradedRef,
    drawn: GradedRef,
    held_out: DatasetRef,
    context: Context,
) -> Learned:
    """Train the solver on synthesised problems, and by RL on as many drawn ones."""
    preferred = prefer(settings=recipe.preference, start=solver, graded=graded, context=context)
    pools = take_as_many(
        settings=recipe.synthesis, synthesised=graded, drawn=drawn, context=context
    )
    on_synthesised, on_drawn = (
        rl(
            settings=settings.rl_one, name=f"rl/{name}", start=solver, graded=pool, context=context
        ).model
        for name, pool in (("synthesised", pools.synthesised), ("drawn", pools.drawn))
    )
    evaluations = [
        evaluate(
            settings=settings.evaluation, name=name, model=model, curated=held_out, context=context
        )
        for name, model in (
            ("sft/reasoning", solver),
            ("preference", preferred.model),
            ("rl/synthesised", on_synthesised),
            ("rl/drawn", on_drawn),
        )
    ]
    return Learned(preference=preferred.report, evaluations=evaluations)


@subworkflow
def train_on_synthesised(
    settings: PipelineSettings, recipe: SynthesisRecipe, store: str
) -> ReportRef:
    """Train a solver and a writer, write and label problems, and train the solver on them."""
    checked = check_settings(settings=settings, sources="")
    context = open_store(store=store, workflow="promptcot")
    with_models = ingest_models(settings=checked, context=context)
    rows: Prepared = preparation(settings=with_models, context=context)
    solver = sft(
        settings=with_models.sft,
        parent=Parent.REASONING,
        curated=rows.curated,
        base=rows.base,
        context=context,
    ).model
    writers = train_writer(recipe=recipe, base=rows.base, address=store, context=context)
    pool = grade(settings=with_models.grading, curated=rows.curated, start=solver, context=context)
    own = open_store(store=store, workflow="promptcot")
    problems = write_problems(
        settings=recipe.synthesis, writer=writers.writer, seeds_of_run=writers.seeds, context=own
    )
    labelled = label_problems(
        settings=recipe.synthesis, solver=solver, written=problems, context=own
    )
    synthesised = curation(with_models, labelled, rows.base, own, rows.curated)
    graded = grade(settings=with_models.grading, curated=synthesised, start=solver, context=own)
    learned = learn(
        settings=with_models,
        recipe=recipe,
        solver=solver,
        graded=graded,
        drawn=pool,
        held_out=rows.curated,
        context=own,
    )
    return measure_synthesis(
        settings=recipe.synthesis,
        before=writers.before,
        expected=writers.expected,
        after=writers.after,
        written=problems,
        labelled=labelled,
        synthesised=synthesised,
        held_out=rows.curated,
        graded=graded,
        drawn=pool,
        preference=learned.preference,
        evaluations=learned.evaluations,
        context=own,
    )


@entry_point
def promptcot(
    settings: PipelineSettings = SYNTHESIS,
    recipe: SynthesisRecipe = SYNTHESIS_RECIPE,
    store: str = "runs",
) -> ReportRef:
    """Train a writer of problems by EM, and a solver on what it writes.

    Args:
        settings: of curation, sft, grading, rl_one and evaluation; their seeds are replaced.
        recipe: of writer, planner, labels and DPO; its seeds are replaced.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        synthesis.md, .html and .json: likelihood, validity, labels, difficulty, gain.
    """
    cells = [
        train_on_synthesised(
            settings=with_seed(settings=settings, seed=seed),
            recipe=seed_recipe(recipe=recipe, seed=seed),
            store=store,
        )
        for seed in SEEDS
    ]
    context = open_store(store=store, workflow="promptcot")
    return tabulate_synthesis(settings=recipe.synthesis, cells=cells, context=context)
