"""Token log-probabilities and entropies where every rank holds a slice of the vocabulary.

The same arithmetic as tasks/algorithms/logprobs.py; maxima and sums go over the ranks that share
a head. Of a set that a token was drawn from a rank may hold no member: it then adds exactly 0 to
the sum over the set. Gradients of hidden states are this rank's share: the caller that gathered the
hidden states sums them. At most CHUNK_LOGITS logits are held at a time.

Letters: R positions, H hidden size, V this rank's columns of the vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import distributed
from torch.autograd.function import once_differentiable

from tasks.algorithms.kept_sets import KeptTokens
from tasks.algorithms.logprobs import chunks

_NEVER = -1e30
"""Logit of a padding column in the last slice, and outside of a set: its probability is exactly
0."""


@dataclass(frozen=True, slots=True)
class VocabularySlice:
    """The columns of the vocabulary that a rank holds."""

    first: int
    """Token of the first column."""
    real: int
    """Columns that represent a token; the following ones are padding."""
    group: distributed.ProcessGroup | None
    """Ranks that hold the other columns; None if there are none."""


def vocabulary_slice(
    vocabulary: int, columns: int, rank: int, group: distributed.ProcessGroup | None
) -> VocabularySlice:
    """Describe the rank-th slice of `columns` columns of a vocabulary of that many tokens."""
    first = rank * columns
    return VocabularySlice(first, max(0, min(columns, vocabulary - first)), group)


def sharded_scores(
    hidden_RH: torch.Tensor,
    head_VH: torch.Tensor,
    tokens_R: torch.Tensor,
    temperature: float,
    share: VocabularySlice,
    *,
    with_entropy: bool,
    sets: KeptTokens | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of tokens and entropies [R] in float32, both differentiable.

    Args:
        hidden_RH: the same on all ranks of the group.
        with_entropy: False returns zeros as entropies and computes none.
        sets: sets [R] that the tokens were drawn from; None is the whole vocabulary.
    """
    inputs = hidden_RH, head_VH, tokens_R, temperature, share
    logprobs_R, entropy_R = _ShardedScores.apply(*inputs, with_entropy and sets is None, sets)
    if with_entropy and sets is not None:
        _, entropy_R = _ShardedScores.apply(*inputs, True, None)
    return logprobs_R, entropy_R


class _ShardedScores(torch.autograd.Function):
    """With p the distribution, H its entropy, z the scaled logits and y the token:
    d log p_y / dz = [y] - p, and dH / dz = -p (log p + H). Over sets p is 0 outside, and so is the
    gradient; there are then no entropies.
    """

    @staticmethod
    def forward(ctx, hidden_RH, head_VH, tokens_R, temperature, share, with_entropy, sets):
        size = len(tokens_R)
        logprobs_R = torch.zeros(size, dtype=torch.float32, device=hidden_RH.device)
        entropy_R, normaliser_R = torch.zeros_like(logprobs_R), torch.zeros_like(logprobs_R)
        parts = chunks(size, len(head_VH))
        ctx.kept_RV = None
        for part in parts:
            logits_RV = _logits(hidden_RH, head_VH, temperature, share, sets, part)
            normaliser_R[part] = _logsumexp(logits_RV, share)
            logprobs_RV = logits_RV.sub_(normaliser_R[part, None])
            own_R, column_R = _columns(tokens_R[part], share)
            picked_R = logprobs_RV.gather(1, column_R[:, None])[:, 0]
            logprobs_R[part] = _summed(torch.where(own_R, picked_R, 0.0), share)
            if with_entropy:
                entropy_R[part] = _summed(-logprobs_RV.exp().mul_(logprobs_RV).sum(dim=1), share)
            if len(parts) == 1:
                ctx.kept_RV = logprobs_RV
        ctx.save_for_backward(hidden_RH, head_VH, tokens_R, entropy_R, normaliser_R)
        ctx.temperature, ctx.share, ctx.with_entropy = temperature, share, with_entropy
        ctx.kept = sets
        return logprobs_R, entropy_R

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx, slope_R, entropy_slope_R
    ):
        hidden_RH, head_VH, tokens_R, entropy_R, normaliser_R = ctx.saved_tensors
        hidden_slope_RH, head_slope_VH = torch.zeros_like(hidden_RH), torch.zeros_like(head_VH)
        logprobs_RV, ctx.kept_RV = ctx.kept_RV, None  # used up below
        for part in chunks(len(tokens_R), len(head_VH)):
            if logprobs_RV is None:
                inputs = hidden_RH, head_VH, ctx.temperature, ctx.share
                logits_RV = _logits(*inputs, ctx.kept, part)
                logprobs_RV = logits_RV.sub_(normaliser_R[part, None])
            pull_R1 = slope_R[part, None]
            pull_RV = -pull_R1
            if ctx.with_entropy:
                gap_RV = logprobs_RV + entropy_R[part, None]
                pull_RV = pull_RV - gap_RV.mul_(entropy_slope_R[part, None])
            slope_RV = logprobs_RV.exp_().mul_(pull_RV)
            own_R, column_R = _columns(tokens_R[part], ctx.share)
            slope_RV.scatter_add_(1, column_R[:, None], pull_R1 * own_R[:, None])
            slope_RV = slope_RV.div_(ctx.temperature).to(head_VH.dtype)
            hidden_slope_RH[part] = slope_RV @ head_VH
            head_slope_VH.addmm_(slope_RV.T, hidden_RH[part])
            logprobs_RV = None
        return hidden_slope_RH, head_slope_VH, None, None, None, None, None


def _logits(
    hidden_RH: torch.Tensor,
    head_VH: torch.Tensor,
    temperature: float,
    share: VocabularySlice,
    sets: KeptTokens | None,
    part: slice,
) -> torch.Tensor:
    logits_RV = (hidden_RH[part] @ head_VH.T).float().div_(temperature)
    logits_RV[:, share.real :] = _NEVER
    if sets is not None:
        columns, device = logits_RV.shape[1], logits_RV.device
        logits_RV.masked_fill_(sets.outside(part, columns, device, first=share.first), _NEVER)
    return logits_RV


def _logsumexp(logits_RV: torch.Tensor, share: VocabularySlice) -> torch.Tensor:
    if share.group is None:
        return logits_RV.logsumexp(dim=1)
    largest_R = logits_RV.amax(dim=1)
    distributed.all_reduce(largest_R, distributed.ReduceOp.MAX, group=share.group)
    return largest_R + _summed((logits_RV - largest_R[:, None]).exp_().sum(dim=1), share).log()


def _columns(tokens_R: torch.Tensor, share: VocabularySlice) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether this rank holds a token's column, and which one; 0 where it does not."""
    column_R = tokens_R - share.first
    own_R = (column_R >= 0) & (column_R < share.real)
    return own_R, torch.where(own_R, column_R, 0)


def _summed(values_R: torch.Tensor, share: VocabularySlice) -> torch.Tensor:
    if share.group is not None:
        distributed.all_reduce(values_R, group=share.group)
    return values_R
