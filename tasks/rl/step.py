"""One step of RL, from rollouts to an updated policy that the rollout engine has.

    rollouts with routes and verdicts -> old log-probs under replay -> mismatch gate
    -> advantages -> clipped updates -> weight sync

`phase.py` draws the rollouts before it and commits the state behind it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.reports import MismatchDecision, StepReport, StepTiming
from data_schemas.rl_settings import RLSettings, RouterReplay, TermSettings
from data_schemas.rows import Domain, Message
from tasks.algorithms.distillation import TeacherSignal
from tasks.algorithms.router_shift import OLD_SCORES
from tasks.algorithms.routing import disagreement, disagreement_by_layer
from tasks.algorithms.schedules import warmup_constant
from tasks.algorithms.terms.fold import (
    acting_in_order,
    auxiliary_of,
    fold_step,
    lost_tokens,
    term_metrics,
)
from tasks.algorithms.terms.protocol import StepSignal, Term
from tasks.algorithms.terms.table import find_terms
from tasks.engines.protocols import (
    RolloutEngine,
    RouterScorer,
    TokenBatch,
    TokenScores,
    Trainer,
)
from tasks.engines.recording_loss import RecordingLoss
from tasks.engines.weight_sync import Outgoing
from tasks.errors import EngineError
from tasks.platform import telemetry
from tasks.rl import gate, state, step_snapshot
from tasks.rl.batch import (
    Render,
    StepBatch,
    build,
    score_as_drawn,
    score_as_taught,
    taught_prompts,
)
from tasks.rl.collector import StepRollouts
from tasks.rl.ledger import (
    accepted_metrics,
    collect_metrics,
    domain_metrics,
    ledger_rows,
    length_metrics,
    mismatch_of,
    policy_metrics,
    prompt_costs,
    skip_metrics,
    slice_metrics,
    slices_of_mismatch,
    use_metrics,
)
from tasks.rl.objective import (
    acting_terms,
    correcting_kinds,
    first_signal,
    kept_rows,
    loss_columns,
    measured_rows,
    policy_loss,
    sampled_rows,
    split,
    weigh_prompts,
    without_cut,
)
from tasks.rl.recipe import Recipe, TrainedStep

WARMUP_UPDATES = 4
"""Warm-up updates of the learning rate; no paper gives a number for RL."""


@dataclass(frozen=True, slots=True)
class Engines:
    """What a phase computes with."""

    settings: RLSettings
    recipe: Recipe
    rollout: RolloutEngine
    trainer: Trainer
    reference: Trainer | None
    """The phase's start model, where the loss asks for a KL to it."""
    vocabulary: int
    render: Render
    positions: int
    """Tokens of a sequence at most."""
    canaries: list[NDArray[np.int32]]
    """Sequences on which both engines must agree after every weight sync."""
    folder: Path
    """Where a step that the gate stopped is recorded."""
    teachers: Mapping[Domain, Trainer] = field(default_factory=dict)
    """Other models that teach, by domain."""


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
        telemetry.add_span(name, self.seconds[name])


