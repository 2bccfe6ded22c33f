"""One phase of RL from a start model to an exported one, as a generator of its steps.

    prompts -> rollouts -> one step of training -> commit -> record

It is resumable at every step.
"""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from data_schemas.arrow import read_table, write_table
from data_schemas.ledgers import PromptCost
from data_schemas.pass_rates import PROBLEMS_FILE, GradedProblem
from data_schemas.reports import (
    COSTS_FILE,
    GATES_FILE,
    LEDGER_FILE,
    PLOTS_FILE,
    STEPS_FILE,
    TIMING_FILE,
    MismatchDecision,
    StepReport,
)
from data_schemas.rl_settings import (
    AnyRecipe,
    EngineSettings,
    JudgeKind,
    RLSettings,
    RouterReplay,
)
from data_schemas.rows import Domain, Problem
from tasks.algorithms import above_graded, length_bias
from tasks.algorithms.phase_choices import notices
from tasks.algorithms.terms.protocol import EngineGap
from tasks.algorithms.terms.table import find_terms
from tasks.durability import states
from tasks.durability.preemption import GRACE_S, Termination, listen_for_sigterm
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.lora.canary import check_adapter
from tasks.engines.lora.factors import describe
from tasks.engines.lora.files import write_adapter
from tasks.engines.protocols import RolloutEngine, Trainer
from tasks.engines.select import open_rollout, open_trainer
from tasks.errors import EngineError, PreemptionError, SettingsError
from tasks.formats.ledgers import write_ledger
from tasks.gym.judging import comparisons
from tasks.gym.judging.bias import complaints
from tasks.gym.protocol import Scorer, verifiers_of
from tasks.models.model_folder import read_config
from tasks.rl import state, step_snapshot
from tasks.rl.collector import Collector, StepRollouts, first_state
from tasks.rl.ended import keeping_ended
from tasks.rl.groups import without_problems
from tasks.rl.learned import PromptMemory, learned_in, write_learned
from tasks.rl.ledger import (
    ABOVE_GRADED,
    ABOVE_GRADED_ERROR,
    accepted_metrics,
    domain_metrics,
    use_metrics,
)
from tasks.rl.producer import Producer
from tasks.rl.recipe import PLAIN, Recipe
from tasks.rl.step import Clock, Engines, finished, one_step, sync_weights, timing
from tasks.store.files import canonical_json, copy_file, sha256_bytes, write_bytes

