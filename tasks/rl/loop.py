"""The RL loop on one screen, as a generator of step records.

    prompts -> rollouts with routes -> verdicts -> fates -> old log-probs under replay
    -> advantages -> clipped updates -> weight hand-over -> commit

The state of a step is committed before its record is yielded: whoever drives the
generator may stop after any record, and a new generator goes on with the next step.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from data_schemas.ledger import Fate
from data_schemas.reports import StepReport, StepTiming
from data_schemas.settings import RLSettings, RouterReplay
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.losses import table
from tasks.algorithms.losses.surrogate import Plan, clipped_objective
from tasks.algorithms.mismatch import mismatch_metrics
from tasks.algorithms.routing import disagreement
from tasks.algorithms.schedules import warmup_constant
from tasks.engines.protocols import LossFn, RolloutEngine, TokenBatch, TokenScores, Trainer
from tasks.errors import EngineError
from tasks.rl import state
from tasks.rl.batch import StepBatch, build, ledger_rows, token_advantages
from tasks.rl.collect import Collected, Score, collect, truncated_share
from tasks.rl.draw import PromptStream

WARMUP_UPDATES = 4
"""Updates until the learning rate is at its peak; no paper gives a number for RL."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a phase works with."""

    settings: RLSettings
    engine: RolloutEngine
    trainer: Trainer
    tokenizer: PreTrainedTokenizerBase
    score: Score
    stream: PromptStream
    folder: Path
    """Where state is committed."""


def steps(run: Run, start: state.RunState) -> Iterator[state.StepRecord]:
    """Train from the step after `start` to the last one."""
    now = start
    hand_over(run, version=now.step)
    for step in range(now.step + 1, run.settings.steps + 1):
        record, updates = one_step(run, step, now.updates)
        now = now.model_copy(
            update={"step": step, "position": run.stream.position, "updates": updates}
        )
        state.write_step(run.folder, record)
        if step % run.settings.commit_every == 0 or step == run.settings.steps:
            state.commit(run.folder, now, run.trainer)
        yield record


def one_step(run: Run, step: int, updates: int) -> tuple[state.StepRecord, int]:
    """Roll out, score, update, hand over. Returns the record and the updates done so far."""
    clock = _Clock()
    collected = collect(run.settings, run.engine, run.tokenizer, run.score, run.stream, step)
    trained = collected.trained
    surplus = [item for item in collected.groups if item.fate is Fate.SURPLUS]
    batch = build(run.settings, trained)
    clock.lap("collect")
    old = old_scores(run, batch)
    clock.lap("old_logprobs")
    advantages_NT = token_advantages(run.settings, batch, old)
    plan = table.plan(
        run.settings.loss,
        old.entropy_NT,
        batch.tokens.response_NT,
        vocabulary=len(run.tokenizer),
    )
    training = replaying_batch(run.settings, batch, old, advantages_NT, plan)
    losses = update(run, training, batch.num_sequences, step, updates)
    clock.lap("update")
    hand_over(run, version=step)
    clock.lap("hand_over")
    metrics = (
        collect_metrics(collected)
        | policy_metrics(run.settings, old, batch, losses)
        | mismatch_of(batch, old)
    )
    report = StepReport(step=step, policy_version=step, metrics=metrics)
    seconds = clock.seconds | {
        "rollout": collected.rollout_seconds,
        "reward": collected.reward_seconds,
    }
    rows = ledger_rows(step, [*trained, *surplus], batch, advantages_NT)
    record = state.StepRecord(
        report=report, timing=StepTiming(step=step, seconds=seconds), ledger=tuple(rows)
    )
    return record, updates + len(losses)


def old_scores(run: Run, batch: StepBatch) -> TokenScores:
    """Log-probs and entropies under the policy that will be updated, routes replayed (R3)."""
    return run.trainer.score(
        batch.tokens,
        temperature=run.settings.temperature,
        record_routes=run.settings.router_replay is not RouterReplay.R3,
    )


def replaying_batch(
    settings: RLSettings,
    batch: StepBatch,
    old: TokenScores,
    advantages_NT: torch.Tensor,
    plan: Plan,
) -> TokenBatch:
    """The batch of the updates: its routes follow the replay mode."""
    experts_NTLK = {
        RouterReplay.OFF: None,
        RouterReplay.R2: old.experts_NTLK,
        RouterReplay.R3: batch.tokens.experts_NTLK,
    }[settings.router_replay]
    columns = {"old_logprobs": old.logprobs_NT, "advantages": advantages_NT} | plan.columns()
    return TokenBatch(
        tokens_NT=batch.tokens.tokens_NT,
        lengths_N=batch.tokens.lengths_N,
        response_NT=batch.tokens.response_NT,
        experts_NTLK=experts_NTLK,
        columns=columns,
    )


