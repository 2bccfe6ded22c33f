"""ESPO: entropy groups within each sequence, entropy-adaptive clipping.

Source: arXiv 2512.00499 v2, eq. 5 to 11; used in CompassMax-V3-Thinking.
Differs: the paper does not give eq. 7's ranges. The default is two groups by an entropy quantile,
with the share of the high group from the ablation (0.2); alternatively, ranges between given
edges. Eq. 8 is read as alpha * mean entropy / ln|V| (the printed equation lacks a sum sign).

Differs: the default (`clip_scale` 0, [I]) replaces eq. 8, which COMPASSMAX keeps, by widths
relative to the step. Eq. 8 depends on the vocabulary and on the level of the entropies. The group
ratio that it bounds is a mean over the tokens of the group, so it spreads less the longer the group
is: an alpha that fits groups of thousands of tokens clips most of the groups of twenty. Here the
half-width is the clip range of one token (GRPO's), times mean entropy of the group / mean entropy
of the step, divided by sqrt(tokens of the group), because a mean of n independent log-ratios
spreads 1 / sqrt(n) as far as one of them. As in eq. 8, groups of higher entropy may move further.

Differs: eq. 8 is at most alpha, because no entropy exceeds ln|V|; the relative width has no such
end, so it stops at WIDEST [I]. One token of 2 nats in a step of 0.0992 on average, with a range of
0.2: 0.2 * 2 / 0.0992 = 4.03, a range from -3.03, below which no ratio is. It is 0.9, from 0.1.
Letters: N sequences, T tokens, K groups.
"""

import math
from collections.abc import Mapping
from typing import ClassVar, Self

import torch
from pydantic import Field, model_validator

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    ClippedLoss,
    RatioForm,
    RatioMode,
    group_means,
    width,
)

LOW, HIGH = 0, 1
WIDEST = 0.9
"""Half-width at which relative widths stop, unless the clip range itself is wider [I]: from 1 on, a
group whose advantage is negative would never be clipped."""


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


def eq8_widths(
    mean_entropy_NT: torch.Tensor, *, clip_scale: float, vocabulary: int
) -> torch.Tensor:
    """Half-width of every token's group by eq. 8.

    Args:
        mean_entropy_NT: of the token's group, nats.
        clip_scale: alpha.
        vocabulary: |V|; ln|V| is the largest entropy.
    """
    return clip_scale * mean_entropy_NT / math.log(vocabulary)


def relative_widths(
    mean_entropy_NT: torch.Tensor, sizes_NT: torch.Tensor, step_entropy: float
) -> torch.Tensor:
    """Half-width of every token's group, in clip ranges of a single token.

    It does not change with the vocabulary, nor if all entropies are multiplied by the same number.

    Args:
        mean_entropy_NT: of the token's group, nats.
        sizes_NT: tokens of the token's group, at least 1.
        step_entropy: mean over the step's tokens, nats; 0 gives widths of 0.
    """
    if step_entropy == 0.0:
        return torch.zeros_like(mean_entropy_NT)
    return mean_entropy_NT / step_entropy / sizes_NT.to(mean_entropy_NT.dtype).sqrt()


class ESPO(ClippedLoss):
    """Entropy importance sampling policy optimisation."""

    needs_entropy: ClassVar[bool] = True
    off_policy: ClassVar[frozenset[str]] = frozenset(
        ("clip_low", "clip_high", "clip_scale", "clip_floor")
    )

    high_entropy_share: float = Field(
        default=0.2, gt=0.0, lt=1.0, description="rho, ESPO ablation: 0.2 best"
    )
    entropy_edges: tuple[float, ...] = Field(
        default=(),
        description="groups by these entropies in nats, ascending; empty = by share",
    )
    clip_scale: float = Field(
        default=0.0,
        ge=0.0,
        description="alpha of eq. 8, ESPO: 0.02; 0 = widths relative to the step's entropy, from "
        "clip_low and clip_high, in any vocabulary",
    )
    clip_floor: float = Field(
        default=0.0,
        ge=0.0,
        description="least half-width of the range, even above the widest; 0 freezes groups "
        "without entropy off-policy",
    )
    ratio: RatioMode = Field(default=RatioMode.GSPO_TOKEN, description="of a token, eq. 9")
    drop_low: bool = Field(
        default=False,
        description="train the high-entropy group only; with edges, a response without a token "
        "above the first has no weight",
    )
    clip_low: float = width(0.2, "of one token, below, where clip_scale is 0; GRPO 0.2")
    clip_high: float = width(0.2, "of one token, above, where clip_scale is 0; GRPO 0.2")

    @property
    def ratio_form(self) -> RatioForm:
        """As the settings say."""
        return self.ratio

    @property
    def ignored(self) -> Mapping[str, str]:
        """Eq. 8 has widths of its own, and edges are no share."""
        reasons: dict[str, str] = {}
        if self.clip_scale:
            reasons["clip_low"] = reasons["clip_high"] = "loss.clip_scale sets ESPO's widths"
        if self.entropy_edges:
            reasons["high_entropy_share"] = "loss.entropy_edges replaces it"
        return reasons

    @model_validator(mode="after")
    def _edges_ascend(self) -> Self:
        if list(self.entropy_edges) != sorted(set(self.entropy_edges)):
            raise ValueError(f"entropy_edges must ascend, got {self.entropy_edges}")
        return self

    def plan(self, step: StepTokens) -> TokenPlan:
        """Compute groups, weights and clip ranges from pi_old's entropies.

        Every group of a sequence weighs the same (eq. 5), so with a 20/80 split a
        high-entropy token weighs four times a low one.

        Args:
            step: a sequence without response tokens gets no weight; only eq. 8 depends on the
                vocabulary.
        """
        entropy_NT, mask_NT = step.entropy_NT, step.mask_NT
        groups_NT = entropy_groups(
            entropy_NT, mask_NT, share=self.high_entropy_share, edges=self.entropy_edges
        )
        trained_NT = mask_NT & (groups_NT > LOW) if self.drop_low else mask_NT
        num_ranges = int(groups_NT.max()) + 1 if groups_NT.numel() else 1
        sizes_NK = torch.zeros(len(mask_NT), num_ranges, dtype=torch.int64)
        sizes_NK.scatter_add_(1, groups_NT, trained_NT.long())
        num_groups_N1 = (sizes_NK > 0).sum(dim=1, keepdim=True).clamp(min=1)
        size_NT = sizes_NK.gather(1, groups_NT).clamp(min=1)
        mean_NT = group_means(entropy_NT, groups_NT, trained_NT)
        if self.clip_scale > 0.0:
            low_NT = high_NT = eq8_widths(
                mean_NT, clip_scale=self.clip_scale, vocabulary=step.vocabulary
            )
        else:
            step_entropy = float(entropy_NT[mask_NT].mean()) if mask_NT.any() else 0.0
            width_NT = relative_widths(mean_NT, size_NT, step_entropy)
            low_NT, high_NT = (
                (clip * width_NT).clamp(max=max(WIDEST, clip))
                for clip in (self.clip_low, self.clip_high)
            )
        return TokenPlan(
            groups_NT=groups_NT,
            weights_NT=trained_NT / (num_groups_N1 * size_NT),
            clip_low_NT=low_NT.clamp(min=self.clip_floor) * trained_NT,
            clip_high_NT=high_NT.clamp(min=self.clip_floor) * trained_NT,
        )