OpenEngine = Callable[[EngineSettings, Path], RolloutEngine]
ADAPTER_FOLDER = "adapter"
"""In the report of a phase with LoRA: its factors, for PEFT."""
NUM_CANARIES = 4
"""Prompts on which rollout engine and trainer are compared after every weight sync."""
LAST_PART = 4
"""What a judge taught shows in the last quarter of the steps."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Phase:
    """Inputs of a phase and the folder of its state."""

    settings: RLSettings
    start: Path
    """Model directory the phase starts from."""
    problems: tuple[Problem, ...]
    state: Path
    """Durable folder of this phase; a second run with the same folder resumes."""
    code: str
    """Source digest of this program."""
    max_tokens: int = 0
    """Stop after the committed step with this many generated tokens in total; 0 = all steps."""
    before: PromptMemory | None = None
    """What the phase before has learned of the prompts."""
    recipe: Recipe = PLAIN


def state_folder(
    workplace: Path,
    settings: RLSettings,
    start: str,
    problems: str,
    max_tokens: int = 0,
    earlier: str = "",
    recipe: AnyRecipe | None = None,
) -> Path:
    """Name the state folder of a phase by everything that determines its results.

    Args:
        workplace: a disk that outlives the process, shared by all nodes on a cluster.
        settings: of the phase.
        start: digest of the start model.
        problems: digest of the graded problems.
        max_tokens: of the phase; 0 = all steps.
        earlier: digest of the report of the phase before; '' = none.
        recipe: of the phase; None: a plain one.
    """
    plain = settings.model_dump(mode="json", exclude={"recipe"})
    work = {"settings": plain, "start": start, "problems": problems}
    if max_tokens:
        work["max_tokens"] = max_tokens
    if earlier:
        work["earlier"] = earlier
    if recipe:
        # Without its code: as in a plain phase, changed code goes on from the committed state.
        work["recipe"] = recipe.model_dump(mode="json", exclude={"code"})
    return workplace / "state" / sha256_bytes(canonical_json(work))[:16]


def read_problems(graded: Path, judge: JudgeKind = JudgeKind.NONE) -> tuple[Problem, ...]:
    """Read the graded problems to train on; a judge compares open text with its reference."""
    problems = read_table(graded / PROBLEMS_FILE, GradedProblem)
    if judge is JudgeKind.NONE:
        return tuple(problems)
    return tuple(map(comparisons.judged, problems))


def verifiers_in_use(phase: Phase) -> frozenset[str]:
    """Name the verifiers that the prompts of a phase are scored by."""
    domains = phase.settings.domains
    verifiers = verifiers_of(problem for problem in phase.problems if problem.domain in domains)
    return verifiers | phase.recipe.verifiers


def train(  # noqa: C901 - the loop, read from top to bottom in one place
    phase: Phase,
    scorer: Scorer,
    stop: Termination | None = None,
    open_engine: OpenEngine | None = None,
) -> Iterator[state.StepRecord]:
    """Yield the record of every remaining step.

    The state of a step is committed before its record is yielded: the caller may stop after any
    record, and a new generator continues with the next step.

    Args:
        phase: what to do.
        scorer: scores the responses.
        stop: from a caller that already handles SIGTERM.
        open_engine: opens the rollout engine on the start model; None: as `engines` say.

    Raises:
        SettingsError: routes are to be replayed, but the model is dense; loss and advantages do
            not go together.
        PreemptionError: SIGTERM was received; the step in flight was finished and committed first,
            or abandoned where the time was too short.
    """
    settings, folder = phase.settings, phase.state
    for line in (
        *notices(settings),
        *without_problems(settings, phase.problems, phase.recipe.expected_verifiers),
    ):
        logger.warning("%s", line)
    with contextlib.ExitStack() as opened:
        if stop is None:
            stop = opened.enter_context(listen_for_sigterm(GRACE_S))
        trainer = opened.enter_context(closing(open_trainer(settings.engines, phase.start)))
        now = state.restore(folder, trainer)
        so_far = _SoFar(state.read_steps(folder, now.step))
        # Before the rollout engine: a phase that has all its tokens loads no second model.
        if 0 < phase.max_tokens <= so_far.generated:
            return
        pending = _pending_after(phase, now.step)
        if phase.code not in now.code:
            now = now.model_copy(update={"code": (*now.code, phase.code)})
        engine = opened.enter_context(
            closing(keeping_ended(_open_rollout(phase, open_engine), settings, folder))
        )
        engines = _engines(phase, engine, trainer, opened)
        collector = Collector(
            settings,
            engine,
            load_tokenizer(phase.start),
            scorer,
            phase.problems,
            pending.collector,
            phase.recipe,
        )
        if stop.requested.is_set() and now.step < settings.steps:
            raise PreemptionError(f"stopped by SIGTERM before step {now.step + 1}")
        # Opened before the producer, so closed after it: its thread ends while SIGTERM can still
        # abandon what it waits for.
        opened.enter_context(stop.abandon_late_step())
        producer = opened.enter_context(
            closing(
                Producer(
                    collector,
                    staleness=settings.engines.steps_ahead,
                    last_step=settings.steps,
                    waiting=pending.waiting,
                )
            )
        )
        snapshots = opened.enter_context(closing(step_snapshot.Writer(folder)))
        if settings.engines.lora.rank:
            check_adapter(engine, trainer, engines.vocabulary, now.step)
        # Also in a fresh phase: the engine has the start model, a restored trainer has newer
        # weights.
        synced = sync_weights(engines, version=now.step)
        for step in range(now.step + 1, settings.steps + 1):
            clock = Clock()
            collected = producer.take(step)
            if settings.engines.steps_ahead == 0:  # otherwise rollouts are already running
                engine.sleep()
                snapshots.keep_rollouts(step, _unfinished(collector, producer, collected))
            clock.lap("collect")
            record, updates, snapshot = one_step(engines, collected, now.updates, synced.gap, clock)
            # The weights of an engine that generates must not change under it.
            producer.settle()
            clock.lap("wait_for_rollouts")
            before, synced = synced, sync_weights(engines, version=step)
            clock.lap("weight_sync")
            snapshots.write(snapshot, before.digest, synced.digest)
            now = now.model_copy(update={"step": step, "updates": updates})
            record = finished(record, timing(collected, clock), synced)
            # Before the commit, whose state has the digest of every record up to it.
            state.write_step(folder, record)
            if (
                step % settings.commit_every == 0
                or step == settings.steps
                or stop.requested.is_set()
            ):
                snapshots.settle()
                state.commit(
                    folder,
                    now,
                    trainer,
                    {state.INFLIGHT_FILE: state.encode(_unfinished(collector, producer))},
                )
            so_far.add(record)
            yield record
            is_committed = states.newest(folder) == step
            # SIGTERM after this step's commit: the next step commits regardless of commit_every.
            if stop.requested.is_set() and is_committed and step < settings.steps:
                raise PreemptionError(f"stopped by SIGTERM after committed step {step}")
            if step % settings.rewards.canary_every == 0:
                scorer.check_canaries(verifiers_in_use(phase))
            if 0 < phase.max_tokens <= so_far.generated and is_committed:
                return


class _SoFar:
    """What the steps so far generated; says once that the policy loses what it could."""

    def __init__(self, records: Iterable[state.StepRecord]) -> None:
        self.generated = 0
        """Tokens."""
        self._compared: list[tuple[float, float]] = []
        self._has_warned = False
        for record in records:
            self.add(record)

    def add(self, record: state.StepRecord) -> None:
        """Count one more step."""
        self.generated += _generated_tokens(record)
        metrics = record.report.metrics
        if ABOVE_GRADED not in metrics:
            return
        self._compared.append((metrics[ABOVE_GRADED], metrics[ABOVE_GRADED_ERROR]))
        if not self._has_warned and (line := above_graded.complaint(self._compared)):
            logger.warning("%s", line)
            self._has_warned = True


def _unfinished(
    collector: Collector, producer: Producer, *taken: StepRollouts
) -> state.PendingState:
    """Return what the next step begins with, and rollouts of a step that is not committed."""
    return state.PendingState(collector.state(), (*taken, *producer.waiting))


def _pending_after(phase: Phase, step: int) -> state.PendingState:
    """Return what there is between a committed step and the next one's updates."""
    if (kept := state.kept_rollouts(phase.state, step + 1)) is not None:
        logger.warning("step %d goes on from its rollouts, which were finished", step + 1)
        return state.decode(kept, phase.problems)
    if not step:
        return state.PendingState(first_state(phase.settings, phase.problems, phase.before), ())
    # A warning, because the curves of the phase come from more than one process.
    logger.warning("continuing after committed step %d of %d", step, phase.settings.steps)
    data = states.read_file(phase.state, step, state.INFLIGHT_FILE)
    return state.decode(data, phase.problems)


