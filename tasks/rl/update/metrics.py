"""Metrics of a step report: rewards, zero variance by stage, schedule, policy, mismatch."""

from collections import Counter
from collections.abc import Sequence

from data_schemas.ledger import GroupOutcome
from data_schemas.rollouts import StopReason
from tasks.algorithms.mismatch import mismatch_anatomy, mismatch_metrics
from tasks.algorithms.routing import disagreement, missing_rows
from tasks.engines.protocols import TokenScores
from tasks.rl.rollouts.collected import Collected
from tasks.rl.rollouts.group_outcomes import CollectedGroup, scores_vary
from tasks.rl.update.batch import StepBatch


def collect_metrics(collected: Collected) -> dict[str, float]:
    """Rewards, outcomes and lengths of a step; one count per reason of a verdict."""
    groups = collected.groups
    items = [item for entry in groups for item in entry.group.rollouts]
    scored = [item.verdict.score for item in items if item.verdict.score is not None]
    lengths = [item.rollout.num_sampled for item in items]
    truncated = sum(item.rollout.stop_reason is StopReason.LENGTH for item in items)
    generated = sum(entry.new_tokens + entry.draft_tokens for entry in groups)
    unfinished = sum(entry.new_tokens + entry.draft_tokens for entry in collected.in_flight)
    metrics = {
        "reward/mean": sum(scored) / max(1, len(scored)),
        "reward/solved_share": sum(item.verdict.solved for item in items) / max(1, len(scored)),
        "reward/abstained_count": float(len(items) - len(scored)),
        "reward/response_fault_count": float(sum(i.verdict.by_response_fault for i in items)),
        "reward/penalty_mean": sum(item.penalty for item in items) / max(1, len(items)),
        "rollout/length_tokens": sum(lengths) / max(1, len(items)),
        "rollout/generated_tokens": float(generated + unfinished),
        "rollout/draft_tokens": float(sum(entry.draft_tokens for entry in groups)),
        "rollout/reused_tokens": float(sum(entry.reused_tokens for entry in groups)),
        "rollout/truncated_share": truncated / max(1, len(items)),
        "rollout/staleness_versions": float(_staleness(collected)),
        "rollout/in_flight_groups": float(len(collected.in_flight)),
    }
    return metrics | zero_variance_metrics(collected) | _by_domain(groups) | _by_reason(groups)


def zero_variance_metrics(collected: Collected) -> dict[str, float]:
    """Metrics of each stage of zero-variance elimination (CompassMax A.4)."""
    outcomes = Counter(entry.outcome for entry in collected.groups)
    first = [entry for entry in collected.groups if entry.round == 0]
    flat = sum(not _alive(entry) for entry in first)
    skipped = Counter(entry.outcome for entry in collected.skipped)
    trained = collected.trained
    return {
        "zero_variance/share": flat / max(1, len(first)),
        "zero_variance/trained_share": sum(not _alive(e) for e in trained) / max(1, len(trained)),
        "zero_variance/skipped_zero_variance_count": float(
            skipped[GroupOutcome.SKIPPED_ZERO_VARIANCE]
        ),
        "zero_variance/skipped_band_count": float(skipped[GroupOutcome.SKIPPED_BAND]),
        "zero_variance/saved_tokens": float(sum(e.saved_tokens for e in collected.skipped)),
        "zero_variance/dropped_groups": float(outcomes[GroupOutcome.SURPLUS]),
        "zero_variance/trained_groups": float(outcomes[GroupOutcome.ZERO_VARIANCE_TRAINED]),
        "zero_variance/zero_variance_partial_groups": float(
            outcomes[GroupOutcome.ZERO_VARIANCE_PARTIAL]
        ),
    }


def policy_metrics(
    old: TokenScores, batch: StepBatch, losses: Sequence[dict[str, float]]
) -> dict[str, float]:
    """Entropy, loss, clipping and gradient size of a step; in fp16 skipped updates and loss scale.

    The gradient size is a mean over all updates; that of a skipped one is 0.
    """
    mask_NT = batch.tokens.response_NT
    tokens = sum(result["tokens"] for result in losses)
    count = max(1, len(losses))
    last = losses[-1] if losses else {"clipped_tokens": 0.0, "tokens": 0.0}
    scaling = {}
    if "loss_scale" in last:  # of a trainer in fp16
        overflows = sum(result["overflow_updates"] for result in losses)
        scaling = {"policy/overflow_updates": overflows, "policy/loss_scale": last["loss_scale"]}
    return {
        "policy/entropy_nats": float(old.entropy_NT[mask_NT].mean()) if mask_NT.any() else 0.0,
        "policy/loss": sum(result["loss"] for result in losses) / count,
        "policy/grad_norm": sum(result["grad_norm"] for result in losses) / count,
        "policy/clip_share": sum(result["clipped_tokens"] for result in losses) / max(1.0, tokens),
        # The first update is on-policy and clips nothing; the last one is the furthest from it.
        "policy/clip_share_last": last["clipped_tokens"] / max(1.0, last["tokens"]),
        "policy/trained_sequences": float(len(batch.owners)),
        "policy/trained_tokens": float(tokens),
        # To the phase's start model; 0 if the loss has no KL term.
        "policy/kl": sum(result.get("kl", 0.0) for result in losses) / count,
    } | scaling


def mismatch_of(batch: StepBatch, old: TokenScores) -> dict[str, float]:
    """Trainer against rollout engine, before any update of the step."""
    tokens = batch.tokens
    compared = old.logprobs_NT, tokens.columns["rollout_logprobs"], tokens.response_NT
    metrics = mismatch_metrics(*compared) | mismatch_anatomy(*compared)
    if tokens.experts_NTLK is not None:
        metrics["mismatch/missing_routes"] = float(
            missing_rows(tokens.experts_NTLK, tokens.lengths_N)
        )
    if old.experts_NTLK is not None and tokens.experts_NTLK is not None:
        metrics["mismatch/route_disagreement"] = disagreement(
            old.experts_NTLK.flatten(0, 1), tokens.experts_NTLK.flatten(0, 1)
        )
    return metrics


def _alive(entry: CollectedGroup) -> bool:
    verdicts = [item.verdict for item in entry.group.rollouts]
    return scores_vary([verdict.score for verdict in verdicts if verdict.score is not None])


def _staleness(collected: Collected) -> int:
    """Policy versions between the oldest token of the batch and the policy trained on it."""
    oldest = [
        rollout.policy_version if rollout.first_version < 0 else rollout.first_version
        for entry in collected.groups
        for rollout in (item.rollout for item in entry.group.rollouts)
    ]
    return collected.step - 1 - min(oldest, default=collected.policy_version)


def _by_domain(groups: Sequence[CollectedGroup]) -> dict[str, float]:
    scores: dict[str, list[float]] = {}
    for entry in groups:
        mine = scores.setdefault(entry.group.problem.domain.value, [])
        verdicts = [item.verdict for item in entry.group.rollouts]
        mine.extend(verdict.score for verdict in verdicts if verdict.score is not None)
    return {
        f"reward/mean_{domain}": sum(mine) / max(1, len(mine))
        for domain, mine in sorted(scores.items())
    }


def _by_reason(groups: Sequence[CollectedGroup]) -> dict[str, float]:
    verdicts = [item.verdict for entry in groups for item in entry.group.rollouts]
    counts = Counter(
        f"reward/abstained/{v.reason}" if v.abstained else f"reward/reason/{v.reason}"
        for v in verdicts
    )
    return {name: float(count) for name, count in sorted(counts.items())}
