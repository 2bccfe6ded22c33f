"""Flyte shells of retraining: released model, new files, learning value, what became of them."""

import json
from functools import partial
from typing import NamedTuple

from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    NO_DATASET,
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    RawRef,
    StoreRef,
)
from data_schemas.drift import NightDetails
from data_schemas.intake import (
    Assessment,
    Examination,
    FileStatus,
    InboxFile,
    IntakeDecision,
    IntakeOutcome,
    Lesson,
    Teaching,
)
from data_schemas.pass_rates import GradedProblem
from data_schemas.reports import GateDecision
from data_schemas.rows import GRADED, HELD_OUT, PROBLEMS, REPLAYED, MixReport, Problem
from data_schemas.rows import REPORT as MIX_REPORT
from data_schemas.settings import RetrainSettings
from tasks.formats import nights
from tasks.formats.content import content_keys
from tasks.formats.known import read_known
from tasks.formats.readiness import fit_phase
from tasks.gym.table import require_judge
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.provenance.lineage.registry import GATE_FILE, RELEASED
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.lineage.statements import chain
from tasks.provenance.release import evidence, monitors
from tasks.retraining import demo, drift, inbox, outcome, processed, ruling, suspicion, worth
from tasks.retraining.intake import approvals, count, take_in
from tasks.stages.runner import Inputs, Outputs, Record, StageResult, Work, run
from tasks.store.interface import store_at
from tasks.store.objects import localise


class News(NamedTuple):
    """New files of the inbox."""

    raw: RawRef
    files: list[InboxFile]
    decision: IntakeDecision
    is_enough: bool


class ExaminationOutputs(NamedTuple):
    """What the rows of the files are."""

    examination: Examination
    is_enough: bool


class AssessmentOutputs(NamedTuple):
    """Assessment of the learning value."""

    assessment: Assessment
    is_worth: bool
    by_sft: bool
    """Fine-tune one model before RL."""
    by_merge: bool
    """Fine-tune two models and merge them before RL."""


class DemoNightFiles(NamedTuple):
    """Where the files of a night of the demonstration are."""

    inbox: str
    store: str


@shell("drop_files")
def drop_files(night: str, after: str, store: StoreRef) -> DemoNightFiles:
    """Put the files of one night of the demonstration into its inbox.

    Args:
        night: one of `tasks.retraining.demo.NIGHTS`.
        after: result of the night before, which comes first.
        store: of the run; the inbox is in it.
    """
    inbox = f"{store.uri}/inbox"
    demo.drop(night, inbox)
    return DemoNightFiles(inbox=inbox, store=store.uri)


@shell("name_released")
def name_released(settings: RetrainSettings, after: str) -> str:
    """Name the released model for an audit.

    Args:
        settings: `release.name`.
        after: result of the retraining, which comes first.
    """
    return f"models:/{settings.release.name}@{RELEASED}"


def _take_in(settings: RetrainSettings, _: Inputs, outputs: Outputs, work: Work) -> StageResult:
    store, execution = work.context
    listing = inbox.list_files(settings.inbox)
    history = processed.load(store.uri, settings.inbox)
    files, rulings = processed.select(history, listing.files), processed.rulings(history)
    report, copies, rejected = take_in(
        settings.inbox, files, listing.reasons, outputs["raw"], rulings
    )
    for approval in approvals(copies, rulings):
        work.entry.read(ruling.ROLE, approval)
    decision = worth.decide_reading(report, processed.waiting(history, listing.files))
    work.entry.rows(len(listing.files), len(copies))
    return StageResult(
        {
            "listed": len(listing.files),
            "taken": len(copies),
            "left": len(report.left),
            "decision": decision.reason,
        },
        values={
            "files": copies,
            "decision": decision,
            "is_enough": decision.outcome is IntakeOutcome.LEARN,
        },
        then=partial(
            processed.settle,
            store.uri,
            settings.inbox,
            rejected,
            FileStatus.REJECTED,
            execution.id,
        ),
    )


SCAN_INBOX = Record("scan_inbox", _take_in, News)


@shell("scan_inbox")
def scan_inbox(settings: RetrainSettings, context: Context) -> News:
    """Copy every file of the inbox that was not processed yet."""
    return run(SCAN_INBOX, settings, {}, context, name="intake")


@shell("skip_curation")
def skip_curation(decision: IntakeDecision) -> ExaminationOutputs:
    """Continue without curation: there is no new file."""
    return ExaminationOutputs(Examination(decision=decision, curated=NO_DATASET), is_enough=False)


@shell("examine_rows")
def examine_rows(
    settings: RetrainSettings,
    files: IntakeDecision,
    listed: list[InboxFile],
    curated: DatasetRef,
    known: list[DatasetRef],
    context: Context,
) -> ExaminationOutputs:
    """Count the curated rows that the released model does not know, and decide on grading.

    Args:
        settings: `min_rows`.
        files: the decision to read them.
        listed: the files.
        curated: their rows.
        known: curated sets and mixtures that led to the released model.
        context: of the run.
    """
    folder, *others = (
        localise(ref.uri, ref.digest, workplace(context.store)) for ref in (curated, *known)
    )
    sets = {ref.digest: other for ref, other in zip(known, others, strict=True)}
    earlier = [row for name in (PROBLEMS, HELD_OUT) for row in read_known(sets, name, Problem)]
    unmixed = [one for one in others if not (one / MIX_REPORT).exists()]  # mixtures repeat them
    facets = nights.facets([folder, *unmixed])
    faulty = suspicion.suspects(folder, earlier, listed)
    usable = suspicion.without(folder, suspicion.digests(listed, faulty))
    change = drift.measure(earlier, usable, facets)
    suspects = faulty | suspicion.strangers(
        settings.min_rows, folder, earlier, facets, listed, faulty
    )
    digests = suspicion.digests(listed, suspects)
    counts = count(folder, suspicion.without(folder, digests), content_keys(earlier))
    decision = worth.decide_grading(settings, files.reason, counts, change, suspects)
    page = NightDetails(
        drift=change,
        refused=nights.refusals(folder),
        conflicts=suspicion.conflicts(folder, earlier, listed, suspects),
    )
    nights.save(context.store.uri, context.execution.id, page)
    facts = {**counts.refused, "drift": change.explain(), "decision": decision.reason}
    deck_of_facts("examine_rows", facts)
    return ExaminationOutputs(
        Examination(decision=decision, curated=curated, held=sorted(digests)),
        is_enough=decision.outcome is IntakeOutcome.LEARN,
    )


