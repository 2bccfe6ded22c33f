"""What a step reports: a ledger row per prompt with what it cost and contributed, and metrics.

Conservation: over a phase, the generated tokens of all rows are the rollout engine's own count.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from data_schemas.ledgers import (
    TRAINED,
    AgentLedgerRow,
    GroupOutcome,
    LedgerRow,
    PromptCost,
    TokenUse,
)
from data_schemas.pass_rates import GradedProblem
from data_schemas.references import monitor_label
from data_schemas.reports import ACCEPTED, FRESHNESS, MONITOR, SLICES
from data_schemas.rollouts import AgentTurn, KeptSets, Rollout, ScoredRollout, StopReason
from data_schemas.rows import Domain, Problem
from tasks.algorithms.above_graded import above_graded
from tasks.algorithms.length_bias import length_bias
from tasks.algorithms.mismatch import (
    SliceMismatch,
    k3_by_slice,
    mismatch_anatomy,
    mismatch_metrics,
)
from tasks.algorithms.routing import disagreement, missing_rows
from tasks.algorithms.token_uses import accepted_tokens, token_uses
from tasks.engines.protocols import TokenScores
from tasks.gym.judging.bias import judge_bias
from tasks.gym.table import is_judged
from tasks.rl.batch import StepBatch, slices_of
from tasks.rl.collector import InFlightPrompt, SkippedPrompt, StepRollouts
from tasks.rl.groups import CollectedGroup, scores_vary

ABOVE_GRADED, ABOVE_GRADED_ERROR = "reward/above_graded", "reward/above_graded_error"
"""Metrics: share solved above that of grading, mean over the groups, and its standard error."""


def ledger_rows(
    collected: StepRollouts,
    batch: StepBatch,
    advantages_NT: torch.Tensor,
    uses: Mapping[TokenUse, torch.Tensor],
    taught_NT: torch.Tensor | None = None,
) -> list[LedgerRow]:
    """One row per prompt drawn: trained, surplus, in flight, skipped.

    Args:
        collected: the step.
        batch: made from `collected.trained`; its owners count in that order.
        advantages_NT: of the sequences of the batch.
        uses: tokens of the batch that have no weight in the policy's loss, by use; disjoint.
        taught_NT: those with an advantage of a teacher and none from rewards that differ.
    """
    trained_NT = advantages_NT != 0
    for lost_NT in uses.values():
        trained_NT &= ~lost_NT
    mass_N = (advantages_NT.abs() * trained_NT).sum(dim=1).tolist()
    step, trained = collected.step, collected.trained
    earned = [(0.0, Counter[str]()) for _ in trained]
    for row, ((place, _), mass) in enumerate(zip(batch.owners, mass_N, strict=True)):
        counts = {"trained_tokens": int(trained_NT[row].sum())} | {
            f"{use}_tokens": int(lost_NT[row].sum()) for use, lost_NT in uses.items()
        }
        if taught_NT is not None:
            counts["taught_tokens"] = int((trained_NT & taught_NT)[row].sum())
        earned[place] = earned[place][0] + mass, earned[place][1] + Counter(counts)
    surplus = [entry for entry in collected.groups if entry.outcome is GroupOutcome.SURPLUS]
    return [
        *(_finished(step, entry, *gain) for entry, gain in zip(trained, earned, strict=True)),
        *(_finished(step, entry, 0.0, {}) for entry in surplus),
        *(_in_flight(step, entry) for entry in collected.in_flight),
        *(_skipped(step, entry) for entry in collected.skipped),
    ]


def use_metrics(rows: Sequence[LedgerRow]) -> dict[str, float]:
    """Shares of the generated tokens by use, grading's apart; all 0 if nothing was generated."""
    uses = token_uses(rows)
    del uses[TokenUse.GRADING]
    total = max(1, sum(uses.values()))
    return {f"tokens/{use}_share": count / total for use, count in uses.items()}


def accepted_metrics(rows: Sequence[LedgerRow]) -> dict[str, float]:
    """Tokens that were trained with contrast, and the share of them that is not stale."""
    accepted, freshness = accepted_tokens(rows)
    return {ACCEPTED: float(accepted), FRESHNESS: freshness}


