"""Masked cross-entropy on response tokens, and the entropy window that selects a checkpoint.

Source of the window: Ring-lite (arXiv 2506.14731) section on entropy and token efficiency.
Differs: the window's nats are scaled by ln|V| / ln|V of Ring-lite|, because the largest
possible entropy shrinks with the vocabulary.
"""

import math
from collections.abc import Sequence

import torch

RING_LITE_VOCABULARY = 126_464


def response_cross_entropy(
    logprobs_NT: torch.Tensor, response_NT: torch.Tensor, num_tokens: int
) -> torch.Tensor:
    """Negative log-likelihood per token; micro-batches with the same `num_tokens` add up."""
    return -(logprobs_NT * response_NT).sum() / num_tokens


def scaled_window(window: tuple[float, float], vocabulary: int) -> tuple[float, float]:
    """Scale Ring-lite's entropy window to the nats of another vocabulary."""
    scale = math.log(vocabulary) / math.log(RING_LITE_VOCABULARY)
    return window[0] * scale, window[1] * scale


def choose_checkpoint(
    entropies: Sequence[float], validation_losses: Sequence[float], window: tuple[float, float]
) -> int:
    """Return the index of the checkpoint to start RL from.

    Among checkpoints inside the window, the one with the lowest validation loss; if none is
    inside, the one nearest to it. Ties go to the earlier checkpoint.
    """
    low, high = window
    distance = [max(low - entropy, entropy - high, 0.0) for entropy in entropies]
    return min(
        range(len(entropies)), key=lambda index: (distance[index], validation_losses[index], index)
    )
