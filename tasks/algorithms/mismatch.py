"""Measures of the difference between trainer and rollout engine in a token's log-probability.

Source: R3 (arXiv 2510.11370) section on train-inference mismatch.
Convention: D = log p_train - log p_rollout of the sampled tokens; k3 = exp(D) - 1 - D.
Letters: N sequences, T tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import stdtrit

from tasks.algorithms.intervals import CONFIDENCE
from tasks.algorithms.slices import group_slices

EXTREME_RATIO = 2.0
QUARTERS = 4
TAIL_SHARE = 0.01
"""Share of the tokens that the tail index is estimated from."""
SMALLEST_TAIL = 10
"""Tokens; with fewer, Hill's estimate varies by more than a third (its error is 1 / sqrt(k))."""


def mismatch_metrics(
    train_NT: torch.Tensor, rollout_NT: torch.Tensor, mask_NT: torch.Tensor
) -> dict[str, float]:
    """Mean |D|, k3 KL, share beyond 2x, and effective sample size share of exp(D).

    They are of the tokens whose D is finite; the others, whose logits overflowed in one of the
    engines, are counted. All are 0 (effective share 1) without a finite token.
    """
    gap = (train_NT[mask_NT] - rollout_NT[mask_NT]).double()
    finite = gap[gap.isfinite()]
    overflow = {"mismatch/overflow_tokens": float(len(gap) - len(finite))}
    if not len(finite):
        return overflow | {
            "mismatch/mean_abs_logprob": 0.0,
            "mismatch/k3": 0.0,
            "mismatch/extreme_share": 0.0,
            "mismatch/effective_share": 1.0,
        }
    gap = finite
    return overflow | {
        "mismatch/mean_abs_logprob": float(gap.abs().mean()),
        "mismatch/k3": float((torch.expm1(gap) - gap).mean()),
        "mismatch/extreme_share": float((gap.abs() > math.log(EXTREME_RATIO)).double().mean()),
        "mismatch/effective_share": _effective_share(gap),
    }


@dataclass(frozen=True, slots=True)
class SliceMismatch:
    """k3 of the responses of one slice, or of small slices of one kind together."""

    name: str
    """'language:th', or 'language:id + language:ms'."""
    responses: int
    k3: float
    """Mean over their tokens, nats."""
    low: float
    """What it is at least, with the tail of the interval divided by the number of slices; 0 for
    slices that are too small even together."""


def k3_by_slice(
    train_NT: torch.Tensor,
    rollout_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    slices_N: Sequence[Sequence[str]],
) -> list[SliceMismatch]:
    """Measure k3 for every slice that is judged: large ones alone, small ones of a kind together.

    A response is the unit: its tokens are not independent. The interval is that of a ratio of sums
    (Cochran 1977, 2.11). Tokens whose D is not finite are left out; `mismatch_metrics` counts them.

    Args:
        train_NT: log-probabilities of the trainer.
        rollout_NT: of the rollout engine.
        mask_NT: tokens that are compared; a row without any is in no slice.
        slices_N: of every row, 'kind:value'; those of one kind are disjoint.
    """
    gap_NT = (train_NT - rollout_NT).double()
    kept_NT = mask_NT & gap_NT.isfinite()
    gap_NT = gap_NT.masked_fill(~kept_NT, 0.0)
    sums_N, tokens_N = (torch.expm1(gap_NT) - gap_NT).sum(dim=1), kept_NT.sum(dim=1).double()
    rows: dict[str, list[int]] = {}
    for row, names in enumerate(slices_N):
        for name in names if tokens_N[row] > 0 else ():
            rows.setdefault(name, []).append(row)
    sizes = {name: len(members) for name, members in rows.items()}
    groups, _ = group_slices(sizes, lambda name: name.partition(":")[0])
    judged = set(groups)
    results = list[SliceMismatch]()
    for group in (*groups, *((name,) for name in sorted(rows) if (name,) not in judged)):
        members = [row for name in group for row in rows[name]]
        count, k3 = len(members), float(sums_N[members].sum() / tokens_N[members].sum())
        low = 0.0
        if group in judged:
            error = _ratio_error(sums_N[members], tokens_N[members], k3)
            tail = (1.0 - CONFIDENCE) / (2 * len(groups))
            low = k3 - float(stdtrit(count - 1, 1.0 - tail)) * error
        results.append(SliceMismatch(" + ".join(group), count, k3, max(0.0, low)))
    return results


