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
    DatasetRef,
    Execution,
    GradedRef,
    ReportRef,
    StoreRef,
)
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.promptcot.sample import SYNTHESIS, SYNTHESIS_RECIPE
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
    recipe: SynthesisRecipe, base: CheckpointRef, store: str, execution: Execution, run: StoreRef
) -> Writers:
    """Fine-tune writer and planner on rationales of teachers, then one round of EM.

    The round is an execution of its own, because an execution has a stage of a name once.
    """
    seeds = begin_synthesis(settings=recipe.synthesis, store=run, execution=execution)
    writer, planner = (
        sft(
            settings=recipe.cold_start,
            parent=parent,
            curated=seeds,
            base=base,
            store=run,
            execution=execution,
        ).model
        for parent in (Parent.WRITER, Parent.PLANNER)
    )
    before = measure_writer(
        settings=recipe.synthesis,
        name="cold_start",
        writer=writer,
        planner=planner,
        seeds_of_run=seeds,
        store=run,
        execution=execution,
    )
    same, own = open_store(store=store, workflow="promptcot")
    expected = expect_rationales(
        settings=recipe.synthesis,
        writer=writer,
        planner=planner,
        seeds_of_run=seeds,
        gate=before,
        store=same,
        execution=own,
    )
    better_planner = sft(
        settings=recipe.em,
        parent=Parent.PLANNER,
        curated=expected,
        base=planner,
        store=same,
        execution=own,
    )
    maximised = maximise_rationales(
        settings=recipe.synthesis,
        planner=better_planner.model,
        seeds_of_run=seeds,
        store=same,
        execution=own,
    )
    better_writer = sft(
        settings=recipe.em,
        parent=Parent.WRITER,
        curated=maximised,
        base=writer,
        store=same,
        execution=own,
    )
    after_e, after_m = (
        measure_writer(
            settings=recipe.synthesis,
            name=name,
            writer=model,
            planner=better_planner.model,
            seeds_of_run=seeds,
            store=same,
            execution=own,
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
    store: StoreRef,
    execution: Execution,
) -> Learned:
    """Train the solver on synthesised problems, and by RL on as many drawn ones."""
    preferred = prefer(
        settings=recipe.preference, start=solver, graded=graded, store=store, execution=execution
    )
    pools = take_as_many(
        settings=recipe.synthesis,
        synthesised=graded,
        drawn=drawn,
        store=store,
        execution=execution,
    )
    on_synthesised, on_drawn = (
        rl(
            settings=settings.rl_one,
            name=f"rl/{name}",
            start=solver,
            graded=pool,
            store=store,
            execution=execution,
        ).model
        for name, pool in (("synthesised", pools.synthesised), ("drawn", pools.drawn))
    )
    evaluations = [
        evaluate(
            settings=settings.evaluation,
            name=name,
            model=model,
            curated=held_out,
            store=store,
            execution=execution,
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
    run, execution = open_store(store=store, workflow="promptcot")
    with_models = ingest_models(settings=checked, store=run, execution=execution)
    rows: Prepared = preparation(settings=with_models, store=run, execution=execution)
    solver = sft(
        settings=with_models.sft,
        parent=Parent.REASONING,
        curated=rows.curated,
        base=rows.base,
        store=run,
        execution=execution,
    ).model
    writers = train_writer(recipe=recipe, base=rows.base, store=store, execution=execution, run=run)
    pool = grade(
        settings=with_models.grading,
        curated=rows.curated,
        start=solver,
        store=run,
        execution=execution,
    )
    same, own = open_store(store=store, workflow="promptcot")
    problems = write_problems(
        settings=recipe.synthesis,
        writer=writers.writer,
        seeds_of_run=writers.seeds,
        store=same,
        execution=own,
    )
    labelled = label_problems(
        settings=recipe.synthesis, solver=solver, written=problems, store=same, execution=own
    )
    synthesised = curation(with_models, labelled, rows.base, same, own, rows.curated)
    graded = grade(
        settings=with_models.grading, curated=synthesised, start=solver, store=same, execution=own
    )
    learned = learn(
        settings=with_models,
        recipe=recipe,
        solver=solver,
        graded=graded,
        drawn=pool,
        held_out=rows.curated,
        store=same,
        execution=own,
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
        store=same,
        execution=own,
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
    run, execution = open_store(store=store, workflow="promptcot")
    return tabulate_synthesis(
        settings=recipe.synthesis, cells=cells, store=run, execution=execution
    )
