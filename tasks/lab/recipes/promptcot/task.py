"""Flyte tasks of synthesis: seeds, EM over rationales, problems, labels, DPO, and the table."""

from contextlib import closing
from typing import NamedTuple

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    RawRef,
    ReportRef,
)
from data_schemas.pass_rates import GradedProblem
from data_schemas.rows import DEMONSTRATIONS, GRADED, Demonstration
from tasks.engines.chat import load_tokenizer
from tasks.engines.select import open_rollout, opened_rollouts
from tasks.lab.recipes.promptcot import (
    labels,
    likelihood,
    rationales,
    report,
    seeds,
    writing,
)
from tasks.lab.recipes.promptcot.pools import as_many
from tasks.lab.recipes.promptcot.preference import read_pairs, train_pairs
from tasks.lab.recipes.promptcot.records import (
    FRESH,
    LABELLED,
    PAIRS,
    POOL,
    RATIONALES,
    WRITTEN,
    ChosenRationale,
    LabelledProblem,
    PreferencePair,
    WordedProblem,
    WrittenProblem,
)
from tasks.lab.recipes.promptcot.settings import (
    PreferenceSettings,
    SynthesisRecipe,
    SynthesisSettings,
)
from tasks.platform.progress import progress
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.stages.runner import Facts, Inputs, Outputs, Record, StageResult, Work, numbered, run
from tasks.store.files import canonical_json, write_bytes

CELL_FILE = "cell.json"
REPORT_FILE = "synthesis.json"
MARKDOWN_FILE = "synthesis.md"
PAGE_FILE = "synthesis.html"
UPDATES_FILE = "updates.json"
LIKELIHOODS = ("before", "expected", "after")
"""Roles of what a pair of models found likely: after the cold start, the E-step, the M-step."""


add_stages(
    {
        "seed_recipe": Stage("lab.recipes.promptcot.task", SMALL, "cpu", hours=WAIT),
        "begin_synthesis": Stage("lab.recipes.promptcot.task", SMALL, "cpu", hours=WAIT),
        "measure_writer": Stage(
            "lab.recipes.promptcot.task", GPU_NODE, "rollout", hours=12, retries=3
        ),
        "expect_rationales": Stage(
            "lab.recipes.promptcot.task", GPU_NODE, "rollout", hours=24, retries=3
        ),
        "maximise_rationales": Stage(
            "lab.recipes.promptcot.task", GPU_NODE, "rollout", hours=24, retries=3
        ),
        "write_problems": Stage(
            "lab.recipes.promptcot.task", GPU_NODE, "rollout", hours=24, retries=3
        ),
        "label_problems": Stage(
            "lab.recipes.promptcot.task", GPU_NODE, "rollout", hours=48, retries=3
        ),
        "prefer": Stage("lab.recipes.promptcot.task", GPU_NODE, "trainer", hours=24, retries=3),
        "take_as_many": Stage("lab.recipes.promptcot.task", SMALL, "cpu", hours=WAIT),
        "measure_synthesis": Stage(
            "lab.recipes.promptcot.task", SMALL, "cpu", hours=WAIT, retries=2
        ),
        "tabulate_synthesis": Stage(
            "lab.recipes.promptcot.task", SMALL, "cpu", hours=WAIT, retries=2, cached=False
        ),
    }
)


class Equal(NamedTuple):
    """Pools of the same size."""

    synthesised: GradedRef
    drawn: GradedRef


class PreferenceOutputs(NamedTuple):
    """Outputs of the preference step."""

    model: CheckpointRef
    report: ReportRef


@shell("seed_recipe")
def seed_recipe(recipe: SynthesisRecipe, seed: int) -> SynthesisRecipe:
    """Set the seed of every part of the recipe."""
    parts = {name: part.model_copy(update={"seed": seed}) for name, part in recipe}
    return recipe.model_copy(update=parts)


def _begin(settings: SynthesisSettings, _: Inputs, outputs: Outputs, __: Work) -> Facts:
    return seeds.begin(settings.seed, outputs["seeds"])


