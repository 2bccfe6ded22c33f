"""Random batches with routes to replay, for trainers of small random models."""

from dataclasses import replace

import numpy as np
import torch

from data_schemas.rollouts import MISSING_ROUTE
from tasks.algorithms.packing import pad_rows
from tasks.algorithms.routing import Traces
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron.micro_batches import MicroBatch, cut

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


def grouped_batch(*, vocab: int = 300) -> TokenBatch:
    """Answers to three prompts in no order, as random_batch; weights differ.

    An answer occurs twice, and once as the beginning of a longer one. One sequence has its prompt's
    tokens, but from the middle on other routes in the second layer.
    """
    generator = torch.Generator().manual_seed(2)

    def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        tokens_T = torch.randint(0, vocab, (count,), generator=generator)
        return tokens_T, torch.rand(count, 2, 8, generator=generator).topk(2, dim=2).indices

    rows, prompts = [], []
    for prompt, lengths in ((draw(12), [9, 3, 16, 5]), (draw(5), [2, 8]), (draw(9), [6, 4, 7])):
        for length in lengths:
            rows.append([torch.cat(pair) for pair in zip(prompt, draw(length), strict=True)])
            prompts.append(len(prompt[0]))
    rows[3] = [part.clone() for part in rows[0][:2]]
    rows[6] = [part[:-2].clone() for part in rows[8]]
    other_LK = rows[1][1][7:]
    other_LK[:, 1] = (other_LK[:, 1] + 1) % 8
    order = torch.randperm(len(rows), generator=generator).tolist()
    tokens = [rows[place][0] for place in order]
    lengths_N = torch.tensor([len(one) for one in tokens])
    experts_NTLK = torch.full((len(rows), int(lengths_N.max()), 2, 2), MISSING_ROUTE)
    for row, place in enumerate(order):
        experts_NTLK[row, : lengths_N[row] - 1] = rows[place][1][:-1]
    place_T = torch.arange(int(lengths_N.max()))
    prompts_N = torch.tensor(prompts)[order]
    return TokenBatch(
        tokens_NT=pad_rows(tokens, 0),
        lengths_N=lengths_N,
        response_NT=(place_T >= prompts_N[:, None]) & (place_T < lengths_N[:, None]),
        experts_NTLK=experts_NTLK,
        columns={"weights": torch.rand(len(rows), generator=generator)},
    )


def as_recorded(batch: TokenBatch) -> TokenBatch:
    """The batch with routes as rollout engines record them: uint8 where no row is missing."""
    assert isinstance(batch.experts_NTLK, torch.Tensor)
    traces = []
    for experts_TLK, length in zip(batch.experts_NTLK.numpy(), batch.lengths_N, strict=True):
        fed_TLK = experts_TLK[: length - 1]
        traces.append(fed_TLK.astype(np.int16 if (fed_TLK == MISSING_ROUTE).any() else np.uint8))
    return replace(batch, experts_NTLK=Traces(tuple(traces), *batch.experts_NTLK.shape[2:]))


def beginnings(batch: TokenBatch) -> int:
    """Number of different beginnings of sequences in tokens and routes: rows to be computed."""
    units = batch.tokens_NT[:, :, None]
    if (routes_NTLK := batch.padded_routes_NTLK) is not None:
        units = torch.cat([units, routes_NTLK.flatten(2)], dim=2)
    rows = [one[:length].tolist() for one, length in zip(units, batch.lengths_N, strict=True)]
    return len({str(row[: t + 1]) for row in rows for t in range(len(row))})


def shared_micro(batch: TokenBatch, **settings: int) -> MicroBatch:
    """All sequences as one micro-batch that computes every common beginning once."""
    prefixes = batch.prefixes
    return cut(batch, prefixes.order, prefixes=prefixes, **settings)