def one_step(
    engines: Engines, collected: StepRollouts, updates: int, probe: float, clock: Clock
) -> tuple[state.StepRecord, int, step_snapshot.StepSnapshot]:
    """Train on a step's rollouts. Returns its record, the updates done so far and its snapshot."""
    settings = engines.settings
    prompts = taught_prompts(engines.recipe.teacher, collected.trained)
    batch = build(settings, collected.trained, prompts)
    rows = split(settings, len(batch.owners), collected.step)
    seen_N = measured_rows(settings, len(batch.owners), collected.step)
    if settings.recomputes:
        old = old_scores(engines, batch)
        sampled = score_as_drawn(engines.trainer, settings, collected.trained, batch, old)
    else:
        old, sampled = recorded_scores(engines, batch, seen_N)
    clock.lap("old_logprobs")
    mismatch = mismatch_of(batch, sampled, seen_N) | kept_mass(
        engines, batch, sampled, collected.step
    )
    slices = slices_of_mismatch(batch, sampled, seen_N)
    decision = gate.decide(
        collected.step,
        mismatch,
        probe,
        settings.engines.mismatch,
        correcting_kinds(settings),
        slices,
    )
    if decision.decision is MismatchDecision.PAUSE:  # a paused step has no other record
        state.write_pause(engines.folder, decision)
    gate.enforce(decision)
    # Not of the gate: it decides by log-probabilities alone, and a replay has no other routes.
    mismatch |= route_mismatch(engines, batch, collected.step)
    acting = acting_terms(settings, decision)
    terms = find_terms(acting)
    # Before the first update, as `old`: the policy itself may be the teacher.
    lesson, taught = take_lesson(engines, collected, batch, prompts)
    if lesson is not None:
        clock.lap("teacher")
    signal = fold_step(
        acting_in_order(terms, lesson),
        first_signal(
            settings,
            batch,
            (old, sampled),
            rows,
            vocabulary=engines.vocabulary,
            step=collected.step,
            reference_NT=reference_scores(engines, batch),
        ),
    )
    shaper, report = engines.recipe.shaper, engines.recipe.report
    as_drawn = shaper is not None and shaper.ratio_as_drawn
    losses: list[dict[str, float]] = []
    watch, uses = step_snapshot.Recorder(batch), {}
    if rows:  # if all groups have zero variance or are unfinished, there is nothing to train on
        training = replaying_batch(engines, batch, sampled if as_drawn else old, signal, terms)
        # Numbered before rows are chosen: a replay puts every call of the loss back in its place.
        training = without_cut(watch.numbered(training), signal.kept_NT)
        parts = kept_rows(rows, signal.kept_NT)
        losses = update(engines, training, batch.num_sequences, parts, updates, watch, acting)
        uses = lost_tokens(signal, batch.tokens.alone_NT)
    clock.lap("update")
    taught_NT = None if lesson is None else lesson.without_contrast(batch.advantages_N)
    ledger = tuple(ledger_rows(collected, batch, signal.advantages_NT, uses, taught_NT))
    trained = TrainedStep(
        collected.step,
        collected.groups,
        batch.tokens.response_NT,
        old.logprobs_NT,
        sampled.logprobs_NT,
    )
    rows_of_recipe, measured = report.measure(trained) if report else ((), {})
    metrics = (
        collect_metrics(collected, settings.rewards.monitor)
        | collected.metrics
        | policy_metrics(old, batch, losses, seen_N)
        | mismatch
        | dict(signal.metrics)
        | term_metrics(terms, losses)
        | use_metrics(ledger)
        | accepted_metrics(ledger)
        | skip_metrics(ledger)
        | slice_metrics(collected.groups, slices)
        | domain_metrics(settings.domains, ledger)
        | length_metrics(collected, batch, uses)
        | measured
        | taught
    )
    record = state.StepRecord(
        report=StepReport(step=collected.step, policy_version=collected.step, metrics=metrics),
        timing=StepTiming(step=collected.step, seconds={}),
        ledger=ledger,
        costs=tuple(prompt_costs(collected)),
        gate=gate.count_overflow(decision, losses),
        rows=tuple(map(dict, rows_of_recipe)),
    )
    inputs = step_snapshot.StepInputs(
        settings, engines.vocabulary, tuple(collected.trained), decision, as_drawn
    )
    outputs = step_snapshot.StepOutputs(batch, rows, signal)
    sealed = step_snapshot.seal(inputs, (old, sampled), watch, outputs, (lesson, [*prompts]))
    return record, updates + len(losses), sealed


def take_lesson(
    engines: Engines,
    collected: StepRollouts,
    batch: StepBatch,
    prompts: Mapping[tuple[int, int], Sequence[Message]],
) -> tuple[TeacherSignal | None, dict[str, float]]:
    """Let a teacher score responses, the policy itself or another model, where the recipe has one.

    Returns:
        None without a teacher; metrics of the pass.
    """
    teacher = engines.recipe.teacher
    if teacher is None:
        return None, {}
    lesson = score_as_taught(
        engines.trainer,
        teacher,
        prompts,
        engines.render,
        engines.settings,
        collected.trained,
        batch,
        positions=engines.positions,
        others=engines.teachers,
    )
    taught_NT = lesson.taught_NT
    taught = float(taught_NT.any(dim=1).sum())
    metrics = {
        "teacher/taught_share": taught / max(1, len(batch.owners)),
        "teacher/tokens": float(taught_NT.sum()),
    }
    if lesson.entropy_NT is not None and taught_NT.any():
        metrics["teacher/entropy_nats"] = float(lesson.entropy_NT[taught_NT].mean())
    return lesson, metrics