def _engines(
    phase: Phase, engine: RolloutEngine, trainer: Trainer, opened: contextlib.ExitStack
) -> Engines:
    """Put the engines of a phase together; the start model is held where a term needs it.

    Raises:
        SettingsError: routes are to be replayed, but the model is dense; prompts are shaped, and
            the old log-probabilities are the recorded ones or a term compares with them.
    """
    settings, reference = phase.settings, None
    if engine.num_experts == 0 and settings.router_replay is not RouterReplay.OFF:
        raise SettingsError(
            f"router_replay is '{settings.router_replay}', but {phase.start} is a dense model "
            "without a router; set it to 'off'"
        )
    if phase.recipe.shaper is not None and not settings.recomputes:
        raise SettingsError(
            "engines.mismatch.old_policy 'rollout': the recipe shapes prompts, and what was "
            "recorded is that of the shaped ones; set it to 'trainer'"
        )
    judges = [term for term in find_terms(settings.terms) if term.engine_gap is EngineGap.JUDGES]
    if judges and phase.recipe.shaper is not None and phase.recipe.shaper.trains_bare:
        raise SettingsError(
            f"the term {type(judges[0]).__name__} compares the policy with the rollout engine, and "
            "the recipe trains under another prompt than it samples with; leave it out of terms"
        )
    if any(term.needs_reference for term in find_terms(settings.terms)):
        reference = opened.enter_context(closing(open_trainer(settings.engines, phase.start)))
    tokenizer = load_tokenizer(phase.start)
    teachers = _open_teachers(phase, tokenizer.get_vocab(), opened)
    return Engines(
        teachers=teachers,
        settings=settings,
        recipe=phase.recipe,
        rollout=engine,
        trainer=trainer,
        reference=reference,
        vocabulary=len(tokenizer),
        render=partial(render_prompt, tokenizer),
        positions=read_config(phase.start).get("max_position_embeddings", sys.maxsize),
        canaries=[
            render_prompt(tokenizer, problem.messages) for problem in phase.problems[:NUM_CANARIES]
        ],
        folder=phase.state,
    )


def _open_rollout(phase: Phase, open_engine: OpenEngine | None) -> RolloutEngine:
    opens = open_engine or partial(open_rollout, record_kept=phase.settings.truncates)
    return opens(phase.settings.engines, phase.start)


def _open_teachers(
    phase: Phase, vocabulary: Mapping[str, int], opened: contextlib.ExitStack
) -> dict[Domain, Trainer]:
    """Open every model that teaches, once.

    Raises:
        SettingsError: one has other tokens than the policy, so that it cannot score its responses.
    """
    teacher = phase.recipe.teacher
    folders = {} if teacher is None else teacher.folders
    trainers: dict[Path, Trainer] = {}
    for folder in dict.fromkeys(folders.values()):
        if load_tokenizer(folder).get_vocab() != vocabulary:
            raise SettingsError(
                f"teacher {folder}: its tokenizer is not that of {phase.start}, and it scores the "
                "policy's tokens; choose a teacher from the same base"
            )
        opening = closing(open_trainer(phase.settings.engines, folder))
        trainers[folder] = opened.enter_context(opening)
    return {domain: trainers[folder] for domain, folder in folders.items()}


