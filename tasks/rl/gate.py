"""Train-inference mismatch gate: two checks that stop a run before it learns from noise.

After every weight sync the rollout engine scores canary sequences: a digest of the received
tensors does not prove that its kernels use them (a second raw load into a fused MoE layer was
observed to install other weights than it received).

On every step, before the update, k3 between trainer and rollout engine decides whether the step
proceeds, is corrected by importance weights, or stops the run.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from data_schemas.machine_settings import Precision
from data_schemas.reports import GateRecord, MismatchDecision
from data_schemas.rl_settings import MismatchSettings, OldPolicy
from tasks.algorithms.mismatch import SliceMismatch
from tasks.engines.protocols import RolloutEngine, TokenBatch, Trainer
from tasks.errors import EngineError

PROBE_TOLERANCE = {
    Precision.FP32: 1e-3,
    Precision.BF16: 0.1,
    Precision.FP16: 0.02,
    Precision.FP8: 0.2,
}
"""Largest mean |dlogp| on canaries, nats: ten times the effect of rounding. Wrong weights
that differ by less pass; the digest detects those."""

PROBE_TOKEN_CAP = 1.0
"""Cap per token, nats: wrong weights change most tokens; a route flipped by rounding changes few,
but those by up to 10 nats. In fp32 one of 300 is more than the tolerance, so the canaries are also
scored backwards, which are other contexts: a route flips in one of them, wrong weights show in
both."""


def decide(
    step: int,
    metrics: Mapping[str, float],
    probe_gap: float,
    settings: MismatchSettings,
    correcting: Sequence[str] = (),
    slices: Sequence[SliceMismatch] = (),
) -> GateRecord:
    """Decide on a step by its k3, and by its tokens without a finite log-probability.

    A domain or a language counts as the step does, once its k3 is above a bound for certain: the
    mean over a step hides a language of a twentieth of its responses.

    Args:
        step: number of the step.
        metrics: of the mismatch.
        probe_gap: mean |dlogp| on the canaries, nats.
        settings: bounds of k3.
        correcting: kinds of the terms that correct every step.
        slices: k3 of every slice.
    """
    worst = max(slices, key=lambda one: one.low, default=None)
    certain = worst.low if worst else 0.0
    named = (
        f"k3 of {worst.name} is {worst.k3:.2e} on {worst.responses} responses, at least "
        f"{certain:.2e} for certain, above mismatch."
        if worst
        else ""
    )
    k3, overflow = metrics["mismatch/k3"], int(metrics["mismatch/overflow_tokens"])
    if overflow:
        decision = MismatchDecision.PAUSE
        reason = f"{overflow} tokens have no finite log-probability: the logits overflow"
    elif not k3 <= settings.pause_above:  # NaN pauses as well
        decision = MismatchDecision.PAUSE
        reason = f"k3 {k3:.2e} is above mismatch.pause_above {settings.pause_above:.0e}"
    elif certain > settings.pause_above:
        decision, reason = MismatchDecision.PAUSE, f"{named}pause_above {settings.pause_above:.0e}"
    elif settings.old_policy is OldPolicy.ROLLOUT:
        decision = MismatchDecision.PROCEED
        reason = f"k3 {k3:.2e} of a sample; the policy ratio is to the rollout engine"
    elif k3 > settings.correct_above:
        decision = MismatchDecision.CORRECT
        reason = f"k3 {k3:.2e} is above mismatch.correct_above {settings.correct_above:.0e}"
    elif certain > settings.correct_above:
        decision = MismatchDecision.CORRECT
        reason = f"{named}correct_above {settings.correct_above:.0e}"
    elif correcting:
        decision, reason = MismatchDecision.CORRECT, f"terms has {', '.join(correcting)}"
    else:
        decision, reason = MismatchDecision.PROCEED, f"k3 {k3:.2e}"
    return GateRecord(
        step=step,
        decision=decision,
        reason=reason,
        k3=k3,
        mean_abs_logprob=metrics["mismatch/mean_abs_logprob"],
        extreme_share=metrics["mismatch/extreme_share"],
        effective_share=metrics["mismatch/effective_share"],
        overflow_tokens=overflow,
        route_disagreement=metrics.get("mismatch/route_disagreement"),
        worst_slice=worst.name if worst and certain else "",
        slice_k3=certain,
        probe_logprob=probe_gap,
    )


def enforce(record: GateRecord) -> None:
    """Stop the run if the gate decided so.

    Raises:
        EngineError: the decision is PAUSE.
    """
    if record.decision is MismatchDecision.PAUSE:
        raise EngineError(
            f"step {record.step}: {record.reason}; the step was not trained. Use the same "
            "precision in both engines, bf16 where fp16 overflows; for a k3 above its bound also "
            "router_replay r3, or a larger engines.mismatch.pause_above."
        )


def count_overflow(record: GateRecord, losses: Sequence[Mapping[str, float]]) -> GateRecord:
    """Say in a step's record how many of its updates were skipped, because fp16 overflowed.

    The trainer stops a run whose updates overflow too often, in every stage that trains.

    Args:
        losses: what the trainer returned for each update of the step.
    """
    skipped = sum(result.get("overflow_updates", 0.0) for result in losses)
    if not skipped:
        return record
    reason = f"{record.reason}; {skipped:.0f} of {len(losses)} updates overflowed and were skipped"
    return record.model_copy(update={"reason": reason})


def check_weight_sync(
    engine: RolloutEngine,
    trainer: Trainer,
    canaries: Sequence[NDArray[np.int32]],
    precision: Precision,
) -> float:
    """Compare both engines on canary sequences; return the mean |dlogp|, tokens capped.

    Raises:
        EngineError: they differ by more than the rounding of `precision` explains, and on the same
            sequences backwards, too.
    """
    gap = _mean_gap(engine, trainer, canaries, precision)
    if not gap <= PROBE_TOLERANCE[precision]:
        backwards = [one[::-1].copy() for one in canaries]
        gap = min(gap, _mean_gap(engine, trainer, backwards, precision))
    if not gap <= PROBE_TOLERANCE[precision]:
        raise EngineError(
            "weight sync: on canary sequences the rollout engine's log-probabilities are "
            f"{gap:.3g} nats from the trainer's; rounding explains {PROBE_TOLERANCE[precision]}. "
            "It computes with other weights than it was sent; no rollout was made with them."
        )
    return gap


def _mean_gap(
    engine: RolloutEngine,
    trainer: Trainer,
    canaries: Sequence[NDArray[np.int32]],
    precision: Precision,
) -> float:
    """Mean |dlogp|, tokens capped.

    Raises:
        EngineError: tokens have no finite log-probability.
    """
    theirs = np.concatenate(engine.score_logprobs(canaries))
    ours = trainer_logprobs(trainer, canaries)
    if overflow := int(np.sum(~np.isfinite(theirs - ours))):
        raise EngineError(
            f"weight sync: {overflow} of {len(theirs)} canary tokens have no finite "
            f"log-probability: in {precision.value} weights or activations overflow. "
            "Use engines.precision 'bf16'."
        )
    return float(np.minimum(np.abs(theirs - ours), PROBE_TOKEN_CAP).mean())


def trainer_logprobs(
    trainer: Trainer, sequences: Sequence[NDArray[np.int32]]
) -> NDArray[np.float32]:
    """Log-probabilities of every token after the first, sequences end to end."""
    batch = TokenBatch.of_sequences(sequences)
    scores = trainer.score(batch, temperature=1.0, record_routes=False)
    return scores.logprobs_NT[batch.response_NT].numpy()
