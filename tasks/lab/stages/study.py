"""Flyte tasks of a study: a node per variant, per seed and per cell, then one table.

Three dynamic tasks, because Flyte allows 100 nodes in a workflow: a study may have 100 variants and
100 seeds, and a cell 100 nodes. Every stage of a cell is in Flyte's cache, so a study that was
stopped goes on.
"""

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import Context, GradedRef, ReportRef
from data_schemas.pass_rates import GradedProblem
from data_schemas.study import InjectedNoise, Measures, StudyCell, StudyEvidence, StudyPlan
from tasks.lab.study import declaration, evidence_file, injected_noise, measures, report
from tasks.lab.study.page import page
from tasks.lab.study.runs import find_run
from tasks.platform.resources import SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import fan_out, shell
from tasks.rl.phase import PROBLEMS_FILE
from tasks.stages.runner import Facts, Inputs, Outputs, Record, StageResult, Work, numbered, run
from tasks.store.files import canonical_json, write_bytes

MEASURES_FILE = "measures.json"
EVIDENCE_FILE = "evidence.json"
MARKDOWN_FILE = "study.md"
PAGE_FILE = "study.html"
PROBLEMS = "graded"
"""Role of the problems of a cell."""
_MODULE = "lab.stages.study"

add_stages(
    {
        # Reads a file from outside.
        "read_study": Stage(_MODULE, SMALL, "cpu", hours=WAIT, cached=False),
        # Their cells are cached stage by stage.
        "study_cells": Stage(_MODULE, SMALL, "cpu", hours=24 * 28, retries=2, cached=False),
        "study_variant": Stage(_MODULE, SMALL, "cpu", hours=24 * 28, retries=2, cached=False),
        "study_cell": Stage(_MODULE, SMALL, "cpu", hours=24 * 28, retries=2, cached=False),
        "inject_noise": Stage(_MODULE, SMALL, "cpu", hours=WAIT),
        # Ends the execution of its cell, which a hit in the cache would not.
        "measure_cell": Stage(_MODULE, SMALL, "cpu", hours=WAIT, retries=2, cached=False),
        # Prints its table, and writes a file outside.
        "tabulate_study": Stage(_MODULE, SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    }
)


@shell("read_study")
def read_study(of: str, against: str, seeds: int) -> StudyPlan:
    """Read a study, or make one of two settings files, and refuse what cannot run."""
    return declaration.read_study(of, against, seeds)


@fan_out("study_cells")
def study_cells(plan: StudyPlan, store: str) -> list[list[ReportRef]]:
    """Run every variant in a dynamic task of its own."""
    # Two levels: Flyte takes at most 100 nodes of one workflow, a dynamic one included.
    variants = list(dict.fromkeys(cell.variant for cell in plan.cells))
    return [
        study_variant(cells=[cell for cell in plan.cells if cell.variant == name], store=store)
        for name in variants
    ]


@fan_out("study_variant")
def study_variant(cells: list[StudyCell], store: str) -> list[ReportRef]:
    """Run every seed of a variant in a dynamic task of its own."""
    return [study_cell(cell=cell, store=store) for cell in cells]


@fan_out("study_cell")
def study_cell(cell: StudyCell, store: str) -> ReportRef:
    """Run what the study names, and measure it."""
    wired = find_run(cell.run).wire(cell, store)
    return measure_cell(
        cell=cell,
        names=wired.names,
        reports=wired.reports,
        graded=wired.graded,
        context=wired.context,
    )


def _inject(noise: InjectedNoise, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    before = read_table(inputs["graded"] / PROBLEMS_FILE, GradedProblem)
    after = injected_noise.with_noise(before, noise)
    write_table(outputs["graded"] / PROBLEMS_FILE, GradedProblem, after)
    work.entry.rows(len(before), len(after))
    noisy = sum(one != other for one, other in zip(before, after, strict=True))
    return {"noisy": noisy, "problems": len(after)}


INJECT_NOISE = Record("inject_noise", _inject, GradedRef, "graded")


@shell("inject_noise")
def inject_noise(noise: InjectedNoise, graded: GradedRef, context: Context) -> GradedRef:
    """Let some verifiers of the training problems err at known rates."""
    return run(INJECT_NOISE, noise, {"graded": graded}, context)


def _measure(cell: StudyCell, inputs: Inputs, outputs: Outputs, _: Work) -> Facts:
    reports = {role: path for role, path in inputs.items() if not role.startswith(f"{PROBLEMS}/")}
    problems = [path for role, path in inputs.items() if role.startswith(f"{PROBLEMS}/")]
    cell_measures = measures.measure(cell, reports, problems)
    write_bytes(outputs["report"] / MEASURES_FILE, canonical_json(cell_measures))
    return cell_measures.metrics


MEASURE_CELL = Record("measure_cell", _measure, ReportRef, "report")


@shell("measure_cell")
def measure_cell(
    cell: StudyCell,
    names: list[str],
    reports: list[ReportRef],
    graded: list[GradedRef],
    context: Context,
) -> ReportRef:
    """Read what the reports of a cell say, as one small file."""
    name, problems = f"study/{cell.variant}/{cell.seed}", numbered(PROBLEMS, graded)
    reads = dict(zip(names, reports, strict=True)) | problems
    return run(MEASURE_CELL, cell, reads, context, name=name)


def _tabulate(
    plan: StudyPlan, inputs: Inputs, outputs: Outputs, work: Work, evidence: str
) -> StageResult:
    texts = [(path / MEASURES_FILE).read_bytes() for path in inputs.values()]
    cells = [Measures.model_validate_json(text) for text in texts]
    numbers: StudyEvidence = evidence_file.evidence_of(plan, cells)
    sheet, out = report.sheet(numbers), outputs["report"]
    write_bytes(out / EVIDENCE_FILE, evidence_file.dumped(numbers))
    write_bytes(out / MARKDOWN_FILE, sheet.markdown.encode())
    write_bytes(out / PAGE_FILE, page(numbers).encode())
    if evidence:
        evidence_file.write(numbers, evidence)
    work.entry.rows(len(cells), len(cells))
    report.show(numbers)
    facts = {"cells": len(cells), "numbers": len(numbers.cells)}
    return StageResult(facts, page=page(numbers))


TABULATE = Record("tabulate_study", _tabulate, ReportRef, "report")


@shell("tabulate_study")
def tabulate_study(
    plan: StudyPlan, reports: list[list[ReportRef]], evidence: str, context: Context
) -> ReportRef:
    """Compare all cells, print the table, and write page and evidence.

    Args:
        plan: the study.
        reports: measures by variant and seed.
        evidence: folder that the evidence file is written to as well; '' = none.
        context: of the run.
    """
    reads = numbered("cell", [ref for variant in reports for ref in variant])
    return run(TABULATE, plan, reads, context, [evidence], name="study")