def domain_metrics(shares: Mapping[Domain, float], rows: Sequence[LedgerRow]) -> dict[str, float]:
    """Share of every domain among the prompts that are trained, beside the share asked for.

    A prompt counts by the weight of its group. Skips without weights and groups without contrast
    move these shares: `domains/moved_share` of the prompts are in other domains than the weights
    ask for. Without a trained prompt nothing has moved.
    """
    whole, trained = sum(shares.values()), dict.fromkeys(shares, 0.0)
    for row in rows:
        if row.trained_tokens:
            trained[row.domain] = trained.get(row.domain, 0.0) + row.weight
    num_trained = sum(trained.values())
    metrics, moved = {}, 0.0
    for domain, weight in sorted(shares.items()):
        share = trained[domain] / num_trained if num_trained else weight / whole
        metrics[f"domains/asked_{domain}"] = weight / whole
        metrics[f"domains/trained_{domain}"] = share
        moved += max(0.0, share - weight / whole)
    return metrics | {"domains/moved_share": moved}


def skip_metrics(rows: Sequence[LedgerRow]) -> dict[str, float]:
    """How even the weights are that make up for skips; nothing where no group has one.

    `skips/effective_share` is the effective sample size of the weights: 1 where all are equal.
    """
    weights = np.array([row.weight for row in rows if row.rollouts])
    if not len(weights) or (weights == 1.0).all():
        return {}
    return {
        "skips/weight_mean": float(weights.mean()),
        "skips/weight_max": float(weights.max()),
        "skips/effective_share": float(weights.sum() ** 2 / (len(weights) * (weights**2).sum())),
        "skips/clipped_groups": float(sum(row.clipped_weight for row in rows if row.rollouts)),
    }


def length_metrics(
    collected: StepRollouts, batch: StepBatch, uses: Mapping[TokenUse, torch.Tensor]
) -> dict[str, float]:
    """Test whether rules select by length: no lengths are trained that were not generated so.

    `length_bias/groups`: groups that train beside all that ended. It looks at rewards, so it may
    differ. `length_bias/responses`: responses of the batch beside those that no verdict, C3PO's
    budget or a mask leaves out. It should be 0; `_chance` says how often a blind rule differs more.

    Args:
        collected: the step.
        batch: made from `collected.trained`; its owners count in that order.
        uses: tokens of the batch that have no weight in the policy's loss, by use; disjoint.
    """
    groups, trained = collected.groups, collected.trained
    lengths = [[item.rollout.num_sampled for item in one.group.rollouts] for one in groups]
    trains = [one.outcome in TRAINED for one in groups]
    domains = [one.group.problem.domain for one in groups]
    of_groups = length_bias(lengths, trains, domains, collected.step)
    gone_NT = torch.zeros_like(batch.tokens.response_NT)
    for use in (TokenUse.CUT, TokenUse.MASKED):
        gone_NT |= uses.get(use, torch.zeros_like(gone_NT))
    gone_N = ~(batch.tokens.response_NT & ~gone_NT).any(dim=1)
    masked = {
        owner for owner, is_gone in zip(batch.owners, gone_N.tolist(), strict=True) if is_gone
    }
    items = {
        (place, sample): item
        for place, one in enumerate(trained)
        for sample, item in enumerate(one.group.rollouts)
    }
    of_responses = length_bias(
        [[item.rollout.num_sampled] for item in items.values()],
        [owner not in masked and not item.verdict.abstained for owner, item in items.items()],
        [place for place, _ in items],
        collected.step,
    )
    return {
        "length_bias/groups": of_groups.difference,
        "length_bias/groups_chance": of_groups.chance,
        "length_bias/responses": of_responses.difference,
        "length_bias/responses_chance": of_responses.chance,
    }


def prompt_costs(collected: StepRollouts) -> list[PromptCost]:
    """Seconds and judge calls of every prompt that was rolled out."""
    return [
        PromptCost(
            step=collected.step,
            round=cost.round,
            problem_id=cost.problem_id,
            engine_seconds=cost.engine_seconds,
            verifier_seconds=cost.verifier_seconds,
            judge_calls=cost.judge_calls,
        )
        for cost in collected.costs
    ]


