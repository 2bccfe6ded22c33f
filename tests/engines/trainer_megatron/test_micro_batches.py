"""Every sequence is computed once, by one rank, and all ranks stay in step."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.engines.trainer_megatron.context import held_rows
from tasks.engines.trainer_megatron.micro_batches import cut, divide
from tests.engines.trainer_megatron.batches import random_batch


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 5), st.integers(1, 80))
def test_every_sequence_is_dealt_once_and_micro_batches_hold_no_more_than_they_may(
    lengths, num_ranks, max_tokens
):
    dealt = divide(lengths, num_ranks=num_ranks, max_tokens=max_tokens)
    micros = [micro for rank in dealt for micro in rank]

    assert num_ranks == len(dealt)
    assert 1 == len({len(rank) for rank in dealt})
    assert sorted(range(len(lengths))) == sorted(job for micro in micros for job in micro)
    assert all(
        len(micro) <= 1 or sum(lengths[job] for job in micro) <= max_tokens for micro in micros
    )


def test_ranks_get_like_amounts_and_the_rest_are_fillers():
    dealt = divide([9, 8, 7, 6, 5], num_ranks=2, max_tokens=16)

    assert [[(0, 3), (4,)], [(1, 2), ()]] == dealt


def test_a_micro_batch_is_its_sequences_end_to_end():
    batch = random_batch()
    micro = cut(batch, [4, 1], tensor=4)
    rows = [batch.tokens_NT[row, : batch.lengths_N[row]] for row in (4, 1)]
    tokens = torch.cat(rows)

    assert tuple(len(row) for row in rows) == micro.lengths
    assert torch.equal(tokens, micro.tokens_M[: len(tokens)])
    assert not micro.tokens_M[len(tokens) :].any()
    assert 0 == len(micro.tokens_M) % 4
    assert len(tokens) == int(micro.real_M.sum())


def test_a_response_token_is_predicted_from_the_row_before_it():
    micro = cut(random_batch(), [2, 0, 5])

    assert len(micro.tokens_R) == int(micro.batch.response_NT.sum())
    assert torch.equal(micro.tokens_R, micro.tokens_M[micro.before_R + 1])


def test_routes_go_with_their_tokens_and_padding_names_different_experts():
    batch = random_batch()
    micro = cut(batch, [3, 6], tensor=32)
    routes_MLK = micro.routes_MLK()
    first = int(batch.lengths_N[3])
    padding = routes_MLK[micro.real_M == 0]

    assert torch.equal(batch.experts_NTLK[3, :first], routes_MLK[:first])
    assert torch.equal(
        batch.experts_NTLK[6, : batch.lengths_N[6]], routes_MLK[first:][: batch.lengths_N[6]]
    )
    assert len(padding)
    assert (padding == torch.tensor([0, 1])).all()


def test_a_filler_is_a_row_of_padding_without_weight():
    micro = cut(random_batch(), [], tensor=2)

    assert micro.is_filler
    assert 2 == len(micro.tokens_M)
    assert 0 == len(micro.tokens_R) == int(micro.real_M.sum())
    assert (2, 2, 2) == tuple(micro.routes_MLK().shape)


def test_context_ranks_hold_every_row_once_and_a_share_of_every_sequence():
    micro = cut(random_batch(), [4, 1, 0], tensor=2, context=2)
    held = [held_rows(micro.parts, 2, rank) for rank in range(2)]

    assert all(0 == part % 4 for part in micro.parts)
    assert len(micro.tokens_M) == sum(micro.parts)
    assert torch.equal(torch.arange(len(micro.tokens_M)), torch.cat(held).sort().values)
    assert torch.equal(micro.tokens_R, micro.tokens_M[micro.before_R + 1])
    assert torch.equal(micro.routes_MLK()[micro.places_C], micro.batch.experts_NTLK[micro._real_NT])