@shell("skip_grading")
def skip_grading(settings: RetrainSettings, decision: IntakeDecision) -> AssessmentOutputs:
    """Continue without grading: there are too few new rows."""
    assessment = Assessment(decision=decision, lesson=Lesson(phase=settings.rl))
    return AssessmentOutputs(assessment, is_worth=False, by_sft=False, by_merge=False)


@shell("assess_learning_value")
def assess_learning_value(
    settings: RetrainSettings,
    rows: IntakeDecision,
    curated: DatasetRef,
    graded: GradedRef,
    demonstrations: Teaching,
    context: Context,
) -> AssessmentOutputs:
    """Decide by what the released model already solves, and fit the phase to what is there.

    Args:
        settings: `min_unsolved_share` and the phase.
        rows: the decision to grade them.
        curated: their problems, mixed with old ones.
        graded: with the pass rates of the released model.
        demonstrations: how verified ones are used.
        context: of the run.
    """
    folder = localise(graded.uri, graded.digest, workplace(context.store))
    mixture = localise(curated.uri, curated.digest, workplace(context.store))
    replayed = set(json.loads((mixture / REPLAYED).read_bytes()))
    problems = read_table(folder / GRADED, GradedProblem)
    rates = [problem.pass_rate for problem in problems if problem.id not in replayed]
    old = [problem.pass_rate for problem in problems if problem.id in replayed]
    nights.add_pass_rates(context.store.uri, context.execution.id, {"new": rates, "replayed": old})
    mixed = MixReport.model_validate_json((mixture / MIX_REPORT).read_bytes())
    decision, teaching = worth.decide_learning(
        settings, rows, rates, len(old), mixed, demonstrations
    )
    lesson = Lesson(phase=settings.rl)
    if decision.outcome is IntakeOutcome.LEARN:
        phase = fit_phase(settings.rl, problems, "rl")
        held_out = read_table(mixture / HELD_OUT, Problem)
        require_judge(settings.evaluation.judge, "evaluation.judge", held_out)
        candidates = [one for one in problems if phase.steps and one.domain in phase.domains]
        require_judge(phase.rewards.judge, "rl.rewards.judge", candidates)
        lesson = Lesson(curated=curated, graded=graded, phase=phase, teaching=teaching)
    return AssessmentOutputs(
        Assessment(decision=decision, lesson=lesson),
        is_worth=decision.outcome is IntakeOutcome.LEARN,
        by_sft=teaching is Teaching.SFT,
        by_merge=teaching is Teaching.MERGE,
    )


@shell("keep_start")
def keep_start(start: CheckpointRef) -> CheckpointRef:
    """Continue without fine-tuning."""
    return start


@shell("record_skip")
def record_skip(
    settings: RetrainSettings, decision: IntakeDecision, files: list[InboxFile], context: Context
) -> str:
    """Report why nothing is trained; files without learning value are not read again."""
    for status, settled in outcome.without_training(decision, files).items():
        processed.settle(context.store.uri, settings.inbox, settled, status, context.execution.id)
    question = ruling.question(decision.held, settings.inbox, context.store.uri)
    return f"Not retrained: {decision.reason}.{question}"


RETRAIN = "rl/retrain"
"""The phase of RL of a night."""


@shell("conclude")
def conclude(
    settings: RetrainSettings,
    page: str,
    decision: IntakeDecision,
    candidate: CheckpointRef,
    files: list[InboxFile],
    context: Context,
) -> str:
    """Record what became of the files, now that all results are stored."""
    statements = chain(context.store.uri, [candidate.statement])
    practised = evidence.practised(statements, workplace(context.store))
    learned_from = practised.explain() if practised else "None of its rows was trained on"
    facts = statements[candidate.statement].facts
    steps = monitors.steps_behind(statements, workplace(context.store)).get(RETRAIN, [])
    nights.add_slices(context.store.uri, context.execution.id, steps)
    suspects, learned = outcome.divide(decision, files)
    gate = GateDecision.model_validate_json(store_at(f"{candidate.uri}/{GATE_FILE}").read_bytes())
    end = outcome.conclude(facts, learned, gate.failed)
    processed.settle(
        context.store.uri, settings.inbox, suspects, FileStatus.HELD, context.execution.id
    )
    if end.status is not None:
        processed.settle(
            context.store.uri, settings.inbox, learned, end.status, context.execution.id
        )
    question = ruling.question(decision.held, settings.inbox, context.store.uri)
    why = f"{learned_from}. Why it was trained: {decision.reason}.{question}"
    return f"{end.message} {why} Report: {page}"