def _finished(
    step: int, entry: CollectedGroup, mass: float, tokens: Mapping[str, int]
) -> LedgerRow:
    items = entry.group.rollouts
    scores = _scores(entry)
    row = LedgerRow(
        step=step,
        round=entry.round,
        problem_id=entry.group.problem.id,
        domain=entry.group.problem.domain,
        outcome=entry.outcome,
        rollouts=len(items),
        prompt_tokens=len(items[0].rollout.prompt_tokens),
        generated_tokens=entry.new_tokens + entry.draft_tokens,
        draft_tokens=entry.draft_tokens,
        stale_tokens=sum(_stale_tokens(step, item.rollout) for item in items),
        tokens_by_version=_by_version([item.rollout for item in items]),
        saved_tokens=0,
        **({"trained_tokens": 0} | dict(tokens)),
        keep_probability=entry.kept.probability,
        weight=entry.kept.weight,
        clipped_weight=entry.kept.is_clipped,
        solved=sum(item.verdict.solved for item in items),
        abstained=sum(item.verdict.abstained for item in items),
        mean_score=sum(scores) / len(scores) if scores else 0.0,
        advantage_mass=mass,
        pass_rate_change=entry.pass_rate_change,
    )
    return _of_turn(row, entry.turn)


def _in_flight(step: int, entry: InFlightPrompt) -> LedgerRow:
    group = entry.group
    row = _without_verdicts(step, group.problem, group.round, GroupOutcome.IN_FLIGHT).model_copy(
        update={
            "prompt_tokens": len(group.rollouts[0].prompt_tokens) if group.rollouts else 0,
            "generated_tokens": entry.new_tokens + entry.draft_tokens,
            "draft_tokens": entry.draft_tokens,
            "keep_probability": group.kept.probability,
            "weight": group.kept.weight,
            "clipped_weight": group.kept.is_clipped,
        }
    )
    return _of_turn(row, group.turn)


def _of_turn(row: LedgerRow, turn: AgentTurn | None) -> LedgerRow:
    """Charge a turn's group to its agent and to the problem of its chain."""
    if turn is None:
        return row
    turn_fields = {
        "problem_id": turn.root,
        "agent": turn.agent,
        "key": turn.key,
        "parent": turn.parent,
    }
    return AgentLedgerRow.model_validate(row.model_dump() | turn_fields)


def _skipped(step: int, entry: SkippedPrompt) -> LedgerRow:
    row = _without_verdicts(step, entry.problem, entry.round, entry.outcome)
    return row.model_copy(
        update={
            "saved_tokens": entry.saved_tokens,
            "keep_probability": entry.keep_probability,
            "weight": 0.0,
        }
    )


def _without_verdicts(step: int, problem: Problem, draw: int, outcome: GroupOutcome) -> LedgerRow:
    return LedgerRow(
        step=step,
        round=draw,
        problem_id=problem.id,
        domain=problem.domain,
        outcome=outcome,
        rollouts=0,
        prompt_tokens=0,
        generated_tokens=0,
        draft_tokens=0,
        saved_tokens=0,
        trained_tokens=0,
        solved=0,
        abstained=0,
        mean_score=0.0,
        advantage_mass=0.0,
        pass_rate_change=0.0,
    )


def _scores(entry: CollectedGroup) -> list[float]:
    verdicts = [item.verdict for item in entry.group.rollouts]
    return [verdict.score for verdict in verdicts if verdict.score is not None]


def collect_metrics(collected: StepRollouts, monitors: Sequence[str] = ()) -> dict[str, float]:
    """Rewards, outcomes and lengths of a step; one count per reason of a verdict.

    Args:
        collected: the step.
        monitors: of the phase, in the order of their scores.
    """
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
        "rollout/truncated_share": truncated / max(1, len(items)),
        "rollout/staleness_versions": float(_staleness(collected)),
        "rollout/stale_share": sum(_stale_tokens(collected.step, item.rollout) for item in items)
        / max(1, sum(lengths)),
        "rollout/in_flight_groups": float(len(collected.in_flight)),
    }
    metrics |= zero_variance_metrics(collected) | _by_domain(groups) | _by_reason(groups)
    metrics |= _above_graded(groups)
    metrics |= _monitored(items, monitors)
    metrics |= _of_sets([item.rollout.kept for item in items if item.rollout.kept is not None])
    return metrics | judge_bias(
        [
            [(item.text, item.verdict) for item in entry.group.rollouts]
            for entry in groups
            if is_judged(entry.group.problem)
        ]
    )


