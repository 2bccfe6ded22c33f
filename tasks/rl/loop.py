"""The RL loop on one screen, as a generator of step records.

    prompts -> rollouts with routes -> verdicts -> outcomes -> old log-probs under replay
    -> mismatch gate -> advantages -> clipped updates -> weight sync -> commit

The state of a step is committed before its record is yielded: the caller may stop after any
record, and a new generator continues with the next step.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.mismatch import Decision
from data_schemas.reports import StepReport, StepTiming
from data_schemas.rl_settings import RLSettings, RouterReplay
from tasks.algorithms.losses.surrogate import Plan
from tasks.algorithms.schedules import warmup_constant
from tasks.engines.lora.canary import check_adapter
from tasks.engines.loss_calls import RecordingLoss
from tasks.engines.protocols import RolloutEngine, TokenBatch, TokenScores, Trainer
from tasks.engines.weight_sync import Outgoing
from tasks.errors import EngineError
from tasks.rl.durability import inflight, state, step_snapshot
from tasks.rl.recipe import Recipe, TrainedStep
from tasks.rl.rollouts.collect import Collector
from tasks.rl.rollouts.collected import Collected
from tasks.rl.rollouts.producer import Producer
from tasks.rl.update import gate
from tasks.rl.update.batch import StepBatch, build, token_advantages
from tasks.rl.update.drawn import score_as_drawn
from tasks.rl.update.ledger import ledger_rows, prompt_costs, use_metrics
from tasks.rl.update.metrics import collect_metrics, mismatch_of, policy_metrics
from tasks.rl.update.objective import corrections, loss_columns, policy_loss, policy_plan, split

WARMUP_UPDATES = 4
"""Warm-up updates of the learning rate; no paper gives a number for RL."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a phase works with."""

    settings: RLSettings
    engine: RolloutEngine
    trainer: Trainer
    reference: Trainer | None
    """The phase's start model, where the loss asks for a KL to it."""
    collector: Collector
    recipe: Recipe
    vocabulary: int
    canaries: list[NDArray[np.int32]]
    """Sequences on which both engines must agree after every weight sync."""
    folder: Path
    """Folder in which state is committed."""
    told_to_stop: threading.Event
    """Set when the process must end: the step in flight is finished and committed."""


class Clock:
    """Seconds since the last lap, by name; also those in which this process computed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}
        self._last = time.perf_counter(), time.process_time()

    def lap(self, name: str) -> None:
        """End the current part and name it."""
        now = time.perf_counter(), time.process_time()
        self.seconds[name], self.cpu_seconds[name] = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now


def steps(
    run: Run, start: state.RunState, waiting: tuple[Collected, ...]
) -> Iterator[state.StepRecord]:
    """Train from the step after `start` to the last one.

    Args:
        start: the committed state; the trainer already has its weights.
        waiting: rollouts generated for later steps before the phase stopped.
    """
    settings, now = run.settings, start
    producer = Producer(
        run.collector,
        staleness=settings.engines.steps_ahead,
        last_step=settings.steps,
        waiting=waiting,
    )
    if settings.engines.lora.rank:
        check_adapter(run.engine, run.trainer, run.vocabulary, now.step)
    synced = sync_weights(run, version=now.step)
    with closing(producer):
        for step in range(now.step + 1, settings.steps + 1):
            clock = Clock()
            collected = producer.take(step)
            if settings.engines.steps_ahead == 0:  # otherwise rollouts are already running
                run.engine.sleep()
            clock.lap("collect")
            record, updates, seen = one_step(run, collected, now.updates, synced.gap, clock)
            producer.settle()
            clock.lap("wait_for_rollouts")
            before, synced = synced, sync_weights(run, version=step)
            clock.lap("weight_sync")
            step_snapshot.write_snapshot(
                run.folder, replace(seen, weights_before=before.digest, weights_after=synced.digest)
            )
            now = now.model_copy(update={"step": step, "updates": updates})
            record = finished(record, timing(collected, clock), synced, settings)
            state.write_step(run.folder, record)
            due = step % settings.commit_every == 0 or step == settings.steps
            if due or run.told_to_stop.is_set():
                between = inflight.Between(run.collector.state(), producer.waiting)
                files = {inflight.FILE: inflight.encode(between)}
                state.commit(run.folder, now, run.trainer, files)
            yield record


def one_step(
    run: Run, collected: Collected, updates: int, probe: float, clock: Clock
) -> tuple[state.StepRecord, int, step_snapshot.StepSnapshot]:
    """Train on a step's rollouts. Returns its record, the updates done so far and its snapshot."""
    settings = run.settings
    batch = build(settings, collected.trained)
    rows = split(settings, len(batch.owners), collected.step)
    old = old_scores(run, batch)
    drawn = score_as_drawn(run.trainer, settings, collected.trained, batch, old)
    clock.lap("old_logprobs")
    mismatch = mismatch_of(batch, drawn)
    decision = gate.decide(collected.step, mismatch, probe, settings.engines.mismatch)
    if decision.decision is Decision.PAUSE:  # a paused step has no other record
        state.write_pause(run.folder, decision)
    gate.enforce(decision)
    advantages_NT = token_advantages(settings, batch, old)
    weights_NT, corrected = corrections(settings, decision, batch, drawn)
    shaper, report = run.recipe.shaper, run.recipe.report
    as_drawn = shaper is not None and shaper.ratio_as_drawn
    losses: list[dict[str, float]] = []
    watch, plan = step_snapshot.Recorder(batch), None
    if rows:  # if all groups have zero variance or are unfinished, there is nothing to train on
        plan = policy_plan(
            settings, batch, old, rows, vocabulary=run.vocabulary, step=collected.step
        )
        training = replaying_batch(
            run, batch, drawn if as_drawn else old, advantages_NT * weights_NT, plan
        )
        losses = update(run, watch.numbered(training), batch.num_sequences, rows, updates, watch)
    clock.lap("update")
    ledger = tuple(ledger_rows(collected, batch, advantages_NT))
    trained = TrainedStep(
        collected.step,
        collected.groups,
        batch.tokens.response_NT,
        old.logprobs_NT,
        drawn.logprobs_NT,
    )
    rows_of_recipe, measured = report.measure(trained) if report else ((), {})
    metrics = (
        collect_metrics(collected)
        | collected.metrics
        | policy_metrics(old, batch, losses)
        | mismatch
        | corrected
        | use_metrics(ledger)
        | measured
    )
    record = state.StepRecord(
        report=StepReport(step=collected.step, policy_version=collected.step, metrics=metrics),
        timing=StepTiming(step=collected.step, seconds={}),
        ledger=ledger,
        costs=tuple(prompt_costs(collected)),
        gate=gate.count_overflow(decision, losses),
        rows=tuple(map(dict, rows_of_recipe)),
    )
    given = step_snapshot.StepInputs(
        settings, run.vocabulary, tuple(collected.trained), decision, as_drawn
    )
    made = step_snapshot.StepOutputs(batch, rows, advantages_NT, weights_NT, plan)
    return record, updates + len(losses), step_snapshot.seal(given, (old, drawn), watch, made)


