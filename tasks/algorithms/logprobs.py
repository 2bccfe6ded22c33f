"""Token log-probabilities and full-vocabulary entropies.

Where truncated sampling drew from recorded sets, log-probabilities are over those (kept_sets.py).
Entropies never are: over a set of one token they are 0, and what is scaled by them would collapse.

Letters: R positions, H hidden size, V vocabulary.
"""

import torch
from torch.autograd.function import once_differentiable

from tasks.algorithms.kept_sets import KeptTokens

CHUNK_LOGITS = 2**24
"""Logits in memory at once, with and without gradient (64 MiB in float32)."""


@torch.no_grad()
def scores_from_hidden(
    hidden_RH: torch.Tensor,
    head_VH: torch.Tensor,
    tokens_R: torch.Tensor,
    temperature: float,
    sets: KeptTokens | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies [R], with at most CHUNK_LOGITS logits in memory.

    Args:
        sets: sets [R] that the tokens were drawn from; None is the whole vocabulary.
    """
    logprobs_R = hidden_RH.new_empty(len(tokens_R), dtype=torch.float32)
    entropy_R = torch.empty_like(logprobs_R)
    for part in chunks(len(tokens_R), len(head_VH)):
        logits_RV = _logits(hidden_RH[part], head_VH, temperature)
        logprobs_RV = torch.log_softmax(logits_RV, dim=1)
        entropy_R[part] = _entropy(logprobs_RV)
        if sets is not None:
            logprobs_RV = _over_sets(logits_RV, sets, part)
        logprobs_R[part] = logprobs_RV.gather(1, tokens_R[part, None])[:, 0]
    return logprobs_R, entropy_R


def trainable_scores(
    hidden_RH: torch.Tensor,
    head_VH: torch.Tensor,
    tokens_R: torch.Tensor,
    temperature: float,
    *,
    with_entropy: bool,
    sets: KeptTokens | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`scores_from_hidden` with gradient to hidden states and head.

    Backward recomputes the logits of every chunk, unless one chunk holds all of them.

    Args:
        with_entropy: False skips the entropies and returns zeros for them.
        sets: sets [R] that the tokens were drawn from; None is the whole vocabulary.
    """
    inputs = hidden_RH, head_VH, tokens_R, temperature
    if sets is None or not with_entropy:
        return _HeadScores.apply(*inputs, with_entropy, sets)
    return _HeadScores.apply(*inputs, False, sets)[0], _HeadScores.apply(*inputs, True, None)[1]


class _HeadScores(torch.autograd.Function):
    """Scores of a language-model head with a hand-written gradient.

    With p the distribution, H its entropy, z the scaled logits and y the token:
    d log p_y / dz = [y] - p, and dH / dz = -p (log p + H). Over sets p is 0 outside, and so is the
    gradient; there are then no entropies.
    """

    @staticmethod
    def forward(ctx, hidden_RH, head_VH, tokens_R, temperature, with_entropy, sets):
        logprobs_R = hidden_RH.new_empty(len(tokens_R), dtype=torch.float32)
        entropy_R = torch.zeros_like(logprobs_R)
        parts = chunks(len(tokens_R), len(head_VH))
        ctx.kept_RV = None
        for part in parts:
            logprobs_RV = _distribution(hidden_RH, head_VH, temperature, sets, part)
            logprobs_R[part] = logprobs_RV.gather(1, tokens_R[part, None])[:, 0]
            if with_entropy:
                entropy_R[part] = _entropy(logprobs_RV)
            if len(parts) == 1:
                ctx.kept_RV = logprobs_RV
        ctx.save_for_backward(hidden_RH, head_VH, tokens_R, entropy_R)
        ctx.temperature, ctx.with_entropy, ctx.kept = temperature, with_entropy, sets
        return logprobs_R, entropy_R

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx, slope_R, entropy_slope_R
    ):
        hidden_RH, head_VH, tokens_R, entropy_R = ctx.saved_tensors
        hidden_slope_RH, head_slope_VH = torch.empty_like(hidden_RH), torch.zeros_like(head_VH)
        kept_RV, ctx.kept_RV = ctx.kept_RV, None  # modified in place below
        for part in chunks(len(tokens_R), len(head_VH)):
            logprobs_RV = kept_RV
            if logprobs_RV is None:
                logprobs_RV = _distribution(hidden_RH, head_VH, ctx.temperature, ctx.kept, part)
            pull_R1 = slope_R[part, None]
            if ctx.with_entropy:
                pull_RV = (logprobs_RV + entropy_R[part, None]) * entropy_slope_R[part, None]
                logits_slope_RV = logprobs_RV.exp_().mul_(pull_RV.add_(pull_R1)).neg_()
            else:
                logits_slope_RV = logprobs_RV.exp_().mul_(-pull_R1)
            logits_slope_RV.scatter_add_(1, tokens_R[part, None], pull_R1)
            if ctx.temperature != 1.0:
                logits_slope_RV /= ctx.temperature
            logits_slope_RV = logits_slope_RV.to(head_VH.dtype)
            torch.mm(logits_slope_RV, head_VH, out=hidden_slope_RH[part])
            head_slope_VH.addmm_(logits_slope_RV.T, hidden_RH[part])
        return hidden_slope_RH, head_slope_VH, None, None, None, None


def chunks(num_rows: int, columns: int) -> list[slice]:
    """Split positions so that at most CHUNK_LOGITS logits are in memory, or those of one."""
    rows = max(1, CHUNK_LOGITS // columns)
    return [slice(start, start + rows) for start in range(0, num_rows, rows)]


def _distribution(
    hidden_RH: torch.Tensor,
    head_VH: torch.Tensor,
    temperature: float,
    sets: KeptTokens | None,
    part: slice,
) -> torch.Tensor:
    logits_RV = _logits(hidden_RH[part], head_VH, temperature)
    if sets is not None:
        return _over_sets(logits_RV, sets, part)
    return torch.log_softmax(logits_RV, dim=1)


def _logits(hidden_RH: torch.Tensor, head_VH: torch.Tensor, temperature: float) -> torch.Tensor:
    # The product in the precision of the model, all after it in float32: a softmax over a large
    # vocabulary in bf16 loses most digits.
    logits_RV = (hidden_RH @ head_VH.T).float()
    if temperature != 1.0:
        logits_RV /= temperature
    return logits_RV


def _over_sets(logits_RV: torch.Tensor, sets: KeptTokens, part: slice) -> torch.Tensor:
    """Log-probabilities over the sets of some rows; -inf outside."""
    outside_RV = sets.outside(part, logits_RV.shape[1], logits_RV.device)
    return torch.log_softmax(logits_RV.masked_fill(outside_RV, -torch.inf), dim=1)


def _entropy(logprobs_RV: torch.Tensor) -> torch.Tensor:
    """Entropy of every position's distribution in nats (RL-ZVP, ESPO eq. 6)."""
    return -logprobs_RV.exp().mul_(logprobs_RV).sum(dim=1)