def _monitored(items: Sequence[ScoredRollout], names: Sequence[str]) -> dict[str, float]:
    """Mean score of every monitor over the responses that it scored; nothing without one."""
    metrics = {}
    for place, name in enumerate(names):
        scores = [item.monitored[place] for item in items if item.monitored]
        known = [score for score in scores if score is not None]
        if known:
            metrics[f"{MONITOR}{monitor_label(name)}"] = sum(known) / len(known)
        if abstained := len(scores) - len(known):
            metrics[f"{MONITOR}abstained/{monitor_label(name)}"] = float(abstained)
    return metrics


def _above_graded(groups: Sequence[CollectedGroup]) -> dict[str, float]:
    """Share solved above the pass rate of grading; nothing without two groups of graded prompts."""
    rates, graded = [], []
    for entry in groups:
        problem, verdicts = entry.group.problem, [item.verdict for item in entry.group.rollouts]
        scored = sum(verdict.score is not None for verdict in verdicts)
        if scored and isinstance(problem, GradedProblem) and problem.pass_rate is not None:
            rates.append(sum(verdict.solved for verdict in verdicts) / scored)
            graded.append(problem.pass_rate)
    if (compared := above_graded(rates, graded)) is None:
        return {}
    return dict(zip((ABOVE_GRADED, ABOVE_GRADED_ERROR), compared, strict=True))


def _of_sets(sets: Sequence[KeptSets]) -> dict[str, float]:
    """Sizes of the sets that tokens were drawn from; nothing where sampling was not truncated."""
    sizes = np.concatenate([np.zeros(0), *(one.counts[one.counts > 0] for one in sets)])
    if not len(sizes):
        return {}
    return {
        "rollout/kept_tokens": float(sizes.mean()),
        "rollout/kept_tokens_p99": float(np.quantile(sizes, 0.99)),
        "rollout/alone_share": float((sizes == 1).mean()),
    }


def zero_variance_metrics(collected: StepRollouts) -> dict[str, float]:
    """Metrics of each stage of zero-variance elimination (CompassMax)."""

    def is_flat(entry: CollectedGroup) -> bool:
        return not _alive(entry) or entry.outcome is GroupOutcome.ZERO_VARIANCE_NOISE

    outcomes = Counter(entry.outcome for entry in collected.groups)
    first = [entry for entry in collected.groups if entry.round == 0]
    flat = sum(map(is_flat, first))
    skipped = Counter(entry.outcome for entry in collected.skipped)
    trained = collected.trained
    return {
        "zero_variance/share": flat / max(1, len(first)),
        "zero_variance/trained_share": sum(map(is_flat, trained)) / max(1, len(trained)),
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
    old: TokenScores,
    batch: StepBatch,
    losses: Sequence[dict[str, float]],
    rows: torch.Tensor | None = None,
) -> dict[str, float]:
    """Entropy, loss, clipping and gradient size of a step; in fp16 skipped updates and loss scale.

    The gradient size is a mean over all updates; that of a skipped one is 0. The entropy is that of
    the rows that the trainer scored; None: all.
    """
    mask_NT = _of_rows(batch.tokens.response_NT, rows)
    tokens = sum(result["tokens"] for result in losses)
    count = max(1, len(losses))
    last = losses[-1] if losses else {"clipped_tokens": 0.0, "tokens": 0.0}
    scaling = {}
    if "loss_scale" in last:  # of a trainer in fp16
        overflows = sum(result["overflow_updates"] for result in losses)
        scaling |= {"policy/overflow_updates": overflows, "policy/loss_scale": last["loss_scale"]}
    return {
        "policy/entropy_nats": float(old.entropy_NT[mask_NT].mean()) if mask_NT.any() else 0.0,
        "policy/loss": sum(result["loss"] for result in losses) / count,
        "policy/grad_norm": sum(result["grad_norm"] for result in losses) / count,
        "policy/clip_share": sum(result["clipped_tokens"] for result in losses) / max(1.0, tokens),
        # The last update is the furthest from the old policy.
        "policy/clip_share_last": last["clipped_tokens"] / max(1.0, last["tokens"]),
        "policy/trained_sequences": float(len(batch.owners)),
        "policy/trained_tokens": float(tokens),
    } | scaling


