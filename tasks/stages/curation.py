"""Flyte tasks of stage 1: list raw files, curate them, in parts too, and grade the problems; distil
a teacher, and pose training problems to several models."""

import logging
import time
from contextlib import ExitStack, closing
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    GradedRef,
    RawRef,
    StoreRef,
)
from data_schemas.intake import Teaching
from data_schemas.pass_rates import GradedProblem
from data_schemas.rl_settings import JudgeKind, JudgeSettings, RewardSettings
from data_schemas.rows import (
    DEMONSTRATIONS,
    GRADED,
    HELD_OUT,
    MERGED,
    PROBLEMS,
    QUARANTINE,
    Aside,
    Demonstration,
    Parent,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import (
    CurationSettings,
    GradingSettings,
    PipelineSettings,
    RetrainSettings,
)
from data_schemas.sources import Part
from tasks.curation import curate as curation
from tasks.curation import distillation, grading, mixing, questions
from tasks.curation import ingest as ingestion
from tasks.curation.parts import SHARDS, map_part, take_parts
from tasks.curation.thinking import check_thinking
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_judge, open_scoring
from tasks.engines.select import open_rollout
from tasks.errors import SettingsError
from tasks.formats.readiness import demonstrations_of, fit_phase, is_taught, require_cause
from tasks.gym.protocol import verifiers_of
from tasks.gym.table import require_judge
from tasks.models.architectures import refuse_foreign_code
from tasks.platform.shell import shell
from tasks.provenance.lineage.base_model import find_base, read_model
from tasks.provenance.lineage.judges import read_encoder, read_guard, read_judge
from tasks.provenance.lineage.signatures.folder import continued
from tasks.provenance.lineage.stage import StageRecord, workplace
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, numbered, run
from tasks.store import results
from tasks.store.objects import localise

logger = logging.getLogger(__name__)


def _ingest(settings: CurationSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    facts = ingestion.ingest(settings.sources, settings.seed, outputs["raw"])
    work.entry.rows(int(facts["sources"]), int(facts["files"]))
    return facts


INGEST = Record("ingest", _ingest, RawRef, "raw")


@shell("ingest")
def ingest(settings: CurationSettings, context: Context) -> RawRef:
    """Find, check and hash every raw file, before any expensive step."""
    return run(INGEST, settings, {}, context)


def _curate_part(
    settings: CurationSettings, inputs: Inputs, outputs: Outputs, work: Work, part: Part
) -> Facts:
    folders, held_out = (inputs["raw"], inputs["base"]), inputs.get("held_out_evaluation")
    with open_scoring(None, RewardSettings()) as scorer:
        scorer.check_canaries()
        facts = map_part(settings, *folders, part, outputs["shards"], held_out, scorer.score)
    work.entry.rows(facts["items"], facts["items"])
    return facts


CURATE_PART = Record("curate_part", _curate_part, DatasetRef, "shards")


@shell("curate_part")
def curate_part(
    part: Part,
    settings: CurationSettings,
    raw: RawRef,
    base: CheckpointRef,
    context: Context,
    held_out_from: DatasetRef | None = None,
) -> DatasetRef:
    """Do one part of what curation does to single rows.

    Args:
        part: which one.
        settings: as `curate` has them.
        raw: list of raw files.
        base: its tokenizer measures lengths.
        context: of the run.
        held_out_from: as `curate` has it.
    """
    name = f"curate_part/{part.number + 1}_of_{part.of}"
    reads = {"raw": raw, "base": base, "held_out_evaluation": held_out_from}
    return run(CURATE_PART, settings, reads, context, [part], name=name)


def _curate(settings: CurationSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    context, record, held_out = work.context, work.entry, work.refs.get("held_out_evaluation")
    digests = [work.refs["raw"].digest, work.refs["base"].digest]
    digests.append(held_out.digest if held_out else "")
    place = str(workplace(context.store))
    shards = Path(results.work_uri(place, f"curate {work.code}", settings, *digests))
    with (
        results.exclusive(f"{context.execution.id}, curate", str(shards)),
        continued(shards / SHARDS),
        open_scoring(None, RewardSettings()) as scorer,
    ):
        scorer.check_canaries()
        take_parts([path for role, path in inputs.items() if role.startswith("part/")], shards)
        guard = read_guard(settings.guard, record, "guard")
        encoder = read_encoder(settings.encoder, record, "encoder")
        local = settings.model_copy(update={"guard": guard, "encoder": encoder})
        folders = inputs["raw"], inputs["base"], outputs["curated"]
        facts = curation.curate(
            local,
            *folders,
            inputs.get("held_out_evaluation"),
            score=scorer.score,
            work=shards,
        )
    kept = sum(int(facts[name]) for name in ("problems", "demonstrations", "held_out"))
    record.rows(int(facts["rows"]), kept)
    return facts


CURATE = Record("curate", _curate, DatasetRef, "curated")


@shell("curate")
def curate(
    settings: CurationSettings,
    raw: RawRef,
    base: CheckpointRef,
    parts: list[DatasetRef],
    context: Context,
    held_out_from: DatasetRef | None = None,
) -> DatasetRef:
    """Turn raw rows into problems, demonstrations and held-out suites.

    Args:
        settings: limits and seeds.
        raw: list of raw files.
        base: its tokenizer measures lengths.
        parts: what `curate_part` did; none = it is done here.
        context: of the run.
        held_out_from: an earlier curated set, whose held-out suites are reused; no new problem
            is held out.
    """
    reads = {"raw": raw, "base": base, "held_out_evaluation": held_out_from}
    return run(CURATE, settings, reads | numbered("part", parts), context)


@shell("fit_settings")
def fit_settings(
    settings: PipelineSettings, curated: DatasetRef, store: StoreRef
) -> PipelineSettings:
    """Skip what has no data, a line each; refuse settings that cannot be trained.

    Problems that need a judge where none is set are refused here: before SFT, not after it.
    """
    folder = localise(curated.uri, curated.digest, workplace(store))
    problems = read_table(folder / PROBLEMS, Problem)
    rows = read_table(folder / DEMONSTRATIONS, Demonstration)
    for parent in MERGED if settings.sft.epochs else ():
        if parent in settings.sft.parents:
            continue
        needs_thoughts = parent is Parent.REASONING and settings.sft.min_thinking_words
        if not is_taught(parent, rows) and not needs_thoughts:
            refused = read_table(folder / QUARANTINE, QuarantinedItem)
            require_cause(parent, rows, refused, curation.advice_on)
            logger.warning(
                "sft/%s: no source has demonstrations for it; the base is passed on", parent.value
            )
            continue
        own = demonstrations_of(parent, rows)
        if parent is Parent.REASONING:
            check_thinking(own, settings.sft.min_thinking_words, settings.sft.domains)
    if settings.general_sft.epochs:
        demonstrations_of(Parent.GENERAL, rows)
    require_judge(settings.grading.judge, "grading.judge", problems)
    held_out = read_table(folder / HELD_OUT, Problem)
    require_judge(settings.evaluation.judge, "evaluation.judge", held_out)
    phases = {
        name: fit_phase(phase, problems, name)
        for name, phase in (("rl_one", settings.rl_one), ("rl_two", settings.rl_two))
    }
    for name, phase in phases.items():
        candidates = [one for one in problems if phase.steps and one.domain in phase.domains]
        require_judge(phase.rewards.judge, f"{name}.rewards.judge", candidates)
    return settings.model_copy(update=phases)


def _grade(settings: GradingSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    problems, folder = read_table(inputs["curated"] / PROBLEMS, Problem), inputs["start"]
    if not problems:
        write_table(outputs["graded"] / GRADED, GradedProblem, [])
        return {"skipped": "there is no problem to grade"}
    judge = read_judge(settings.judge, work.entry)
    screened, small = [], None
    if settings.screen_model:
        small = read_model("screen", settings.screen_model, work.entry)
    with ExitStack() as opened:
        scorer = opened.enter_context(open_scoring(None, RewardSettings(judge=judge)))
        scorer.check_canaries(verifiers_of(problems))
        if small:
            with closing(open_rollout(settings.engines, small)) as engine:
                screened = grading.screen_out(
                    settings, problems, engine, load_tokenizer(small), scorer.score
                )
        engine = opened.enter_context(closing(open_rollout(settings.engines, folder)))
        facts = grading.grade(
            settings,
            problems,
            engine,
            load_tokenizer(folder),
            scorer.score,
            outputs["graded"],
            screened,
        )
    work.entry.rows(int(facts["offered"]), int(facts["kept"]))
    return facts


GRADE = Record("grade", _grade, GradedRef, "graded")


@shell("grade")
def grade(
    settings: GradingSettings, curated: DatasetRef, start: CheckpointRef, context: Context
) -> GradedRef:
    """Measure how often the start model solves each problem, and keep those within the bounds."""
    return run(GRADE, settings, {"curated": curated, "start": start}, context)


def _pose(settings: GradingSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    facts = questions.pose(settings, inputs["curated"], outputs["questions"])
    work.entry.rows(facts["problems"], facts["asked"])
    return facts


POSE = Record("pose", _pose, DatasetRef, "questions")


@shell("pose")
def pose(settings: GradingSettings, curated: DatasetRef, context: Context) -> DatasetRef:
    """Take problems to train on as the questions of an evaluation, to verify their gold answers."""
    return run(POSE, settings, {"curated": curated}, context)


def _distil(
    settings: GradingSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    teacher: str,
    served_as: str,
    keep: int,
) -> Facts:
    problems = read_table(inputs["curated"] / PROBLEMS, Problem)
    judge = read_judge(settings.judge, work.entry)
    with ExitStack() as opened:
        scorer = opened.enter_context(open_scoring(None, RewardSettings(judge=judge)))
        scorer.check_canaries(verifiers_of(problems))
        name, ask = _open_teacher(
            settings, teacher, served_as, work.entry, work.context.store, opened
        )
        facts = distillation.distil(
            settings, problems, name, ask, scorer.score, keep, outputs["demonstrations"]
        )
    work.entry.rows(int(facts["problems"]), int(facts["demonstrations"]))
    return facts


DISTIL = Record("distil", _distil, DatasetRef, "demonstrations")


@shell("distil")
def distil(
    settings: GradingSettings,
    teacher: str,
    served_as: str,
    keep: int,
    curated: DatasetRef,
    context: Context,
) -> DatasetRef:
    """Let a checkpoint or an endpoint answer the problems to train on; keep its right answers."""
    others = (teacher, served_as, keep)
    return run(DISTIL, settings, {"curated": curated}, context, others)


def _open_teacher(
    settings: GradingSettings,
    teacher: str,
    served_as: str,
    record: StageRecord,
    store: StoreRef,
    opened: ExitStack,
) -> tuple[str, distillation.Teacher]:
    """Return the teacher's name and what asks it; record a checkpoint as an input.

    Raises:
        SettingsError: there is no such model, or the endpoint's model is not named.
    """
    if not teacher.startswith(("http://", "https://")):
        origin = find_base(teacher, store)
        if origin.ref is None:
            refuse_foreign_code(origin.folder)
        origin.record(record)
        engine = opened.enter_context(closing(open_rollout(settings.engines, origin.folder)))
        tokenizer = load_tokenizer(origin.folder)
        name = teacher.rstrip("/").rpartition("/")[2] or "shipped"
        return name, distillation.checkpoint_teacher(settings, engine, tokenizer)
    if not served_as.strip():
        raise SettingsError("--teacher is an endpoint; set --served_as to its model's name there")
    endpoint = JudgeSettings(kind=JudgeKind.HTTP, address=teacher, model=served_as)
    return served_as, distillation.endpoint_teacher(open_judge(endpoint))


def _mix(
    settings: RetrainSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    held: list[str],
    demonstrations: Teaching,
) -> Facts:
    new = inputs["curated"]
    known = {ref.digest: inputs[role] for role, ref in work.refs.items() if role != "curated"}
    mixed = mixing.mix(
        settings.curation,
        time.strftime("%Y-%m", time.gmtime(work.context.execution.started)),
        new,
        mixing.load_history(known, new),
        outputs["curated"],
        merge=demonstrations is Teaching.MERGE,
        aside=Aside(curated=work.refs["curated"].digest, files=tuple(held)),
    )
    work.entry.rows(mixed.fresh + sum(mixed.refused.values()), mixed.fresh + mixed.replayed)
    return mixed.model_dump(exclude={"parents", "refused"}) | mixed.refused


MIX = Record("mix", _mix, DatasetRef, "curated")


@shell("mix")
def mix(
    settings: RetrainSettings,
    curated: DatasetRef,
    known: list[DatasetRef],
    held: list[str],
    demonstrations: Teaching,
    context: Context,
) -> DatasetRef:
    """Put new and replayed old rows together, and hold out a new slice.

    Args:
        settings: of the retraining.
        curated: rows of the new files, with the held-out set so far.
        known: curated sets and mixtures that led to the released model.
        held: sha256 of the new files whose rows are left out.
        demonstrations: their parents are kept for a merge.
        context: of the run.
    """
    reads = {"curated": curated, **numbered("known", known)}
    return run(MIX, settings, reads, context, [held, demonstrations])
