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
from tasks.stages.chain import Link, link, renamed, wire
from tasks.stages.opening import open_store, with_seed
from workflows.parts.chain import (
    END,
    PREPARATION,
    curation,
    ending,
    evaluation,
    grading,
    opening,
    training,
    tuning,
)

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))


class Writers(NamedTuple):
    """The writer after EM, and what EM changed."""

    writer: CheckpointRef
    seeds: DatasetRef
    before: ReportRef
    expected: ReportRef
    after: ReportRef


def _measuring(name: str, writer: str, planner: str) -> Link:
    """Measure a writer and a planner on fresh problems."""
    return link(
        name,
        measure_writer,
        "context",
        constants={"name": name},
        settings="recipe.synthesis",
        seeds_of_run="seeds",
        writer=writer,
        planner=planner,
    )


WRITERS = (
    link("seeds", begin_synthesis, "context", settings="recipe.synthesis"),
    tuning("writer", Parent.WRITER, "recipe.cold_start", "base", "seeds"),
    tuning("planner", Parent.PLANNER, "recipe.cold_start", "base", "seeds"),
    _measuring("cold_start", "writer.model", "planner.model"),
    link("own", open_store, constants={"workflow": "promptcot", "last": END}, store="address"),
    # The round of EM is an execution of its own: an execution has a stage of a name once.
    *renamed(
        (
            link(
                "rationales",
                expect_rationales,
                "context",
                settings="recipe.synthesis",
                writer="writer.model",
                planner="planner.model",
                seeds_of_run="seeds",
                gate="cold_start",
            ),
            tuning("planner/em", Parent.PLANNER, "recipe.em", "planner.model", "rationales"),
            link(
                "maximised",
                maximise_rationales,
                "context",
                settings="recipe.synthesis",
                planner="planner/em.model",
                seeds_of_run="seeds",
            ),
            tuning("writer/em", Parent.WRITER, "recipe.em", "writer.model", "maximised"),
            _measuring("after_e_step", "writer.model", "planner/em.model"),
            _measuring("after_m_step", "writer/em.model", "planner/em.model"),
        ),
        context="own",
    ),
    ending("after_e_step.uri", "after_m_step.uri", context="own"),
)


@subworkflow
def train_writer(
    recipe: SynthesisRecipe, base: CheckpointRef, address: str, context: Context
) -> Writers:
    """Fine-tune writer and planner on rationales of teachers, then one round of EM."""
    trained = wire(WRITERS, recipe=recipe, base=base, address=address, context=context)
    return Writers(
        writer=trained["writer/em"].model,
        seeds=trained["seeds"],
        before=trained["cold_start"],
        expected=trained["after_e_step"],
        after=trained["after_m_step"],
    )


class Solvers(NamedTuple):
    """What DPO and RL made of the solver."""

    preference: ReportRef
    evaluations: list[ReportRef]
    """Before both, after DPO, after RL on synthesised problems, after RL on drawn ones."""


SOLVERS = {
    "sft/reasoning": "solver",
    "preference": "preference.model",
    "rl/synthesised": "rl/synthesised.model",
    "rl/drawn": "rl/drawn.model",
}
LEARNING = (
    link("preference", prefer, "graded", "context", settings="recipe.preference", start="solver"),
    link(
        "pools",
        take_as_many,
        "drawn",
        "context",
        settings="recipe.synthesis",
        synthesised="graded",
    ),
    training("rl/synthesised", "models.rl_one", "solver", graded="pools.synthesised"),
    training("rl/drawn", "models.rl_one", "solver", graded="pools.drawn"),
    *renamed([evaluation(*one, "models") for one in SOLVERS.items()], curated="held_out"),
)


@subworkflow
def learn(
    settings: PipelineSettings,
    recipe: SynthesisRecipe,
    solver: CheckpointRef,
    graded: GradedRef,
    drawn: GradedRef,
    held_out: DatasetRef,
    context: Context,
) -> Solvers:
    """Train the solver on synthesised problems, and by RL on as many drawn ones."""
    values = {"models": settings, "recipe": recipe, "solver": solver, "graded": graded}
    trained = wire(LEARNING, **values, drawn=drawn, held_out=held_out, context=context)
    evaluations = [trained[f"evaluation/{name}"] for name in SOLVERS]
    return Solvers(preference=trained["preference"].report, evaluations=evaluations)


CHAIN = (
    *opening("promptcot"),
    *PREPARATION,
    tuning("solver", Parent.REASONING, "models.sft", "base"),
    link("writers", train_writer, "recipe", "base", "context", address="store"),
    grading("solver.model", "models", result="drawn"),
    link("own", open_store, "store", constants={"workflow": "promptcot", "last": END}),
    *renamed(
        (
            link(
                "written",
                write_problems,
                "context",
                settings="recipe.synthesis",
                writer="writers.writer",
                seeds_of_run="writers.seeds",
            ),
            link(
                "labelled",
                label_problems,
                "written",
                "context",
                settings="recipe.synthesis",
                solver="solver.model",
            ),
            *renamed(curation(held_out_from="curated", result="synthesised"), raw="labelled"),
            grading("solver.model", "models", "synthesised"),
            link(
                "learning",
                learn,
                *("recipe", "graded", "drawn", "context"),
                settings="models",
                solver="solver.model",
                held_out="curated",
            ),
            link(
                "measured",
                measure_synthesis,
                *("written", "labelled", "synthesised", "graded", "drawn", "context"),
                settings="recipe.synthesis",
                before="writers.before",
                expected="writers.expected",
                after="writers.after",
                held_out="curated",
                preference="learning.preference",
                evaluations="learning.evaluations",
            ),
        ),
        context="own",
    ),
    ending("drawn.uri", "writers.before.uri"),
    ending("measured.uri", context="own"),
)


@subworkflow
def train_on_synthesised(
    settings: PipelineSettings, recipe: SynthesisRecipe, store: str
) -> ReportRef:
    """Train a solver and a writer, write and label problems, and train the solver on them."""
    return wire(CHAIN, settings=settings, recipe=recipe, store=store)["measured"]


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
    context = open_store(store=store, workflow="promptcot", last="tabulate_synthesis")
    return tabulate_synthesis(settings=recipe.synthesis, cells=cells, context=context)