BEGIN = Record("begin_synthesis", _begin, DatasetRef, "seeds")


@shell("begin_synthesis")
def begin_synthesis(settings: SynthesisSettings, context: Context) -> DatasetRef:
    """Write demonstrations of rationales, and problems without one."""
    return run(BEGIN, settings, {}, context, name="synthesis/seeds")


def _measure_writer(
    settings: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work
) -> Facts:
    rows = read_table(inputs["seeds"] / FRESH, WordedProblem)
    folders = inputs["planner"], inputs["writer"]
    with opened_rollouts(settings.engines, folders) as (planning, wording):
        tokenizer = load_tokenizer(inputs["writer"])
        result = likelihood.measure(settings, rows, planning, wording, tokenizer)
    write_bytes(outputs["report"] / likelihood.REPORT, canonical_json(result))
    work.entry.rows(len(rows), len(result.nll))
    return {
        "valid_share": result.valid_share,
        "nll": sum(result.nll.values()) / len(result.nll),
        "unended": result.unended,
    }


MEASURE_WRITER = Record("measure_writer", _measure_writer, ReportRef, "report")


@shell("measure_writer")
def measure_writer(
    settings: SynthesisSettings,
    name: str,
    writer: CheckpointRef,
    planner: CheckpointRef,
    seeds_of_run: DatasetRef,
    context: Context,
) -> ReportRef:
    """Measure the likelihood of fresh problems; refuse a writer whose problems are not valid.

    Args:
        settings: samples per problem.
        name: of the pair of models.
        writer: p(z, x | c).
        planner: q(z | c, x).
        seeds_of_run: its fresh problems.
        context: of the run.
    """
    reads = {"writer": writer, "planner": planner, "seeds": seeds_of_run}
    return run(MEASURE_WRITER, settings, reads, context, name=f"synthesis/{name}")


