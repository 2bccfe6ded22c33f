"""Flyte shells of the scaffold study: the gate, the settings of a variant, the report."""

from contextlib import closing
from typing import NamedTuple

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import CheckpointRef, Context, GradedRef, ReportRef
from data_schemas.pass_rates import GradedProblem
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import GRADED
from data_schemas.settings import EvaluationSettings, PipelineSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.engines.select import open_rollout
from tasks.gym.protocol import verifiers_of
from tasks.lab.recipes.rusca import lift, variants
from tasks.lab.recipes.rusca.report import read_cell, read_scores, report_of, sheet_of
from tasks.lab.recipes.rusca.settings import ScaffoldSettings
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.judges import read_judge
from tasks.stages.runner import Facts, Inputs, Outputs, Record, StageResult, Work, run
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


class VariantSettings(NamedTuple):
    """Settings of a variant's phase."""

    settings: RLSettings
    scaffold: ScaffoldSettings


class ScaffoldProblems(NamedTuple):
    """The problems that a scaffold is used on, and what the gate measured."""

    graded: GradedRef
    lift: ReportRef


@shell("vary_scaffold")
def vary_scaffold(
    settings: PipelineSettings, scaffold: ScaffoldSettings, variant: str, seed: int
) -> VariantSettings:
    """Return the settings of a variant's phase, and its scaffold."""
    return VariantSettings(
        variants.phase_of(settings, seed), variants.scaffold_for(scaffold, variant)
    )


def _prove(
    settings: RLSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    scaffold: ScaffoldSettings,
    low: float,
    high: float,
) -> Facts:
    lift.check_band(low, high)
    model, problems = inputs["start"], read_table(inputs["graded"] / GRADED, GradedProblem)
    judge = read_judge(settings.rewards.judge, work.entry)
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
    write_table(outputs["graded"] / GRADED, GradedProblem, survivors)
    write_bytes(outputs["lift"] / LIFT_FILE, canonical_json(effect))
    work.entry.rows(len(problems), len(survivors))
    facts = {"bare": effect.bare, "shown": effect.shown, "lift": effect.lift.mean}
    return facts | {"low": low, "high": high, "scaffold": canonical_json(scaffold).decode()}


PROVE = Record("prove_lift", _prove, ScaffoldProblems)


@shell("prove_lift")
def prove_lift(
    settings: RLSettings,
    scaffold: ScaffoldSettings,
    low: float,
    high: float,
    start: CheckpointRef,
    graded: GradedRef,
    context: Context,
) -> ScaffoldProblems:
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
    reads, others = {"start": start, "graded": graded}, (scaffold, low, high)
    return run(PROVE, settings, reads, context, others, name="scaffold/lift")


def _tabulate(
    settings: EvaluationSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    names: list[str],
    max_tokens: int,
) -> StageResult:
    start, cells = read_scores(inputs["start/held_out_evaluation"]), []
    for name in names:
        variant, _, seed = name.rpartition("/")
        folders = inputs[f"{name}/training"], inputs[f"{name}/held_out_evaluation"]
        cells.append(read_cell(variant, int(seed), *folders))
    result = lift.Lift.model_validate_json((inputs["lift"] / LIFT_FILE).read_bytes())
    report = report_of(settings, cells, start, result, max_tokens)
    sheet, out = sheet_of(report), outputs["report"]
    write_bytes(out / REPORT_FILE, canonical_json(report))
    write_bytes(out / MARKDOWN_FILE, sheet.markdown.encode())
    write_bytes(out / PAGE_FILE, sheet.page.encode())
    work.entry.rows(len(cells), len(report.claims))
    sheet.show()
    facts = {f"score/{name}": value.mean for name, value in report.scores.items()}
    return StageResult(facts, page=sheet.page)


TABULATE = Record("tabulate_scaffold", _tabulate, ReportRef, "report")


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
    before, *after = held_out_evaluations
    reads = {"start/held_out_evaluation": before}
    for name, training, evaluation in zip(names, trainings, after, strict=True):
        reads |= {f"{name}/training": training, f"{name}/held_out_evaluation": evaluation}
    reads |= {"lift": lift_of_start}
    return run(TABULATE, settings, reads, context, [names, max_tokens], name="scaffold")