def _generated_tokens(record: state.StepRecord) -> int:
    return sum(row.generated_tokens for row in record.ledger)


def write_times(phase: Phase, out: Path) -> None:
    """Write how long a phase took, which differs from run to run: beside its report, not in it."""
    records = list(state.read_steps(phase.state, states.newest(phase.state)))
    write_bytes(out / TIMING_FILE, _lines([record.timing for record in records]))
    write_table(out / COSTS_FILE, PromptCost, [cost for one in records for cost in one.costs])


def finish(phase: Phase, model_out: Path, report_out: Path) -> dict[str, float | int | str]:
    """Export the trained policy and write the phase's report; returns facts for the statement.

    The model is read back from the committed state, so the export is the same as that of a
    resumed run.

    Raises:
        EngineError: steps are missing; the phase has to be run again.
    """
    with closing(open_trainer(phase.settings.engines, phase.start)) as trainer:
        last = state.restore(phase.state, trainer)
        records = list(state.read_steps(phase.state, last.step))
        _require_all_steps(phase, records)
        trainer.export(model_out)
        rank = phase.settings.engines.lora.rank
        if rank:
            write_adapter(report_out / ADAPTER_FOLDER, trainer.weights(), rank)
    reports = [record.report for record in records]
    gates = [*state.read_pauses(phase.state), *(record.gate for record in records)]
    write_bytes(report_out / STEPS_FILE, _lines(reports))
    write_bytes(report_out / GATES_FILE, _lines(gates))
    bias = _judge_bias(reports)
    differences, chances = (
        [one.metrics[f"length_bias/responses{end}"] for one in reports] for end in ("", "_chance")
    )
    # `or 1`: [-0:] would be all steps.
    of_judge = complaints(bias, _judge_bias(reports[-(len(reports) // LAST_PART or 1) :]))
    for line in filter(None, (*of_judge, length_bias.complaint(differences, chances))):
        logger.warning("%s", line)
    rows = [row for record in records for row in record.ledger]
    write_ledger(report_out / LEDGER_FILE, rows)
    for path in step_snapshot.find_snapshots(phase.state, last.step):
        copy_file(path, report_out / step_snapshot.FOLDER / path.name)
    added = [row for record in records for row in record.rows]
    report = phase.recipe.report
    if phase.recipe.plots:
        write_bytes(report_out / PLOTS_FILE, canonical_json(phase.recipe.plots))
    data = states.read_file(phase.state, last.step, state.INFLIGHT_FILE)
    collector = state.decode(data, phase.problems).collector
    write_learned(report_out, learned_in(phase.settings, dict(collector.records), collector.stage))
    return {
        **describe(rank),
        **(report.conclude(added, report_out) if report else {}),
        "steps": last.step,
        "updates": last.updates,
        "prompts": sum(row.rollouts > 0 for row in rows),
        "generated_tokens": sum(row.generated_tokens for row in rows),
        # The engine's own count, which must equal the sum of the ledger.
        "engine_tokens": round(sum(r.metrics["rollout/engine_tokens"] for r in reports)),
        "trained_tokens": sum(row.trained_tokens for row in rows),
        **use_metrics(rows),
        **domain_metrics(phase.settings.domains, rows),
        **accepted_metrics(rows),
        "saved_tokens": sum(row.saved_tokens for row in rows),
        "corrected_steps": sum(record.decision is MismatchDecision.CORRECT for record in gates),
        "last_solved_share": _mean(
            [report.metrics["reward/solved_share"] for report in reports[-5:]]
        ),
        "zero_variance_share": _mean([report.metrics["zero_variance/share"] for report in reports]),
        **bias,
    }


def _judge_bias(reports: Sequence[StepReport]) -> dict[str, float]:
    """Mean bias of the judge over the steps in which it compared answers; {} without a judge."""
    judged = [one.metrics for one in reports if one.metrics.get("judge/comparisons")]
    names = [name for name in judged[0] if name.startswith("judge/")] if judged else []
    return {
        name: _mean([metrics[name] for metrics in judged])
        for name in names
        if name != "judge/comparisons"
    }


def _require_all_steps(phase: Phase, records: Sequence[state.StepRecord]) -> None:
    steps, planned = len(records), phase.settings.steps
    enough = 0 < phase.max_tokens <= sum(map(_generated_tokens, records))
    if steps < planned and not enough:
        raise EngineError(
            f"{phase.state} holds {steps} of {planned} steps, so nothing is committed as a result. "
            "Run again: the phase continues from there. If it repeats, another process removes "
            "that folder."
        )


def _lines(records: Sequence[BaseModel]) -> bytes:
    return b"".join(canonical_json(record) + b"\n" for record in records)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
