"""Convert demonstrations to padded batches with loss on the response only."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from data_schemas.rows import Demonstration, Domain
from tasks.algorithms.mixture import MixtureStream
from tasks.algorithms.packing import length_buckets, pad_rows
from tasks.engines.chat import render_demonstration
from tasks.engines.protocols import TokenBatch

VALIDATION_SHARE = 0.05
DOMAIN = "domain"
"""Column of a batch."""
DOMAINS = tuple(Domain)


def encode(
    tokenizer: PreTrainedTokenizerBase, rows: Sequence[Demonstration]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Tokens and loss mask of every demonstration."""
    encoded = [render_demonstration(tokenizer, row.messages, row.response) for row in rows]
    return [
        (torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(mask))
        for tokens, mask in encoded
    ]


def split_validation(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Split rows into (training, validation) by seed; at least one row each if there are two."""
    order = np.random.default_rng(seed).permutation(count).tolist()
    num_held = min(max(1, round(VALIDATION_SHARE * count)), count - 1)
    return sorted(order[num_held:]), sorted(order[:num_held])


def mixed(
    domains: Sequence[Domain],
    rows: Sequence[int],
    weights: Mapping[Domain, float],
    seed: int,
    epoch: int,
) -> list[int]:
    """Draw the rows of an epoch so that every domain has its share of them.

    An epoch is as long as the domains with a weight have rows: a domain with few rows repeats them,
    of one with many the next epoch shows those that this one left out. Without weights, every row
    comes once.

    Args:
        domains: of all demonstrations.
        rows: numbers of those that are trained on.
        weights: share of each domain; no row of another domain is drawn.
        seed: of the order.
        epoch: from 1.
    """
    if not weights:
        return list(rows)
    own = {domain: [row for row in rows if domains[row] is domain] for domain in weights}
    sizes = {domain: len(part) for domain, part in own.items()}
    count = sum(sizes.values())
    stream = MixtureStream(sizes, weights, seed, position=(epoch - 1) * count)
    draws = [stream.take() for _ in range(count)]
    return [own[domain][index] for domain, index in draws]


def plan(
    lengths: Sequence[int], rows: Sequence[int], batch_tokens: int, seed: int
) -> list[list[int]]:
    """Group rows of similar lengths into batches, in seeded order.

    Rows are shuffled before bucketing, so the composition of batches changes between epochs.
    """
    generator = np.random.default_rng(seed)
    shuffled = [rows[index] for index in generator.permutation(len(rows))]
    buckets = length_buckets([lengths[row] for row in shuffled], batch_tokens)
    return [
        [shuffled[place] for place in buckets[index]]
        for index in generator.permutation(len(buckets))
    ]


def token_batch(
    encoded: Sequence[tuple[torch.Tensor, torch.Tensor]],
    rows: Sequence[int],
    domains: Sequence[Domain] = (),
) -> TokenBatch:
    """Pad some demonstrations to one batch.

    Args:
        encoded: all demonstrations.
        rows: numbers of those in the batch.
        domains: of all demonstrations; their places in DOMAINS are the column DOMAIN.
    """
    pairs = [encoded[row] for row in rows]
    places = torch.tensor([DOMAINS.index(domains[row]) for row in rows]) if domains else None
    return TokenBatch(
        tokens_NT=pad_rows([tokens for tokens, _ in pairs], 0),
        lengths_N=torch.tensor([len(tokens) for tokens, _ in pairs]),
        response_NT=pad_rows([mask for _, mask in pairs], False),
        experts_NTLK=None,
        columns={} if places is None else {DOMAIN: places},
    )