def old_scores(engines: Engines, batch: StepBatch) -> TokenScores:
    """Log-probs and entropies under the policy that will be updated, routes replayed (R3)."""
    replays = engines.settings.router_replay is RouterReplay.R3
    return engines.trainer.score(
        batch.tokens,
        temperature=engines.settings.temperature,
        record_routes=not replays and engines.rollout.num_experts > 0,
    )


def kept_mass(
    engines: Engines, batch: StepBatch, sampled: TokenScores, step: int
) -> dict[str, float]:
    """Probability that the sets hold which tokens were drawn from, under the policy; mean and p5.

    Of a sample of rows, which the trainer scores again over the whole vocabulary; nothing where
    sampling was not truncated. It is what the policy ratio would be without the sets.
    """
    if batch.tokens.kept_N is None:
        return {}
    rows = sampled_rows(engines.settings, len(batch.owners), step)
    part = replace(batch.tokens.select(rows), kept_N=None)
    temperature = engines.settings.temperature
    whole = engines.trainer.score(part, temperature=temperature, record_routes=False)
    over_sets_NT = sampled.logprobs_NT[rows, : part.tokens_NT.shape[1]]
    mass = (whole.logprobs_NT - over_sets_NT)[part.response_NT].exp()
    return {
        "rollout/kept_mass": float(mass.mean()),
        "rollout/kept_mass_p5": float(mass.quantile(0.05)),
    }


def route_mismatch(engines: Engines, batch: StepBatch, step: int) -> dict[str, float]:
    """Share of the trainer's own routes that differ from the recorded ones, in all and by layer.

    Of a sample of rows, which the trainer scores again and records its choices in; nothing without
    a row, or where the settings do not ask. Recorded routes are replayed in that pass too, so that
    a layer's share is of its own router and not of what the layers before it changed.
    """
    if not (engines.settings.engines.mismatch.routes and batch.owners):
        return {}
    part = batch.tokens.select(sampled_rows(engines.settings, len(batch.owners), step))
    temperature = engines.settings.temperature
    own = engines.trainer.score(part, temperature=temperature, record_routes=True).experts_NTLK
    recorded_NTLK = part.padded_routes_NTLK
    if own is None or recorded_NTLK is None:
        raise EngineError("engines.mismatch.routes is set, and trainer or rollouts have no routes")
    native_MLK, recorded_MLK = own.flatten(0, 1), recorded_NTLK.flatten(0, 1)
    by_layer = disagreement_by_layer(native_MLK, recorded_MLK)
    return {"mismatch/route_disagreement": disagreement(native_MLK, recorded_MLK)} | {
        f"mismatch/route_disagreement_layer_{layer}": share for layer, share in enumerate(by_layer)
    }


def recorded_scores(
    engines: Engines, batch: StepBatch, rows: torch.Tensor
) -> tuple[TokenScores, TokenScores]:
    """The recorded log-probs as the old ones, and the trainer's on some rows, for the gate.

    Entropies of the other rows are not known: they are not a number, lest a loss take them for 0.
    """
    recorded_NT = batch.tokens.columns["rollout_logprobs"]
    ours_NT, entropy_NT = recorded_NT.clone(), torch.full_like(recorded_NT, torch.nan)
    part = batch.tokens.select(rows)
    temperature = engines.settings.temperature
    scores = engines.trainer.score(part, temperature=temperature, record_routes=False)
    width = part.tokens_NT.shape[1]
    ours_NT[rows, :width], entropy_NT[rows, :width] = scores.logprobs_NT, scores.entropy_NT
    old = TokenScores(recorded_NT, entropy_NT, None)
    return old, replace(old, logprobs_NT=ours_NT)