def update(
    run: Run, training: TokenBatch, num_sequences: int, step: int, updates: int
) -> list[dict[str, float]]:
    """Split the batch into mini-batches, seeded by step, and update on each."""
    num_rows = len(training.lengths_N)
    order = torch.randperm(
        num_rows, generator=torch.Generator().manual_seed(run.settings.seed * 1_000_003 + step)
    )
    count = run.settings.mini_batches
    loss = policy_loss(run.settings, num_sequences / count)
    results = []
    for number, rows in enumerate(order.tensor_split(count)):
        if len(rows) == 0:
            continue
        rate = warmup_constant(
            updates + number, peak=run.settings.learning_rate, warmup=WARMUP_UPDATES
        )
        results.append(
            run.trainer.update(
                training.select(rows),
                loss,
                temperature=run.settings.temperature,
                learning_rate=rate,
            )
        )
    return results


def policy_loss(settings: RLSettings, num_sequences: float) -> LossFn:
    """The policy loss of a mini-batch, as the trainer wants it."""
    mode = table.ratio_mode(settings.loss)

    def loss(logprobs_NT: torch.Tensor, batch: TokenBatch) -> tuple[torch.Tensor, dict[str, float]]:
        column = batch.columns
        plan = Plan(column["groups"], column["weights"], column["clip_low"], column["clip_high"])
        objective_N, clipped_NT = clipped_objective(
            logprobs_NT, column["old_logprobs"], column["advantages"], plan, ratio_mode=mode
        )
        counts = {
            "clipped_tokens": float(clipped_NT.sum()),
            "tokens": float((plan.weights_NT > 0).sum()),
        }
        return -objective_N.sum() / num_sequences, counts

    return loss


def hand_over(run: Run, version: int) -> None:
    """Give the rollout engine the trainer's weights and check that it has exactly those.

    Raises:
        EngineError: the digests differ.
    """
    sent = weight_digest(run.trainer.weights())
    installed = run.engine.load_weights(run.trainer.weights(), version)
    if installed != sent:
        raise EngineError(
            f"weight hand-over of version {version}: the engine has {installed[:12]}, "
            f"the trainer sent {sent[:12]}; no rollout was made with the wrong weights"
        )


def collect_metrics(collected: Collected) -> dict[str, float]:
    """Rewards, fates and lengths of a step."""
    groups = collected.groups
    items = [item for entry in groups for item in entry.group.rollouts]
    scored = [item.verdict.score for item in items if item.verdict.score is not None]
    fates = [entry.fate for entry in groups]
    first = [entry for entry in groups if entry.round == 0]
    flat = sum(not _has_contrast(entry.group.rollouts) for entry in first)
    metrics = {
        "reward/mean": sum(scored) / max(1, len(scored)),
        "reward/solved_share": sum(item.verdict.solved for item in items) / max(1, len(scored)),
        "reward/abstained_count": float(len(items) - len(scored)),
        "reward/penalty_mean": sum(item.penalty for item in items) / len(items),
        "zero_variance/share": flat / len(first),
        "zero_variance/dropped_groups": float(fates.count(Fate.SURPLUS)),
        "zero_variance/trained_groups": float(fates.count(Fate.ZERO_VARIANCE_TRAINED)),
        "rollout/length_tokens": sum(len(item.rollout.response_tokens) for item in items)
        / len(items),
        "rollout/generated_tokens": float(sum(len(item.rollout.response_tokens) for item in items)),
        "rollout/truncated_share": truncated_share(groups),
    }
    for domain in sorted({entry.group.problem.domain for entry in groups}):
        mine = [
            item.verdict.score
            for entry in groups
            if entry.group.problem.domain is domain
            for item in entry.group.rollouts
            if item.verdict.score is not None
        ]
        metrics[f"reward/mean_{domain.value}"] = sum(mine) / max(1, len(mine))
    return metrics


def policy_metrics(
    settings: RLSettings, old: TokenScores, batch: StepBatch, losses: list[dict[str, float]]
) -> dict[str, float]:
    """Entropy, loss, clipping and gradient size of a step."""
    mask_NT = batch.tokens.response_NT
    tokens = sum(result["tokens"] for result in losses)
    count = max(1, len(losses))
    return {
        "policy/entropy_nats": float(old.entropy_NT[mask_NT].mean()) if mask_NT.any() else 0.0,
        "policy/loss": sum(result["loss"] for result in losses) / count,
        "policy/grad_norm": sum(result["grad_norm"] for result in losses) / count,
        "policy/clip_share": sum(result["clipped_tokens"] for result in losses) / max(1.0, tokens),
        "policy/trained_sequences": float(len(batch.owners)),
    }


def mismatch_of(batch: StepBatch, old: TokenScores) -> dict[str, float]:
    """Trainer against rollout engine, before any update of the step."""
    tokens = batch.tokens
    metrics = mismatch_metrics(
        old.logprobs_NT, tokens.columns["rollout_logprobs"], tokens.response_NT
    )
    if old.experts_NTLK is not None and tokens.experts_NTLK is not None:
        metrics["mismatch/route_disagreement"] = disagreement(
            old.experts_NTLK.flatten(0, 1), tokens.experts_NTLK.flatten(0, 1)
        )
    return metrics


def _has_contrast(items) -> bool:
    scores = [item.verdict.score for item in items if item.verdict.score is not None]
    return len(scores) > 1 and max(scores) - min(scores) > 1e-6


class _Clock:
    """Seconds since the last lap, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
