"""Flyte shells of retraining: released model, new files, learning value, watermark."""

from typing import NamedTuple

from rich.console import Console

from data_schemas.arrow import read_table
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.graded import GradedProblem
from data_schemas.intake import Assessment, Decision, InboxFile, Lesson, Outcome
from data_schemas.prompts import Problem
from data_schemas.settings import RetrainSettings
from tasks.engines.select import require
from tasks.interchange.readiness import fit_phase
from tasks.lineage.stage import stage, workplace
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.retraining import inbox, intake, watermark, worth
from tasks.retraining.released import find_released
from tasks.store.objects import localise

KNOWN_TABLES = ("problems.parquet", "held_out.parquet")
GRADED = "graded.parquet"


class Start(NamedTuple):
    """Start of a retraining."""

    model: CheckpointRef
    known: list[DatasetRef]
    held_out: DatasetRef


class News(NamedTuple):
    """New files of the inbox."""

    raw: DatasetRef
    files: list[InboxFile]
    decision: Decision
    is_enough: bool


class Assessed(NamedTuple):
    """Assessment of the learning value."""

    assessment: Assessment
    is_worth: bool


@shell("find_start")
def find_start(settings: RetrainSettings, store: StoreRef) -> Start:
    """Find the released model, the rows it knows and its held-out suites."""
    require(settings.rl.engines)
    found = find_released(settings.release.name, store.tracking_uri, store.uri)
    return Start(model=found.model, known=list(found.curated), held_out=found.curated[-1])


@shell("scan_inbox")
def scan_inbox(
    settings: RetrainSettings, known: list[DatasetRef], store: StoreRef, execution: Execution
) -> News:
    """Copy and check every file that came since the last time, and count what is new in them."""
    mark = watermark.load(store.uri, settings.inbox)
    files = watermark.new_files(mark, inbox.list_files(settings.inbox))
    with stage("intake", settings, store, execution, code_digest("scan_inbox")) as record:
        tables = [
            record.read(f"known/{place}", ref) / name
            for place, ref in enumerate(known, start=1)
            for name in KNOWN_TABLES
        ]
        keys = intake.content_keys(row for table in tables for row in read_table(table, Problem))
        with record.output("raw") as out:
            report = intake.take_in(settings.inbox, files, keys, out)
        decision = worth.decide_grading(settings, report)
        facts = {"rows": report.rows, "valid": report.valid, "fresh": report.fresh}
        record.facts(facts)
        record.rows(report.rows, report.fresh)
        deck_of_facts("intake", {**facts, "decision": decision.reason})
        raw = record.ref("raw", DatasetRef)
    return News(raw, files, decision, decision.outcome is Outcome.LEARN)


@shell("skip_grading")
def skip_grading(decision: Decision) -> Assessed:
    """Continue without grading: there are too few new rows."""
    return Assessed(Assessment(decision=decision, lesson=None), is_worth=False)


@shell("assess_learning_value")
def assess_learning_value(
    settings: RetrainSettings, curated: DatasetRef, graded: DatasetRef, store: StoreRef
) -> Assessed:
    """Decide by what the released model already solves, and fit the phase to what is there."""
    folder = localise(graded.uri, graded.digest, workplace(store))
    problems = read_table(folder / GRADED, GradedProblem)
    decision = worth.decide_learning(settings, [problem.pass_rate for problem in problems])
    lesson = None
    if decision.outcome is Outcome.LEARN:
        phase = fit_phase(settings.rl, problems, "rl")
        lesson = Lesson(curated=curated, graded=graded, phase=phase)
    return Assessed(Assessment(decision=decision, lesson=lesson), lesson is not None)


@shell("record_skip")
def record_skip(
    settings: RetrainSettings, decision: Decision, files: list[InboxFile], store: StoreRef
) -> str:
    """Report why nothing is trained; files without learning value are not read again."""
    if decision.outcome is Outcome.SKIP:
        watermark.advance(store.uri, settings.inbox, files)
    message = f"Not retrained: {decision.reason}."
    Console(soft_wrap=True, highlight=False).print(message, markup=False)
    return message


@shell("conclude")
def conclude(settings: RetrainSettings, page: str, files: list[InboxFile], store: StoreRef) -> str:
    """Mark the files as processed, now that all results are stored."""
    watermark.advance(store.uri, settings.inbox, files)
    return page
