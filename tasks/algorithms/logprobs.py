"""Token log-probabilities and full-vocabulary entropies.

Letters: R positions, H hidden size, V vocabulary.
"""

import torch

CHUNK_LOGITS = 2**24
"""Logits held at once in a pass without gradient (64 MiB in float32)."""


def token_logprobs(
    logits_RV: torch.Tensor, tokens_R: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Log-probability of the given tokens at a sampling temperature; differentiable."""
    scaled_RV = logits_RV.float() / temperature
    return scaled_RV.gather(1, tokens_R[:, None])[:, 0] - scaled_RV.logsumexp(dim=1)


def entropies(logits_RV: torch.Tensor, temperature: float) -> torch.Tensor:
    """Entropy of every position's distribution in nats (RL-ZVP, ESPO eq. 6); 0 ln 0 is 0."""
    logprobs_RV = torch.log_softmax(logits_RV.float() / temperature, dim=1)
    return -(logprobs_RV.exp() * logprobs_RV).sum(dim=1)


@torch.no_grad()
def scores_from_hidden(
    hidden_RH: torch.Tensor, head_VH: torch.Tensor, tokens_R: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies [R], never holding more than CHUNK_LOGITS logits."""
    rows = max(1, CHUNK_LOGITS // head_VH.shape[0])
    logprobs, entropy = [], []
    for start in range(0, hidden_RH.shape[0], rows):
        logits_RV = hidden_RH[start : start + rows] @ head_VH.T
        logprobs.append(token_logprobs(logits_RV, tokens_R[start : start + rows], temperature))
        entropy.append(entropies(logits_RV, temperature))
    if not logprobs:
        empty = hidden_RH.new_zeros(0, dtype=torch.float32)
        return empty, empty.clone()
    return torch.cat(logprobs), torch.cat(entropy)
