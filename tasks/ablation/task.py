"""Flyte shells of the ablation study: the settings of a variant, and the report."""

from rich.console import Console

from data_schemas.artifacts import Execution, ReportRef, StoreRef
from data_schemas.settings import EvaluationSettings, PipelineSettings, RLSettings
from tasks.ablation import text, variants
from tasks.ablation.measures import read_accuracy, read_cell
from tasks.ablation.picture import curves, picture
from tasks.ablation.report import report_of
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck
from tasks.platform.shell import shell
from tasks.platform.tables import SCREEN_WIDTH
from tasks.provenance.lineage.stage import stage
from tasks.store.files import canonical_json, write_bytes

REPORT_FILE = "ablation.json"
MARKDOWN_FILE = "ablation.md"
PICTURE_FILE = "ablation.png"
CURVES_FILE = "curves.png"
PAGE_FILE = "ablation.html"


@shell("vary")
def vary(settings: PipelineSettings, variant: str, seed: int) -> RLSettings:
    """Return the settings of a variant's phase."""
    return variants.phase_of(settings, variant, seed)


@shell("tabulate")
def tabulate(
    settings: EvaluationSettings,
    names: list[str],
    max_tokens: int,
    trainings: list[ReportRef],
    held_out_evaluations: list[ReportRef],
    store: StoreRef,
    execution: Execution,
) -> ReportRef:
    """Measure every cell, build the report, print it and store it with its figure.

    Args:
        settings: settings of the held-out evaluations.
        names: variant and seed of every cell, 'gspo/0'; the next two lists have the same order,
            except that the evaluation of the start model is the first.
        max_tokens: token budget of every phase.
        trainings: reports of the phases.
        held_out_evaluations: reports of the evaluations of the start model and of their models.
        store: store of the run.
        execution: execution of the workflow.
    """
    with stage("ablation", settings, store, execution, code_digest("tabulate")) as record:
        before, *after = held_out_evaluations
        start = read_accuracy(record.read("start/held_out_evaluation", before))
        cells = []
        for name, training, held_out_evaluation in zip(names, trainings, after, strict=True):
            variant, _, seed = name.rpartition("/")
            folders = (
                record.read(f"{name}/training", training),
                record.read(f"{name}/held_out_evaluation", held_out_evaluation),
            )
            cells.append(read_cell(variant, int(seed), *folders))
        chosen = variants.select_variants(",".join(cell.variant for cell in cells))
        report = report_of(settings, chosen, cells, start, max_tokens)
        with record.output("report") as out:
            drawn = picture(report)
            write_bytes(out / REPORT_FILE, canonical_json(report))
            write_bytes(out / MARKDOWN_FILE, text.markdown(report).encode())
            write_bytes(out / PICTURE_FILE, drawn)
            write_bytes(out / CURVES_FILE, curves(report))
            write_bytes(out / PAGE_FILE, text.page(report, drawn).encode())
        record.facts({f"accuracy/{line.variant}": line.accuracy.mean for line in report.lines})
        record.rows(len(cells), len(report.lines))
        deck(text.page(report, drawn))
        # On a narrow terminal wrapped lines are better than cells that are cut off.
        Console(width=max(Console().width, SCREEN_WIDTH)).print(text.screen(report))
        return record.ref("report", ReportRef)
