"""Flyte shells of the scaffold study: the gate, the settings of a variant, the report."""

from contextlib import closing
from typing import NamedTuple

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import CheckpointRef, Context, GradedRef, ReportRef
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import GRADED, GradedProblem
from data_schemas.settings import EvaluationSettings, PipelineSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.engines.select import open_rollout
from tasks.gym.protocol import verifiers_of
from tasks.lab.recipes.rusca import lift, variants
from tasks.lab.recipes.rusca import report as scaffold_report
from tasks.lab.recipes.rusca.report import read_cell, read_scores, report_of
from tasks.lab.recipes.rusca.settings import ScaffoldSettings
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck, deck_of_facts
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.base_model import read_judge
from tasks.provenance.lineage.stage import stage
from tasks.store.files import canonical_json, write_bytes

LIFT_FILE = "lift.json"
REPORT_FILE = "scaffold.json"
MARKDOWN_FILE = "scaffold.md"
PAGE_FILE = "scaffold.html"


add_stages(
    {
        "vary_scaffold": Stage("lab.recipes.rusca.task", SMALL, "cpu", hours=WAIT),
        "prove_lift": Stage("lab.recipes.rusca.task", GPU_NODE, "rollout", hours=12, retries=3),
        "tabulate_scaffold": Stage(
            "lab.recipes.rusca.task", SMALL, "cpu", hours=WAIT, retries=2, cached=False
        ),
    }
)


class Varied(NamedTuple):
    """Settings of a variant's phase."""

    settings: RLSettings
    scaffold: ScaffoldSettings


class Proved(NamedTuple):
    """The problems that a scaffold is used on, and what the gate measured."""

    graded: GradedRef
    lift: ReportRef


@shell("vary_scaffold")
def vary_scaffold(
    settings: PipelineSettings, scaffold: ScaffoldSettings, variant: str, seed: int
) -> Varied:
    """Return the settings of a variant's phase, and its scaffold."""
    return Varied(variants.phase_of(settings, seed), variants.scaffold_for(scaffold, variant))


@shell("prove_lift")
def prove_lift(
    settings: RLSettings,
    scaffold: ScaffoldSettings,
    low: float,
    high: float,
    start: CheckpointRef,
    graded: GradedRef,
    context: Context,
) -> Proved:
    """Refuse a scaffold that the start model does not follow; keep a quantile band of problems.

    Args:
        settings: of the phase.
        scaffold: its form is what is measured.
        low: quantile of the score under bare prompts below which a problem is left out.
        high: quantile above which it is left out; 0 and 1 keep all.
        start: model of the phase.
        graded: problems of the phase.
        context: of the run.
    """
    lift.check_band(low, high)
    with stage("scaffold/lift", settings, context, code_digest("prove_lift")) as record:
        model = record.read("start", start)
        problems = read_table(record.read("graded", graded) / GRADED, GradedProblem)
        judge = read_judge(settings.rewards.judge, record)
        rewards = settings.rewards.model_copy(update={"judge": judge})
        with (
            closing(open_rollout(settings.engines, model)) as engine,
            open_scoring(None, rewards) as scorer,
        ):
            scorer.check_canaries(verifiers_of(problems))
            effect = lift.measure_lift(
                settings, scaffold, problems, engine, load_tokenizer(model), scorer.score
            )
        lift.require_lift(effect)
        survivors = lift.in_band(problems, effect, low, high)
        with record.output("graded") as out:
            write_table(out / GRADED, GradedProblem, survivors)
        with record.output("lift") as out:
            write_bytes(out / LIFT_FILE, canonical_json(effect))
        facts = {"bare": effect.bare, "shown": effect.shown, "lift": effect.lift.mean}
        facts |= {"low": low, "high": high}
        record.facts(facts | {"scaffold": canonical_json(scaffold).decode()})
        record.rows(len(problems), len(survivors))
        deck_of_facts("scaffold/lift", facts)
        return Proved(record.ref("graded", GradedRef), record.ref("lift", ReportRef))


@shell("tabulate_scaffold")
def tabulate_scaffold(
    settings: EvaluationSettings,
    names: list[str],
    max_tokens: int,
    lift_of_start: ReportRef,
    trainings: list[ReportRef],
    held_out_evaluations: list[ReportRef],
    context: Context,
) -> ReportRef:
    """Compare the variants, print and store the table of claims.

    Args:
        settings: of the held-out evaluations.
        names: variant and seed of every cell, 'ruscarl/0'; the next two lists have the same order,
            except that the evaluation of the start model is the first.
        max_tokens: of every phase.
        lift_of_start: of the gate.
        trainings: reports of the phases.
        held_out_evaluations: reports of the evaluations.
        context: of the run.
    """
    with stage("scaffold", settings, context, code_digest("tabulate_scaffold")) as record:
        before, *after = held_out_evaluations
        start = read_scores(record.read("start/held_out_evaluation", before))
        cells = []
        for name, training, held_out_evaluation in zip(names, trainings, after, strict=True):
            variant, _, seed = name.rpartition("/")
            folders = (
                record.read(f"{name}/training", training),
                record.read(f"{name}/held_out_evaluation", held_out_evaluation),
            )
            cells.append(read_cell(variant, int(seed), *folders))
        gate = (record.read("lift", lift_of_start) / LIFT_FILE).read_bytes()
        result = lift.Lift.model_validate_json(gate)
        report = report_of(settings, cells, start, result, max_tokens)
        sheet = scaffold_report.sheet(report)
        with record.output("report") as out:
            write_bytes(out / REPORT_FILE, canonical_json(report))
            write_bytes(out / MARKDOWN_FILE, sheet.markdown.encode())
            write_bytes(out / PAGE_FILE, sheet.page.encode())
        record.facts({f"score/{name}": value.mean for name, value in report.scores.items()})
        record.rows(len(cells), len(report.claims))
        deck(sheet.page)
        sheet.show()
        return record.ref("report", ReportRef)
