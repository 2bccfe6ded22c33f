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
from data_schemas.rows import DEMONSTRATIONS, GRADED, Demonstration, GradedProblem
from tasks.engines.chat import load_tokenizer
from tasks.engines.select import open_rollout, opened_rollouts
from tasks.lab.recipes.promptcot import (
    formulas,
    labels,
    likelihood,
    rationales,
    report,
    seeds,
    writing,
)
from tasks.lab.recipes.promptcot.formulas import (
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
from tasks.lab.recipes.promptcot.preference import read_pairs, train_pairs
from tasks.lab.recipes.promptcot.settings import (
    PreferenceSettings,
    SynthesisRecipe,
    SynthesisSettings,
)
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck, deck_of_facts
from tasks.platform.progress import progress
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import StageRecord, stage
from tasks.store.files import canonical_json, write_bytes

CELL_FILE = "cell.json"
REPORT_FILE = "synthesis.json"
MARKDOWN_FILE = "synthesis.md"
PAGE_FILE = "synthesis.html"
UPDATES_FILE = "updates.json"


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


class Preferred(NamedTuple):
    """Outputs of the preference step."""

    model: CheckpointRef
    report: ReportRef


@shell("seed_recipe")
def seed_recipe(recipe: SynthesisRecipe, seed: int) -> SynthesisRecipe:
    """Set the seed of every part of the recipe."""
    parts = {name: part.model_copy(update={"seed": seed}) for name, part in recipe}
    return recipe.model_copy(update=parts)


@shell("begin_synthesis")
def begin_synthesis(settings: SynthesisSettings, context: Context) -> DatasetRef:
    """Write demonstrations of rationales, and problems without one."""
    code = code_digest("begin_synthesis")
    with stage("synthesis/seeds", settings, context, code) as record:
        with record.output("seeds") as out:
            facts = seeds.begin(settings.seed, out)
        record.facts(facts)
        deck_of_facts("synthesis/seeds", facts)
        return record.ref("seeds", DatasetRef)


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
    code = code_digest("measure_writer")
    with stage(f"synthesis/{name}", settings, context, code) as record:
        writes, plans = record.read("writer", writer), record.read("planner", planner)
        rows = read_table(record.read("seeds", seeds_of_run) / FRESH, WordedProblem)
        with opened_rollouts(settings.engines, (plans, writes)) as (planning, wording):
            tokenizer = load_tokenizer(writes)
            result = likelihood.measure(settings, rows, planning, wording, tokenizer)
        with record.output("report") as out:
            write_bytes(out / likelihood.REPORT, canonical_json(result))
        facts = {
            "valid_share": result.valid_share,
            "nll": sum(result.nll.values()) / len(result.nll),
            "unended": result.unended,
        }
        record.facts(facts)
        record.rows(len(rows), len(result.nll))
        deck_of_facts(f"synthesis/{name}", facts)
        return record.ref("report", ReportRef)


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
    code = code_digest("expect_rationales")
    with stage("synthesis/e_step", settings, context, code) as record:
        writes, plans = record.read("writer", writer), record.read("planner", planner)
        record.read("gate", gate)
        rows = read_table(record.read("seeds", seeds_of_run) / POOL, WordedProblem)
        with opened_rollouts(settings.engines, (plans, writes)) as (planning, wording):
            tokenizer = load_tokenizer(plans)
            result = rationales.expect(settings, rows, planning, wording, tokenizer)
        return _keep_rationales(record, "synthesis/e_step", len(rows), result)


@shell("maximise_rationales")
def maximise_rationales(
    settings: SynthesisSettings, planner: CheckpointRef, seeds_of_run: DatasetRef, context: Context
) -> DatasetRef:
    """M-step: write the planner's greedy rationale of every problem of the pool."""
    code = code_digest("maximise_rationales")
    with stage("synthesis/m_step", settings, context, code) as record:
        plans = record.read("planner", planner)
        rows = read_table(record.read("seeds", seeds_of_run) / POOL, WordedProblem)
        with closing(open_rollout(settings.engines, plans)) as engine:
            result = rationales.maximise(settings, rows, engine, load_tokenizer(plans))
        return _keep_rationales(record, "synthesis/m_step", len(rows), result)


def _keep_rationales(
    record: StageRecord, name: str, problems: int, result: rationales.Choices
) -> DatasetRef:
    demonstrations, choices = result
    with record.output("rationales") as out:
        write_table(out / DEMONSTRATIONS, Demonstration, demonstrations)
        write_table(out / RATIONALES, ChosenRationale, choices)
    facts = {"problems": problems, "without": problems - len(choices)}
    record.facts(facts)
    record.rows(problems, len(choices))
    deck_of_facts(name, facts)
    return record.ref("rationales", DatasetRef)


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
    code = code_digest("write_problems")
    with stage("synthesis/write", settings, context, code) as record:
        model = record.read("writer", writer)
        folder = record.read("seeds", seeds_of_run)
        pool = read_table(folder / POOL, WordedProblem)
        texts = [row.problem for row in (*pool, *read_table(folder / FRESH, WordedProblem))]
        concepts = writing.walk(pool, settings.problems, settings.seed)
        with closing(open_rollout(settings.engines, model)) as engine:
            decoded = writing.write(settings, concepts, engine, load_tokenizer(model))
        rows = writing.keep_new(decoded, texts)
        with record.output("written") as out:
            write_table(out / WRITTEN, WrittenProblem, rows)
            counts = report.count_reasons(out)
        facts = {reason or "kept": count for reason, count in sorted(counts.items())}
        record.facts(facts)
        record.rows(len(rows), counts[""])
        deck_of_facts("synthesis/write", facts)
        return record.ref("written", DatasetRef)


@shell("label_problems")
def label_problems(
    settings: SynthesisSettings, solver: CheckpointRef, written: DatasetRef, context: Context
) -> RawRef:
    """Label written problems by the majority of the solver's answers; write them as raw rows."""
    code = code_digest("label_problems")
    with stage("synthesis/label", settings, context, code) as record:
        model = record.read("solver", solver)
        rows = read_table(record.read("written", written) / WRITTEN, WrittenProblem)
        candidates = [row for row in rows if not row.reason]
        with closing(open_rollout(settings.engines, model)) as engine:
            labelled = labels.label(settings, candidates, engine, load_tokenizer(model))
        with record.output("raw") as out:
            labels.write_raw(labelled, out)
            write_table(out / LABELLED, LabelledProblem, labelled)
        count, wrong = labels.audit(labelled)
        facts = {"problems": len(candidates), "labels": count, "wrong_labels": wrong}
        record.facts(facts)
        record.rows(len(candidates), count)
        deck_of_facts("synthesis/label", facts)
        return record.ref("raw", RawRef)


@shell("prefer")
def prefer(
    settings: PreferenceSettings, start: CheckpointRef, graded: GradedRef, context: Context
) -> Preferred:
    """Train a model by DPO on the right and wrong answers that graded its problems."""
    with stage("preference", settings, context, code_digest("prefer")) as record:
        model, folder = record.read("start", start), record.read("graded", graded)
        pairs = read_pairs(folder, model)
        with record.output("model") as out:
            updates = list(progress(train_pairs(settings, folder, model, pairs, out), "preference"))
        with record.output("report") as out:
            write_table(out / PAIRS, PreferencePair, pairs)
            dumped = [update.model_dump(mode="json") for update in updates]
            write_bytes(out / UPDATES_FILE, canonical_json(dumped))
        for number, update in enumerate(updates, start=1):
            record.metrics(number, update.model_dump())
        facts = {
            "pairs": len(pairs),
            "updates": len(updates),
            "first_loss": updates[0].loss,
            "last_loss": updates[-1].loss,
            "last_accuracy": updates[-1].accuracy,
        }
        record.facts(facts)
        record.rows(len(pairs), len(pairs))
        deck_of_facts("preference", facts)
        return Preferred(record.ref("model", CheckpointRef), record.ref("report", ReportRef))


@shell("take_as_many")
def take_as_many(
    settings: SynthesisSettings, synthesised: GradedRef, drawn: GradedRef, context: Context
) -> Equal:
    """Take as many synthesised as drawn problems for RL."""
    code = code_digest("take_as_many")
    with stage("synthesis/as_many", settings, context, code) as record:
        sides = {"synthesised": synthesised, "drawn": drawn}
        results = {
            name: read_table(record.read(f"all/{name}", ref) / GRADED, GradedProblem)
            for name, ref in sides.items()
        }
        for name, pool in zip(sides, formulas.as_many(*results.values()), strict=True):
            with record.output(name) as out:
                write_table(out / GRADED, GradedProblem, pool)
            record.facts({name: len(pool)})
        record.rows(sum(map(len, results.values())), 2 * min(map(len, results.values())))
        return Equal(*(record.ref(name, GradedRef) for name in sides))


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
    code = code_digest("measure_synthesis")
    with stage("synthesis/measure", settings, context, code) as record:
        likelihoods = {"before": before, "expected": expected, "after": after}
        graded_folder = record.read("graded", graded)
        cell = report.read_cell(
            {name: record.read(name, ref) for name, ref in likelihoods.items()},
            record.read("written", written),
            record.read("labelled", labelled),
            (record.read("synthesised", synthesised), record.read("held_out", held_out)),
            (graded_folder, record.read("drawn", drawn)),
            record.read("preference", preference),
            [record.read(f"evaluation/{place}", ref) for place, ref in enumerate(evaluations)],
        )
        with record.output("report") as out:
            write_bytes(out / CELL_FILE, canonical_json(cell))
        return record.ref("report", ReportRef)


@shell("tabulate_synthesis")
def tabulate_synthesis(
    settings: SynthesisSettings, cells: list[ReportRef], context: Context
) -> ReportRef:
    """Print and store the table of claims."""
    code = code_digest("tabulate_synthesis")
    with stage("synthesis", settings, context, code) as record:
        results = [
            report.Cell.model_validate_json(
                (record.read(f"cell/{place}", ref) / CELL_FILE).read_bytes()
            )
            for place, ref in enumerate(cells)
        ]
        table = report.report_of(results, settings.seed)
        sheet = report.sheet(table)
        with record.output("report") as out:
            write_bytes(out / REPORT_FILE, canonical_json(table))
            write_bytes(out / MARKDOWN_FILE, sheet.markdown.encode())
            write_bytes(out / PAGE_FILE, sheet.page.encode())
        count = sum(claim.shown for claim in table.claims)
        record.facts({"claims": len(table.claims), "shown": count})
        record.rows(len(table.claims), count)
        deck(sheet.page)
        sheet.show()
        return record.ref("report", ReportRef)