def reference_scores(engines: Engines, batch: StepBatch) -> torch.Tensor | None:
    """Log-probabilities under the phase's start model; None where no term needs them.

    With its own routes: replaying the policy's would hide how far the policy has moved.
    """
    if engines.reference is None or not batch.owners:
        return None
    plain = replace(batch.tokens, experts_NTLK=None)
    temperature = engines.settings.temperature
    return engines.reference.score(plain, temperature=temperature, record_routes=False).logprobs_NT


def replaying_batch(
    engines: Engines,
    batch: StepBatch,
    old: TokenScores,
    signal: StepSignal,
    terms: Sequence[Term],
) -> TokenBatch:
    """The batch of the updates: its routes follow the replay mode."""
    experts_NTLK = {
        RouterReplay.OFF: None,
        RouterReplay.R2: old.experts_NTLK,
        RouterReplay.R3: batch.tokens.experts_NTLK,
    }[engines.settings.router_replay]
    columns = weigh_prompts(loss_columns(old, signal), batch)
    training = replace(batch.tokens, experts_NTLK=experts_NTLK, columns=columns)
    if not any(term.needs_router_scores for term in terms):
        return training
    if not isinstance(engines.trainer, RouterScorer):
        raise EngineError("a term needs the routers' scores, and the trainer gives none")
    scores_NTLK = engines.trainer.router_scores(training)
    return replace(training, columns={**columns, OLD_SCORES: scores_NTLK})


def update(
    engines: Engines,
    training: TokenBatch,
    num_sequences: int,
    rows: tuple[torch.Tensor, ...],
    updates: int,
    watch: step_snapshot.Recorder,
    terms: tuple[TermSettings, ...],
) -> list[dict[str, float]]:
    """Do the updates of the step, one per part of its rows."""
    # Divided by the mean part, not by each: parts differ by a sequence where the division has a
    # rest, and every sequence of the step weighs the same.
    policy = policy_loss(engines.settings, num_sequences / max(1, len(rows)), terms)
    auxiliary = auxiliary_of(find_terms(terms))
    losses = []
    for number, part in enumerate(rows):
        loss = RecordingLoss(policy)
        step_loss = engines.trainer.update(
            training.select(part),
            loss,
            temperature=engines.settings.temperature,
            learning_rate=warmup_constant(
                updates + number, peak=engines.settings.learning_rate, warmup=WARMUP_UPDATES
            ),
            auxiliary=auxiliary,
        )
        watch.record(loss.calls)
        losses.append(step_loss)
    return losses


@dataclass(frozen=True, slots=True)
class WeightSync:
    """A weight sync that was verified."""

    digest: str
    gap: float
    """Mean |dlogp| between the engines on the canary sequences, nats."""
    sent_bytes: int


def sync_weights(engines: Engines, version: int) -> WeightSync:
    """Send the trainer's weights to the rollout engine; verify that it computes with exactly those.

    Raises:
        EngineError: the digests differ, or the log-probabilities do.
    """
    # Hashed while they are sent: gathering a large model twice would take twice as long.
    weights = Outgoing(engines.trainer.weights())
    installed, digest = engines.rollout.load_weights(weights, version), weights.digest()
    if installed != digest:
        raise EngineError(
            f"weight sync of version {version}: the engine has {installed[:12]}, "
            f"the trainer sent {digest[:12]}; no rollout was made with the wrong weights"
        )
    gap = gate.check_weight_sync(
        engines.rollout, engines.trainer, engines.canaries, engines.settings.engines.precision
    )
    return WeightSync(digest, gap, weights.sent_bytes)


def finished(record: state.StepRecord, seconds: StepTiming, synced: WeightSync) -> state.StepRecord:
    """Complete a step's record with what followed its updates."""
    metrics = record.report.metrics | {"weight_sync/sent_bytes": float(synced.sent_bytes)}
    report = record.report.model_copy(update={"metrics": metrics})
    return record.model_copy(update={"timing": seconds, "report": report})


def timing(collected: StepRollouts, clock: Clock) -> StepTiming:
    """Seconds of a step's parts; rollout and reward are within collect or overlap with it."""
    inside = {"rollout": collected.rollout_seconds, "reward": collected.reward_seconds}
    return StepTiming(
        step=collected.step, seconds=clock.seconds | inside, cpu_seconds=clock.cpu_seconds
    )