def _expect(settings: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    rows = read_table(inputs["seeds"] / POOL, WordedProblem)
    folders = inputs["planner"], inputs["writer"]
    with opened_rollouts(settings.engines, folders) as (planning, wording):
        tokenizer = load_tokenizer(inputs["planner"])
        result = rationales.expect(settings, rows, planning, wording, tokenizer)
    return _keep_rationales(work, outputs, len(rows), result)


EXPECT = Record("expect_rationales", _expect, DatasetRef, "rationales")


@shell("expect_rationales")
def expect_rationales(
    settings: SynthesisSettings,
    writer: CheckpointRef,
    planner: CheckpointRef,
    seeds_of_run: DatasetRef,
    gate: ReportRef,
    context: Context,
) -> DatasetRef:
    """E-step: choose the best of several rationales for every problem of the pool.

    Args:
        settings: how many, and what decides.
        writer: scores them.
        planner: draws them.
        seeds_of_run: its pool.
        gate: of these two models; without it nothing is drawn.
        context: of the run.
    """
    reads = {"writer": writer, "planner": planner, "gate": gate, "seeds": seeds_of_run}
    return run(EXPECT, settings, reads, context, name="synthesis/e_step")


def _maximise(settings: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    planner, rows = inputs["planner"], read_table(inputs["seeds"] / POOL, WordedProblem)
    with closing(open_rollout(settings.engines, planner)) as engine:
        result = rationales.maximise(settings, rows, engine, load_tokenizer(planner))
    return _keep_rationales(work, outputs, len(rows), result)


MAXIMISE = Record("maximise_rationales", _maximise, DatasetRef, "rationales")


@shell("maximise_rationales")
def maximise_rationales(
    settings: SynthesisSettings, planner: CheckpointRef, seeds_of_run: DatasetRef, context: Context
) -> DatasetRef:
    """M-step: write the planner's greedy rationale of every problem of the pool."""
    reads = {"planner": planner, "seeds": seeds_of_run}
    return run(MAXIMISE, settings, reads, context, name="synthesis/m_step")


def _keep_rationales(
    work: Work, outputs: Outputs, problems: int, result: rationales.Choices
) -> Facts:
    demonstrations, choices = result
    write_table(outputs["rationales"] / DEMONSTRATIONS, Demonstration, demonstrations)
    write_table(outputs["rationales"] / RATIONALES, ChosenRationale, choices)
    work.entry.rows(problems, len(choices))
    return {"problems": problems, "without": problems - len(choices)}


def _write(settings: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    model, folder = inputs["writer"], inputs["seeds"]
    pool = read_table(folder / POOL, WordedProblem)
    texts = [row.problem for row in (*pool, *read_table(folder / FRESH, WordedProblem))]
    concepts = writing.walk(pool, settings.problems, settings.seed)
    with closing(open_rollout(settings.engines, model)) as engine:
        decoded = writing.write(settings, concepts, engine, load_tokenizer(model))
    rows = writing.keep_new(decoded, texts)
    write_table(outputs["written"] / WRITTEN, WrittenProblem, rows)
    counts = report.count_reasons(outputs["written"])
    work.entry.rows(len(rows), counts[""])
    return {reason or "kept": count for reason, count in sorted(counts.items())}


WRITE = Record("write_problems", _write, DatasetRef, "written")


@shell("write_problems")
def write_problems(
    settings: SynthesisSettings, writer: CheckpointRef, seeds_of_run: DatasetRef, context: Context
) -> DatasetRef:
    """Decode problems for new concepts; keep valid, new ones that are no held-out prompt by hash.

    Args:
        settings: how many, and at which temperature.
        writer: after EM.
        seeds_of_run: concepts are walked over its pool; its problems are not new.
        context: of the run.
    """
    reads = {"writer": writer, "seeds": seeds_of_run}
    return run(WRITE, settings, reads, context, name="synthesis/write")


def _label(settings: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    solver, rows = inputs["solver"], read_table(inputs["written"] / WRITTEN, WrittenProblem)
    candidates = [row for row in rows if not row.reason]
    with closing(open_rollout(settings.engines, solver)) as engine:
        labelled = labels.label(settings, candidates, engine, load_tokenizer(solver))
    labels.write_raw(labelled, outputs["raw"])
    write_table(outputs["raw"] / LABELLED, LabelledProblem, labelled)
    count, wrong = labels.audit(labelled)
    work.entry.rows(len(candidates), count)
    return {"problems": len(candidates), "labels": count, "wrong_labels": wrong}


LABEL = Record("label_problems", _label, RawRef, "raw")


@shell("label_problems")
def label_problems(
    settings: SynthesisSettings, solver: CheckpointRef, written: DatasetRef, context: Context
) -> RawRef:
    """Label written problems by the majority of the solver's answers; write them as raw rows."""
    reads = {"solver": solver, "written": written}
    return run(LABEL, settings, reads, context, name="synthesis/label")


def _prefer(settings: PreferenceSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    model, folder = inputs["start"], inputs["graded"]
    pairs = read_pairs(folder, model)
    training = train_pairs(settings, folder, model, pairs, outputs["model"])
    updates = list(progress(training, work.name))
    write_table(outputs["report"] / PAIRS, PreferencePair, pairs)
    dumped = [update.model_dump(mode="json") for update in updates]
    write_bytes(outputs["report"] / UPDATES_FILE, canonical_json(dumped))
    for number, update in enumerate(updates, start=1):
        work.entry.metrics(number, update.model_dump())
    work.entry.rows(len(pairs), len(pairs))
    return {
        "pairs": len(pairs),
        "updates": len(updates),
        "first_loss": updates[0].loss,
        "last_loss": updates[-1].loss,
        "last_accuracy": updates[-1].accuracy,
    }


PREFER = Record("prefer", _prefer, PreferenceOutputs)


@shell("prefer")
def prefer(
    settings: PreferenceSettings, start: CheckpointRef, graded: GradedRef, context: Context
) -> PreferenceOutputs:
    """Train a model by DPO on the right and wrong answers that graded its problems."""
    return run(PREFER, settings, {"start": start, "graded": graded}, context, name="preference")


def _take_as_many(_: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    synthesised, drawn = (read_table(folder / GRADED, GradedProblem) for folder in inputs.values())
    equal = dict(zip(Equal._fields, as_many(synthesised, drawn), strict=True))
    for name, pool in equal.items():
        write_table(outputs[name] / GRADED, GradedProblem, pool)
    work.entry.rows(len(synthesised) + len(drawn), sum(map(len, equal.values())))
    return {name: len(pool) for name, pool in equal.items()}


TAKE_AS_MANY = Record("take_as_many", _take_as_many, Equal)


@shell("take_as_many")
def take_as_many(
    settings: SynthesisSettings, synthesised: GradedRef, drawn: GradedRef, context: Context
) -> Equal:
    """Take as many synthesised as drawn problems for RL."""
    reads = {"all/synthesised": synthesised, "all/drawn": drawn}
    return run(TAKE_AS_MANY, settings, reads, context, name="synthesis/as_many")


def _measure(_: SynthesisSettings, inputs: Inputs, outputs: Outputs, __: Work) -> Facts:
    cell = report.read_cell(
        {name: inputs[name] for name in LIKELIHOODS},
        inputs["written"],
        inputs["labelled"],
        (inputs["synthesised"], inputs["held_out"]),
        (inputs["graded"], inputs["drawn"]),
        inputs["preference"],
        [path for role, path in inputs.items() if role.startswith("evaluation/")],
    )
    write_bytes(outputs["report"] / CELL_FILE, canonical_json(cell))
    return {}


MEASURE = Record("measure_synthesis", _measure, ReportRef, "report")


@shell("measure_synthesis")
def measure_synthesis(
    settings: SynthesisSettings,
    before: ReportRef,
    expected: ReportRef,
    after: ReportRef,
    written: DatasetRef,
    labelled: RawRef,
    synthesised: DatasetRef,
    held_out: DatasetRef,
    graded: GradedRef,
    drawn: GradedRef,
    preference: ReportRef,
    evaluations: list[ReportRef],
    context: Context,
) -> ReportRef:
    """Collect what one seed measured.

    Args:
        settings: of the writing.
        before: likelihood under writer and planner of the cold start.
        expected: with the planner of the E-step.
        after: with the writer of the M-step.
        written: problems.
        labelled: those of them that were kept.
        synthesised: curated.
        held_out: curated set with the held-out suites.
        graded: synthesised problems within the bounds of grading.
        drawn: the same of drawn problems.
        preference: report of DPO.
        evaluations: before and after DPO, after RL on synthesised and on drawn problems.
        context: of the run.
    """
    reads = {"before": before, "expected": expected, "after": after, "graded": graded}
    reads |= {"written": written, "labelled": labelled, "synthesised": synthesised}
    reads |= {"held_out": held_out, "drawn": drawn, "preference": preference}
    reads |= numbered("evaluation", evaluations)
    return run(MEASURE, settings, reads, context, name="synthesis/measure")


def _tabulate(
    settings: SynthesisSettings, inputs: Inputs, outputs: Outputs, work: Work
) -> StageResult:
    texts = [(path / CELL_FILE).read_bytes() for path in inputs.values()]
    cells = [report.SynthesisCell.model_validate_json(text) for text in texts]
    table = report.report_of(cells, settings.seed)
    sheet, out = report.sheet_of(table), outputs["report"]
    write_bytes(out / REPORT_FILE, canonical_json(table))
    write_bytes(out / MARKDOWN_FILE, sheet.markdown.encode())
    write_bytes(out / PAGE_FILE, sheet.page.encode())
    count = sum(claim.shown for claim in table.claims)
    work.entry.rows(len(table.claims), count)
    sheet.show()
    return StageResult({"claims": len(table.claims), "shown": count}, page=sheet.page)


TABULATE = Record("tabulate_synthesis", _tabulate, ReportRef, "report")


@shell("tabulate_synthesis")
def tabulate_synthesis(
    settings: SynthesisSettings, cells: list[ReportRef], context: Context
) -> ReportRef:
    """Print and store the table of claims."""
    return run(TABULATE, settings, numbered("cell", cells), context, name="synthesis")