def old_scores(run: Run, batch: StepBatch) -> TokenScores:
    """Log-probs and entropies under the policy that will be updated, routes replayed (R3)."""
    has_router = run.engine.num_experts > 0
    return run.trainer.score(
        batch.tokens,
        temperature=run.settings.temperature,
        record_routes=has_router and run.settings.router_replay is not RouterReplay.R3,
    )


def replaying_batch(
    run: Run, batch: StepBatch, old: TokenScores, advantages_NT: torch.Tensor, plan: Plan
) -> TokenBatch:
    """The batch of the updates: its routes follow the replay mode."""
    experts_NTLK = {
        RouterReplay.OFF: None,
        RouterReplay.R2: old.experts_NTLK,
        RouterReplay.R3: batch.tokens.experts_NTLK,
    }[run.settings.router_replay]
    reference_NT = None
    if run.reference is not None:
        # With its own routes: replaying the policy's would hide how far the policy has moved.
        plain = replace(batch.tokens, experts_NTLK=None)
        temperature = run.settings.temperature
        scores = run.reference.score(plain, temperature=temperature, record_routes=False)
        reference_NT = scores.logprobs_NT
    columns = loss_columns(old, advantages_NT, plan, reference_NT)
    return replace(batch.tokens, experts_NTLK=experts_NTLK, columns=columns)


def update(
    run: Run,
    training: TokenBatch,
    num_sequences: int,
    rows: tuple[torch.Tensor, ...],
    updates: int,
    watch: step_snapshot.Recorder,
) -> list[dict[str, float]]:
    """Do the updates of the step, one per part of its rows."""
    policy = policy_loss(run.settings, num_sequences / max(1, len(rows)))
    losses = []
    for number, part in enumerate(rows):
        loss = RecordingLoss(policy)
        found = run.trainer.update(
            training.select(part),
            loss,
            temperature=run.settings.temperature,
            learning_rate=warmup_constant(
                updates + number, peak=run.settings.learning_rate, warmup=WARMUP_UPDATES
            ),
            auxiliary=run.settings.loss.auxiliary,
        )
        watch.record(loss.calls)
        losses.append(found)
    return losses


@dataclass(frozen=True, slots=True)
class Synced:
    """A weight sync that was verified."""

    digest: str
    gap: float
    """Mean |dlogp| between the engines on the canary sequences, nats."""
    sent_bytes: int


def sync_weights(run: Run, version: int) -> Synced:
    """Send the trainer's weights to the rollout engine; verify that it computes with exactly those.

    Raises:
        EngineError: the digests differ, or the log-probabilities do.
    """
    # Hashed while they are sent: gathering a large model twice would take twice as long.
    weights = Outgoing(run.trainer.weights())
    installed, sent = run.engine.load_weights(weights, version), weights.digest()
    if installed != sent:
        raise EngineError(
            f"weight sync of version {version}: the engine has {installed[:12]}, "
            f"the trainer sent {sent[:12]}; no rollout was made with the wrong weights"
        )
    gap = gate.check_weight_sync(
        run.engine, run.trainer, run.canaries, run.settings.engines.precision
    )
    return Synced(sent, gap, weights.sent_bytes)


def finished(
    record: state.StepRecord, seconds: StepTiming, synced: Synced, settings: RLSettings
) -> state.StepRecord:
    """Complete a step's record with what followed its updates; with LoRA, the bytes of the sync."""
    report = record.report
    if settings.engines.lora.rank:
        metrics = report.metrics | {"weight_sync/sent_bytes": float(synced.sent_bytes)}
        report = report.model_copy(update={"metrics": metrics})
    return record.model_copy(update={"timing": seconds, "report": report})


def timing(collected: Collected, clock: Clock) -> StepTiming:
    """Seconds of a step's parts; rollout and reward are within collect or overlap with it."""
    inside = {"rollout": collected.rollout_seconds, "reward": collected.reward_seconds}
    return StepTiming(
        step=collected.step, seconds=clock.seconds | inside, cpu_seconds=clock.cpu_seconds
    )
