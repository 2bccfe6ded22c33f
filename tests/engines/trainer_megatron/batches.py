"""Random batches with routes to replay, for trainers of small random models."""

import torch

from data_schemas.rollouts import MISSING_ROUTE
from tasks.engines.protocols import TokenBatch

MISSING = (0, 3)
"""Sequence and position of a row that no rollout engine has recorded."""


def random_batch(num_sequences: int = 7, *, vocab: int = 300, longest: int = 30) -> TokenBatch:
    """Sequences of unlike lengths, for models of 2 MoE layers with 8 experts, 2 per token.

    As from a rollout engine, a sequence's last token has no route; and one row is missing.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=generator)

    lengths_N = draw(6, longest, num_sequences)
    width = int(lengths_N.max())
    place_T = torch.arange(width)
    real_NT = place_T < lengths_N[:, None]
    scores_NTLE = torch.rand(num_sequences, width, 2, 8, generator=generator)
    experts_NTLK = scores_NTLE.topk(2, dim=3).indices
    experts_NTLK[place_T >= lengths_N[:, None] - 1] = MISSING_ROUTE
    experts_NTLK[MISSING] = MISSING_ROUTE
    return TokenBatch(
        tokens_NT=draw(0, vocab, num_sequences, width) * real_NT,
        lengths_N=lengths_N,
        response_NT=real_NT & (place_T >= draw(1, 5, num_sequences, 1)),
        experts_NTLK=experts_NTLK,
        columns={"weights": torch.rand(num_sequences, generator=generator)},
    )