def _of_rows(mask_NT: torch.Tensor, rows: torch.Tensor | None) -> torch.Tensor:
    """Leave only some rows of a mask; None: all of them."""
    if rows is None:
        return mask_NT
    chosen_N = torch.zeros(len(mask_NT), dtype=torch.bool)
    chosen_N[rows] = True
    return mask_NT & chosen_N[:, None]


def mismatch_of(
    batch: StepBatch, old: TokenScores, rows: torch.Tensor | None = None
) -> dict[str, float]:
    """Trainer against rollout engine, before any update of the step.

    Args:
        batch: of the step.
        old: scores of the trainer.
        rows: that it scored; None: all.
    """
    tokens = batch.tokens
    response_NT = _of_rows(tokens.response_NT, rows)
    compared = old.logprobs_NT, tokens.columns["rollout_logprobs"], response_NT
    metrics = mismatch_metrics(*compared) | mismatch_anatomy(*compared)
    if tokens.experts_NTLK is not None:
        metrics["mismatch/missing_routes"] = float(
            missing_rows(tokens.experts_NTLK, tokens.lengths_N)
        )
    if old.experts_NTLK is not None and (recorded_NTLK := tokens.padded_routes_NTLK) is not None:
        metrics["mismatch/route_disagreement"] = disagreement(
            old.experts_NTLK.flatten(0, 1), recorded_NTLK.flatten(0, 1)
        )
    return metrics


def slices_of_mismatch(
    batch: StepBatch, old: TokenScores, rows: torch.Tensor | None = None
) -> list[SliceMismatch]:
    """Measure k3 by domain and language; arguments as in `mismatch_of`."""
    response_NT = _of_rows(batch.tokens.response_NT, rows)
    rollout_NT = batch.tokens.columns["rollout_logprobs"]
    return k3_by_slice(old.logprobs_NT, rollout_NT, response_NT, batch.slices_N)


def slice_metrics(
    groups: Sequence[CollectedGroup], mismatch: Sequence[SliceMismatch] = ()
) -> dict[str, float]:
    """Report reward, length, cuts, abstentions and k3 of a step by domain and language.

    A reward is the mean over the responses with a verdict, and absent without one; shares are of
    all responses. k3 is that of a slice alone, however small.
    """
    items: defaultdict[str, list[ScoredRollout]] = defaultdict(list)
    for entry in groups:
        for name in slices_of(entry.group.problem):
            items[name].extend(entry.group.rollouts)
    metrics: dict[str, float] = {}
    for name, mine in sorted(items.items()):
        scores = [item.verdict.score for item in mine if item.verdict.score is not None]
        cut = sum(item.rollout.stop_reason is StopReason.LENGTH for item in mine)
        measures = {
            "length_tokens": sum(item.rollout.num_sampled for item in mine) / len(mine),
            "truncated_share": cut / len(mine),
            "abstained_share": 1.0 - len(scores) / len(mine),
        }
        if scores:
            measures["reward"] = sum(scores) / len(scores)
        prefix = f"{SLICES}{name.replace(':', '/')}"
        metrics |= {f"{prefix}/{measure}": value for measure, value in measures.items()}
    alone = [one for one in mismatch if " + " not in one.name]
    return metrics | {f"{SLICES}{one.name.replace(':', '/')}/k3": one.k3 for one in alone}


def _alive(entry: CollectedGroup) -> bool:
    verdicts = [item.verdict for item in entry.group.rollouts]
    return scores_vary([verdict.score for verdict in verdicts if verdict.score is not None])


def _by_version(rollouts: Sequence[Rollout]) -> tuple[tuple[int, int], ...]:
    """Count the tokens that each policy version sampled."""
    counts = Counter[int]()
    for one in rollouts:
        sampled_R = one.versions_R if one.sampled is None else one.versions_R[one.sampled]
        for version, tokens in zip(*np.unique(sampled_R, return_counts=True), strict=True):
            counts[int(version)] += int(tokens)
    return tuple(sorted(counts.items()))


def _stale_tokens(step: int, rollout: Rollout) -> int:
    """Count the tokens sampled by an older policy than the one that the step trains."""
    stale_R = rollout.versions_R < step - 1
    return int((stale_R if rollout.sampled is None else stale_R & rollout.sampled).sum())


def _staleness(collected: StepRollouts) -> int:
    """Policy versions between the oldest token of the batch and the policy trained on it."""
    oldest = [
        item.rollout.first_version for entry in collected.groups for item in entry.group.rollouts
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
