"""Losses that trainers of another process can be given: a function of a module that both import."""

import torch

from tasks.engines.protocols import TokenBatch


def likelihood(
    logprobs_NT: torch.Tensor, batch: TokenBatch
) -> tuple[torch.Tensor, dict[str, float]]:
    """Makes every response likelier."""
    loss = -(logprobs_NT * batch.response_NT).sum() / 100
    return loss, {"tokens": float(batch.response_NT.sum())}


def broken(logprobs_NT: torch.Tensor, _: TokenBatch) -> tuple[torch.Tensor, dict[str, float]]:
    """Is not a number."""
    return logprobs_NT.sum() * float("nan"), {}
