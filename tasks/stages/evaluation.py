"""Flyte tasks of stage 6: evaluate models on the held-out suites, pool several runs, and compare
the last model with all earlier ones; also compare two verifiers."""

from collections import Counter
from contextlib import closing
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    CandidateRef,
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.gold_decisions import AppliedDecision
from data_schemas.machine_settings import Precision
from data_schemas.reports import EvaluationReport
from data_schemas.rl_settings import RewardSettings
from data_schemas.rows import DECISIONS, PROBLEMS, Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.engines.select import open_rollout
from tasks.engines.support import in_precision
from tasks.errors import typed
from tasks.evaluation import (
    baselines,
    earlier_models,
    pooling,
    precision,
    respondents,
    runner,
    solve_rates,
)
from tasks.evaluation.agreement import (
    compare_all,
    counts_table,
    facts,
    read_graded,
    rows_table,
    select_disputed,
    to_csv,
)
from tasks.evaluation.doubtful_golds import find
from tasks.evaluation.echoes import held_out_echoes
from tasks.evaluation.formats import export as export_formats
from tasks.evaluation.formats import score_logs
from tasks.evaluation.journal import open_journal
from tasks.formats.benchmark_file import read_suites
from tasks.formats.decisions import FILE as ANNOTATIONS
from tasks.formats.decisions import write_annotations
from tasks.formats.progression import read_evaluation, write_precisions
from tasks.formats.solve_rates import FILE as SOLVE_RATES
from tasks.formats.solve_rates import write_rates
from tasks.gym.judging.opening import open_chat
from tasks.gym.protocol import verifiers_of
from tasks.gym.scoring.service import ScoringService
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import fan_out, shell
from tasks.platform.tables import Screen, show_table
from tasks.provenance.lineage.judges import read_judge
from tasks.provenance.lineage.stage import StageRecord
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, numbered, run
from tasks.store import location
from tasks.store.interface import store_at

HELD_OUT = "held_out.parquet"


ANSWERS = "answers"
"""Input of an evaluation: one of the same weights in this execution."""


def _evaluate(
    settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, work: Work, name: str
) -> Facts:
    if ANSWERS in inputs:
        problems, _ = questions(inputs["curated"])
        report = runner.take_over(inputs[ANSWERS], name, outputs["report"])
        return {"same_as": report.same_as, **_facts(report, problems, work.entry)}
    folder, digest = inputs["model"], work.refs["model"].digest
    rewards = RewardSettings(judge=read_judge(settings.judge, work.entry))
    with (
        closing(open_rollout(settings.engines, folder)) as engine,
        open_scoring(folder, rewards) as scorer,
    ):
        answers = respondents.Checkpoint(engine, load_tokenizer(folder), settings)
        candidate = runner.Candidate(name, digest, answers)
        return _measure(settings, candidate, scorer, inputs, outputs, work)


def _measure(
    settings: EvaluationSettings,
    candidate: runner.Candidate,
    scorer: ScoringService,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
) -> Facts:
    """Let a candidate answer what was held out, beside what answers without a model."""
    problems, repeats = questions(inputs["curated"])
    journal = open_journal(work.context.store.uri, candidate.checkpoint, settings, problems)
    scorer.check_canaries(verifiers_of(problems))
    report = runner.evaluate(
        settings,
        candidate,
        problems,
        scorer,
        outputs["report"],
        journal,
        repeats,
        floors=held_out_echoes(inputs["curated"] / PROBLEMS, problems),
        baselines=baselines.measure(inputs["curated"] / PROBLEMS, problems),
    )
    return _facts(report, problems, work.entry)


EVALUATE = Record("evaluate", _evaluate, ReportRef, "report", shares=ANSWERS)