def k3_interval(
    sums_N: torch.Tensor, tokens_N: torch.Tensor
) -> tuple[float, float | None, float | None]:
    """Return k3 a token with its 95 % interval over responses, whose tokens are not independent.

    Args:
        sums_N: k3 summed over the tokens of each response, nats.
        tokens_N: of each response; at least one has some.

    Returns:
        k3 and both ends; None, None for a single response.
    """
    count, k3 = len(sums_N), float(sums_N.sum() / tokens_N.sum())
    if count < 2:
        return k3, None, None
    reach = float(stdtrit(count - 1, (1.0 + CONFIDENCE) / 2)) * _ratio_error(sums_N, tokens_N, k3)
    return k3, max(0.0, k3 - reach), k3 + reach


def _ratio_error(sums_M: torch.Tensor, tokens_M: torch.Tensor, ratio: float) -> float:
    """Standard error of a ratio of sums (Cochran 1977, 2.11)."""
    rest_M, count = sums_M - ratio * tokens_M, len(sums_M)
    spread = float(rest_M.square().sum()) * count / (count - 1)
    return math.sqrt(spread) / float(tokens_M.sum())


def mismatch_anatomy(
    train_NT: torch.Tensor, rollout_NT: torch.Tensor, mask_NT: torch.Tensor
) -> dict[str, float]:
    """Where the mismatch lies: in which tokens, at which position, and in which sequences.

    Tokens whose D is not finite are left out (`mismatch_metrics` counts them).

    Returns:
        Nothing without a finite token, else
        `abs_logprob_p99`, `_p999`, `_max`: quantiles of |D| over tokens, nats.
        `tail_index`: Hill's estimate from the largest 1 % of |D|: P(|D| > x) falls as x to the
            power of minus this; below 2 the variance is infinite. Absent if 1 % is fewer than 10
            tokens, or if those differ from the next one by nothing.
        `k3_quarter_1` to `_4`: mean k3 of the tokens of each quarter of a response; absent
            for a quarter without tokens.
        `sequence_log_ratio`, `_max`: mean and largest |sum of D over a response|, nats.
        `sequence_effective_share`: effective sample size of exp(sum of D) over sequences.
    """
    gap_NT = (train_NT - rollout_NT).double()
    kept_NT = mask_NT & gap_NT.isfinite()
    if not kept_NT.any():
        return {}
    gap_NT = gap_NT.masked_fill(~kept_NT, 0.0)
    gap = gap_NT[kept_NT]
    p99, p999, largest = np.quantile(gap.abs().numpy(force=True), [0.99, 0.999, 1.0])
    sums = gap_NT.sum(dim=1)[kept_NT.any(dim=1)]
    measures = {
        "abs_logprob_p99": float(p99),
        "abs_logprob_p999": float(p999),
        "abs_logprob_max": float(largest),
        "sequence_log_ratio": float(sums.abs().mean()),
        "sequence_log_ratio_max": float(sums.abs().max()),
        "sequence_effective_share": _effective_share(sums),
    }
    tail = _tail_index(gap.abs())
    if tail is not None:
        measures["tail_index"] = tail
    place_NT = mask_NT.cumsum(dim=1) - 1
    quarter = (QUARTERS * place_NT // mask_NT.sum(dim=1, keepdim=True).clamp(min=1))[kept_NT]
    k3 = torch.expm1(gap) - gap
    for index in range(QUARTERS):
        if (quarter == index).any():
            measures[f"k3_quarter_{index + 1}"] = float(k3[quarter == index].mean())
    return {f"mismatch/{name}": value for name, value in measures.items()}


def _effective_share(log_weights: torch.Tensor) -> float:
    """Effective sample size over samples; weights are scaled by the largest, so none overflows."""
    weights = (log_weights - log_weights.max()).exp()
    return float(weights.sum().square() / (len(weights) * weights.square().sum()))


def _tail_index(sizes: torch.Tensor) -> float | None:
    """Hill's estimate; see `mismatch_anatomy`."""
    count = int(len(sizes) * TAIL_SHARE)
    if count < SMALLEST_TAIL:
        return None
    largest = sizes.topk(count + 1).values
    if largest[-1] <= 0.0:
        return None
    excess = float((largest[:-1] / largest[-1]).log().mean())
    return 1.0 / excess if excess > 0.0 else None
