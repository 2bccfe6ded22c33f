"""Sample tokens with random numbers that depend on the sequence, not on the batch.

Every token has one uniform number, a hash of (seed, problem_id of the request, sample, position in
the response). The number does not depend on the order of the requests, on other sequences in the
batch, or on segments. It selects a token from the cumulative probabilities.

Differs: most engines draw V Gumbel numbers per token from one stream of the batch; one number
per token is enough, and it can be computed for any position independently.

Letters: B sequences, V vocabulary.
"""

import hashlib
import math

import numpy as np
import torch
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def stream_key(seed: int, stream: str, sample: int) -> int:
    """Return the 64-bit key of one sequence's random numbers."""
    text = f"{seed}\0{sample}\0{stream}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def uniforms(keys_B: NDArray[np.uint64], places_B: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return number `place` of every stream, in [0, 1).

    This is SplitMix64 (Steele, Lea, Flood 2014) jumped to `place`: its state is a counter.
    """
    mixed_B = keys_B + (places_B.astype(np.uint64) + np.uint64(1)) * _STEP
    for shift, factor in _MIX:
        mixed_B = (mixed_B ^ (mixed_B >> shift)) * factor
    mixed_B ^= mixed_B >> np.uint64(31)
    # 53 bits, as many as a double holds: with more it could round up to 1.
    return (mixed_B >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw(
    logits_BV: torch.Tensor,
    temperature: float,
    uniforms_B: NDArray[np.float64],
    *,
    top_p: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw one token per row and return it with its log-probability and log p [B, V].

    Args:
        temperature: 0 is greedy; log-probabilities are then those of temperature 1, and nothing
            is truncated.
        top_p: see `truncate`.
        top_k: see `truncate`.
        min_p: see `truncate`.
    """
    logprobs_BV = torch.log_softmax(logits_BV.float() / (temperature or 1.0), dim=1)
    if temperature and (top_p < 1.0 or top_k or min_p > 0.0):
        logprobs_BV = truncate(logprobs_BV, top_p, min_p, top_k)
    if temperature == 0.0:
        token_B = logprobs_BV.argmax(dim=1)
    else:
        # In float64: float32 sums over a large vocabulary would lose rare tokens.
        cumulated_BV = logprobs_BV.exp().cumsum(dim=1, dtype=torch.float64)
        threshold_B = torch.from_numpy(uniforms_B).to(logits_BV.device) * cumulated_BV[:, -1]
        token_B = torch.searchsorted(cumulated_BV, threshold_B[:, None], right=True)[:, 0]
        # A number just below 1, times the sum of all, may round up to the sum.
        token_B.clamp_(max=logits_BV.shape[1] - 1)
    return token_B, logprobs_BV.gather(1, token_B[:, None])[:, 0], logprobs_BV


def truncate(logprobs_BV: torch.Tensor, top_p: float, min_p: float, top_k: int = 0) -> torch.Tensor:
    """Return the log-probabilities of the truncated distribution; -inf outside its support.

    As in vLLM, min-p is applied first, then top-k, and top-p to what they leave.

    Args:
        top_p: the smallest set of likeliest tokens that holds this probability mass is kept
            (Holtzman et al. 2020).
        min_p: tokens with less than this share of the likeliest token's probability are
            excluded (Nguyen et al. 2024).
        top_k: so many likeliest tokens are kept, and all that tie with the last of them; 0 = all.
    """
    if min_p > 0.0:
        floor_B1 = logprobs_BV.amax(dim=1, keepdim=True) + math.log(min_p)
        logprobs_BV = logprobs_BV.masked_fill(logprobs_BV < floor_B1, -torch.inf)
        logprobs_BV = logprobs_BV.log_softmax(dim=1)
    if 0 < top_k < logprobs_BV.shape[1]:
        least_B1 = logprobs_BV.topk(top_k, dim=1).values[:, -1:]
        logprobs_BV = logprobs_BV.masked_fill(logprobs_BV < least_B1, -torch.inf)
        logprobs_BV = logprobs_BV.log_softmax(dim=1)
    if top_p < 1.0:
        ascending_BV, order_BV = logprobs_BV.sort(dim=1, stable=True)
        mass_BV = ascending_BV.exp().cumsum(dim=1, dtype=torch.float64)
        excluded_BV = mass_BV <= 1.0 - top_p
        # The likeliest token stays, whatever the sums round to.
        excluded_BV[:, -1] = False
        excluded_BV = torch.zeros_like(excluded_BV).scatter(1, order_BV, excluded_BV)
        logprobs_BV = logprobs_BV.masked_fill(excluded_BV, -torch.inf).log_softmax(dim=1)
    return logprobs_BV
