"""ESPO: entropy groups within each sequence, entropy-adaptive clipping.

Source: arXiv 2512.00499 v2, eq. 5 to 11; used in CompassMax-V3-Thinking.
Differs: the paper does not give eq. 7's ranges. The default is two groups by an entropy quantile,
with the share of the high group from the ablation (0.2); alternatively, ranges between given
edges. Eq. 8 is read as alpha * mean entropy / ln|V| (the printed equation lacks a sum sign).
Letters: N sequences, T tokens, K groups.
"""

import math

import torch

from tasks.algorithms.losses.surrogate import Plan, group_means

LOW, HIGH = 0, 1


def high_entropy_mask(
    entropy_NT: torch.Tensor, mask_NT: torch.Tensor, *, share: float
) -> torch.Tensor:
    """Mark each sequence's tokens at or above its own (1 - share) entropy quantile.

    Linear interpolation over valid tokens only. The top token is always marked; if
    all entropies are equal, or there is one token, every token is marked.
    """
    num_N1 = mask_NT.sum(dim=1, keepdim=True)
    ordered_NT = entropy_NT.masked_fill(~mask_NT, torch.inf).sort(dim=1).values
    position_N1 = (1.0 - share) * (num_N1 - 1).clamp(min=0).double()
    below_N1 = position_N1.floor().long()
    above_N1 = position_N1.ceil().long()
    low_N1 = ordered_NT.gather(1, below_N1).double()
    high_N1 = ordered_NT.gather(1, above_N1).double()
    part_N1 = position_N1 - below_N1
    # Interpolating between equal values would change them by rounding.
    quantile_N1 = torch.where(low_N1 == high_N1, low_N1, low_N1 + part_N1 * (high_N1 - low_N1))
    return (entropy_NT.double() >= quantile_N1) & mask_NT


def entropy_groups(
    entropy_NT: torch.Tensor, mask_NT: torch.Tensor, *, share: float, edges: tuple[float, ...]
) -> torch.Tensor:
    """Assign every token its entropy range (eq. 7), 0 = lowest; int64 [N, T].

    Args:
        edges: ascending, nats; an entropy on an edge belongs above it. Empty: two groups
            by the sequence's own quantile.
    """
    if edges:
        bounds = torch.tensor(edges, dtype=entropy_NT.dtype)
        return torch.bucketize(entropy_NT.contiguous(), bounds, right=True)
    return high_entropy_mask(entropy_NT, mask_NT, share=share).long()  # LOW or HIGH


def plan(
    entropy_NT: torch.Tensor,
    groups_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    vocabulary: int,
    clip_scale: float,
    clip_floor: float = 0.0,
    drop_low: bool = False,
) -> Plan:
    """Compute groups, weights and clip ranges from pi_old's entropies.

    Every group of a sequence weighs the same (eq. 5), so with a 20/80 split a
    high-entropy token weighs four times a low one.

    Args:
        entropy_NT: full-vocabulary entropy under pi_old, nats.
        groups_NT: from `entropy_groups`.
        mask_NT: response tokens; a sequence without any gets no weight.
        clip_scale: alpha of eq. 8.
        clip_floor: smallest half-width; 0 freezes zero-entropy groups off-policy.
        drop_low: do not train the lowest range; with edges, a sequence without a token
            above the first edge then gets no weight.
    """
    trained_NT = mask_NT & (groups_NT > LOW) if drop_low else mask_NT
    num_ranges = int(groups_NT.max()) + 1 if groups_NT.numel() else 1
    sizes_NK = torch.zeros(len(mask_NT), num_ranges, dtype=torch.int64)
    sizes_NK.scatter_add_(1, groups_NT, trained_NT.long())
    num_groups_N1 = (sizes_NK > 0).sum(dim=1, keepdim=True).clamp(min=1)
    size_NT = sizes_NK.gather(1, groups_NT).clamp(min=1)
    weights_NT = trained_NT / (num_groups_N1 * size_NT)
    width_NT = clip_scale * group_means(entropy_NT, groups_NT, trained_NT) / math.log(vocabulary)
    clip_NT = width_NT.clamp(min=clip_floor) * trained_NT
    return Plan(groups_NT, weights_NT, clip_NT, clip_NT)