@shell("evaluate")
def evaluate(
    settings: EvaluationSettings,
    name: str,
    model: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> ReportRef:
    """Answer and score every held-out problem with one model.

    The answers of a model with the same weights are taken over, if this execution has them.
    """
    reads = {"model": model, "curated": curated}
    return run(EVALUATE, settings, reads, context, [name], name=f"evaluate/{name}")


def _evaluate_endpoint(
    settings: EvaluationSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    name: str,
    address: str,
    served_as: str,
) -> Facts:
    rewards = RewardSettings(judge=read_judge(settings.judge, work.entry))
    client = open_chat(address, served_as, respondents.chat_sampling(settings))
    with closing(client), open_scoring(None, rewards) as scorer:
        candidate = runner.Candidate(name, client.name, respondents.ServedModel(client, settings))
        return _measure(settings, candidate, scorer, inputs, outputs, work)


EVALUATE_ENDPOINT = Record("evaluate_endpoint", _evaluate_endpoint, ReportRef, "report")


@shell("evaluate_endpoint")
def evaluate_endpoint(
    settings: EvaluationSettings,
    name: str,
    address: str,
    served_as: str,
    curated: DatasetRef,
    context: Context,
) -> ReportRef:
    """Let an OpenAI-compatible endpoint answer every held-out problem, and score its answers."""
    others = (name, address, served_as)
    reads, place = {"curated": curated}, f"evaluate/{name}"
    return run(EVALUATE_ENDPOINT, settings, reads, context, others, name=place)


@fan_out("evaluate_all")
def evaluate_all(
    settings: EvaluationSettings,
    models: list[CandidateRef],
    base: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> list[ReportRef]:
    """Evaluate every model in a task of its own; a single one is evaluated beside the base."""
    own_name = "base" if models[0].name != "base" else "base_model"
    beside = [] if len(models) > 1 else [CandidateRef(name=own_name, address="", model=base)]
    return [
        evaluate_endpoint(
            settings=settings,
            name=one.name,
            address=one.address,
            served_as=one.served_as,
            curated=curated,
            context=context,
        )
        if one.model is None
        else evaluate(
            settings=_in_precision(settings, one.precision),
            name=one.name,
            model=one.model,
            curated=curated,
            context=context,
        )
        for one in (*beside, *models)
    ]


def _in_precision(settings: EvaluationSettings, precision: str) -> EvaluationSettings:
    if not precision:
        return settings
    engines = in_precision(settings.engines, Precision(precision))
    return settings.model_copy(update={"engines": engines})


def _measure_precisions(
    settings: EvaluationSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    name: str,
    precisions: str,
) -> Facts:
    problems, _ = questions(inputs["curated"])
    folders = [path for role, path in inputs.items() if role.startswith("scores/")]
    words = [settings.engines.precision.value, *precisions.split(",")]
    scores = dict(zip(words, folders, strict=True))
    reports = precision.measure(settings, name, inputs["model"], problems, scores)
    write_precisions(outputs["precisions"], reports)
    work.entry.rows(len(problems), sum(one.slices[0].responses for one in reports))
    return {f"k3/{one.precision}": one.slices[0].k3 for one in reports}


PRECISION = Record("measure_precisions", _measure_precisions, ReportRef, "precisions")


@shell("measure_precisions")
def measure_precisions(
    settings: EvaluationSettings,
    name: str,
    precisions: str,
    model: CheckpointRef,
    scores: list[ReportRef],
    curated: DatasetRef,
    context: Context,
) -> ReportRef:
    """Read the responses of a model in its other precisions, and compare what it solves.

    Args:
        settings: of the evaluation; their precision is the reference.
        name: of the model.
        precisions: 'bf16,int8'.
        model: its weights.
        scores: its evaluations: the reference, then the precisions in their order.
        curated: the held-out problems.
        context: of the run.
    """
    reads = {"model": model, "curated": curated, **numbered("scores", scores)}
    others, place = [name, precisions], f"precision/{name}"
    return run(PRECISION, settings, reads, context, others, name=place)


@fan_out("compare_precisions")
def compare_precisions(
    settings: EvaluationSettings,
    models: list[CandidateRef],
    scores: list[ReportRef],
    curated: DatasetRef,
    context: Context,
) -> list[ReportRef]:
    """Compare the precisions of a model in a task of its own; none, if it has one."""
    others = [one.precision for one in models if one.precision]
    if not others:
        return []
    reference = models[0]
    assert reference.model is not None, "precisions are of weights: the command line checks it"
    return [
        measure_precisions(
            settings=settings,
            name=reference.name,
            precisions=",".join(others),
            model=reference.model,
            scores=scores,
            curated=curated,
            context=context,
        )
    ]


def _compare(settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, _: Work) -> Facts:
    ours, *theirs = inputs.values()
    return earlier_models.against_all(settings, ours, theirs, outputs["progression"])


COMPARE = Record("compare", _compare, ReportRef, "progression")


@shell("compare")
def compare(
    settings: EvaluationSettings,
    parents: list[ReportRef],
    context: Context,
    candidate: ReportRef | None = None,
) -> ReportRef:
    """Compare the answers of the candidate with those of every model that it was trained from.

    Args:
        settings: of the bootstrap.
        parents: evaluations, in the order in which their models were made.
        context: of the run.
        candidate: evaluation of the candidate; None for the last of `parents`.
    """
    if candidate is None:
        *parents, candidate = parents
    # No model is its own parent, but for a base that is released untrained.
    others = [ref for ref in parents if ref.digest != candidate.digest] or parents
    return run(COMPARE, settings, {"candidate": candidate, **numbered("parent", others)}, context)


def _pool(
    settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, _: Work, name: str
) -> Facts:
    return pooling.pool(settings, name, [*inputs.values()], outputs["report"])


POOL = Record("pool", _pool, ReportRef, "report")


@shell("pool")
def pool(
    settings: EvaluationSettings, name: str, parts: list[ReportRef], context: Context
) -> ReportRef:
    """Pool the evaluations of the same checkpoint over the problems of several runs."""
    reads, stage_name = numbered("part", parts), f"evaluate/pooled/{name}"
    return run(POOL, settings, reads, context, [name], name=stage_name)


@shell("agreement")
def agreement(file: str, out: str, show: int) -> str:
    """Score graded responses with both verifiers of final answers and print the differences."""
    source = location.existing_file(file, "--file")
    with typed("--file"):
        rows = read_graded(file, store_at(source).read_bytes())
    with open_scoring(None, RewardSettings()) as scorer:
        compared = compare_all(rows, scorer.score)
    counts = facts(compared)
    target = location.absolute_store(out, "--out")
    store_at(target).write_bytes(to_csv(compared))
    deck_of_facts("agreement", counts)
    console = Screen()
    console.print(counts_table(file, counts))
    console.print(rows_table(select_disputed(compared), show))
    return target


@shell("compare_logs")
def compare_logs(left: str, right: str, out: str) -> str:
    """Compare two evaluations item by item, print the table and write it as JSON."""
    with typed("--left"):
        ours = score_logs.read_scores(location.absolute_store(left, "--left"))
    with typed("--right"):
        theirs = score_logs.read_scores(location.absolute_store(right, "--right"))
        paired = score_logs.compare_scores(ours, theirs)
    target = location.absolute_store(out, "--out")
    store_at(target).write_bytes(score_logs.as_json(paired))
    show_table(score_logs.as_table(paired))
    return target


def _export(_: export_formats.Formats, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    rows, out = inputs["curated"], outputs["formats"]
    problems, suites = read_table(rows / HELD_OUT, Problem), read_suites(rows)
    by_id = {problem.id: problem for problem in problems}
    samples = {}
    for folder in (path for role, path in inputs.items() if role != "curated"):
        name = read_evaluation(folder).model.replace("/", "-")
        started = work.context.execution.started
        export_formats.export(folder, by_id, suites, started, out / name)
        samples[name] = read_table(folder / SAMPLES_FILE, SampleResult)
    doubts = find(by_id, samples, _decided(rows))
    write_annotations(out / ANNOTATIONS, doubts)
    write_rates(out / SOLVE_RATES, solve_rates.measure(by_id, samples))
    return {**Counter(one.reason for one in doubts)}


EXPORT = Record("export", _export, ReportRef, "formats")


@shell("export")
def export(reports: list[ReportRef], curated: DatasetRef, context: Context) -> ReportRef:
    """Write evaluations as lm-evaluation-harness, Every Eval Ever and the model hub read them.

    Beside them are the problems whose gold answer all models doubt, for people, and how often each
    model solved each problem, for curation.
    """
    reads = {"curated": curated, **numbered("report", reports)}
    return run(EXPORT, export_formats.Formats(), reads, context)


def _decided(curated: Path) -> list[str]:
    """Read which problems people have decided about."""
    path = curated / DECISIONS
    return [one.problem for one in read_table(path, AppliedDecision)] if path.exists() else []


def questions(curated: Path) -> tuple[list[Problem], dict[str, int]]:
    """Read the held-out problems, and how often those of a suite are asked."""
    suites = read_suites(curated)
    repeats = {name: suite.k for name, suite in suites.items() if suite.k}
    return read_table(curated / HELD_OUT, Problem), repeats


def _facts(report: EvaluationReport, problems: list[Problem], record: StageRecord) -> Facts:
    """Return what an evaluation found; record how many problems were asked."""
    facts = {f"accuracy/{score.suite}": score.accuracy for score in report.suites}
    facts |= {f"echo_score/{echo.suite}": echo.score for echo in report.echoes}
    facts |= {
        f"baseline/{one.name}": one.accuracy["all"]
        for one in report.baselines
        if "all" in one.accuracy
    }
    record.rows(len(problems), sum(score.problems for score in report.suites[:1]))
    return facts | report.judge
