"""Every sequence is computed once, by one rank, and all ranks stay in step."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.packing import common_prefixes
from tasks.engines.trainer_megatron.micro_batches import cut, divide, prompt_lengths
from tasks.engines.trainer_megatron.pieces import held_rows
from tests.engines.trainer_megatron.batches import (
    beginnings,
    grouped_batch,
    random_batch,
    shared_micro,
)


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


GROUPS = st.lists(
    st.tuples(st.integers(1, 30), st.lists(st.integers(1, 40), min_size=1, max_size=9)),
    min_size=1,
    max_size=6,
)
"""Length of every prompt, and of the responses to it."""


def grouped(groups):
    """Lengths, prefixes and prompts of responses that have nothing in common but their prompt."""
    rows, unused = [], iter(range(10**9))
    for prompt, responses in groups:
        first = [next(unused) for _ in range(prompt)]
        rows += [first + [next(unused) for _ in range(length)] for length in responses]
    lengths = np.array([len(row) for row in rows])
    tokens = np.zeros((len(rows), lengths.max()), dtype=np.int64)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
    prompts = [prompt for prompt, responses in groups for _ in responses]
    return lengths.tolist(), common_prefixes(tokens, lengths, None), prompts


def lockstep(division, size):
    """Rows of the fullest rank in every micro-batch, added up."""
    return sum(max(map(size, together)) for together in zip(*division, strict=True))


@given(GROUPS, st.integers(1, 4), st.integers(1, 90))
def test_sharing_prompts_computes_no_more_in_lockstep_and_keeps_every_law(
    groups, num_ranks, max_tokens
):
    lengths, prefixes, prompts = grouped(groups)

    def rows(micro):
        return sum(lengths[row] for row in micro) - sum(prefixes.among(micro))

    dealt = divide(
        lengths, num_ranks=num_ranks, max_tokens=max_tokens, prefixes=prefixes, prompts=prompts
    )
    micros = [micro for rank in dealt for micro in rank]
    plain = divide(lengths, num_ranks=num_ranks, max_tokens=max_tokens)

    assert num_ranks == len(dealt)
    assert 1 == len({len(rank) for rank in dealt})
    assert sorted(range(len(lengths))) == sorted(job for micro in micros for job in micro)
    assert all(len(micro) <= 1 or rows(micro) <= max_tokens for micro in micros)
    assert lockstep(dealt, rows) <= lockstep(plain, lambda micro: sum(lengths[r] for r in micro))


def test_the_rows_of_attention_are_bounded_too():
    """32 answers of one token to a long prompt: few rows, but attention has the prompt of each."""
    lengths, prefixes, prompts = grouped([(60, [1] * 32)])
    ((*micros,),) = divide(lengths, num_ranks=1, max_tokens=180, prefixes=prefixes, prompts=prompts)

    assert 1 < len(micros[0])
    for micro in micros:
        tokens = sum(lengths[row] for row in micro)
        packed = tokens - sum(prefixes.among(micro))
        assert packed + (tokens - packed) / 4 <= 180


def test_answers_to_a_prompt_stay_together_if_the_ranks_are_even():
    groups = [(8, [3, 3]), (8, [3, 3]), (8, [3, 3]), (8, [3, 3])]
    lengths, prefixes, prompts = grouped(groups)

    dealt = divide(lengths, num_ranks=2, max_tokens=16, prefixes=prefixes, prompts=prompts)

    assert [[(0, 1), (4, 5)], [(2, 3), (6, 7)]] == dealt


def test_a_group_that_one_rank_would_have_alone_is_split():
    lengths, prefixes, prompts = grouped([(4, [20, 20, 20, 20])])

    dealt = divide(lengths, num_ranks=2, max_tokens=100, prefixes=prefixes, prompts=prompts)

    assert [[(0, 1)], [(2, 3)]] == dealt


def test_a_prompt_ends_before_the_first_response_token():
    batch = grouped_batch()
    expected = [row.index(True) for row in batch.response_NT.tolist()]

    assert expected == prompt_lengths(batch)
    assert [] == prompt_lengths(batch.select(torch.empty(0, dtype=torch.int64)))


def test_a_common_beginning_that_is_no_prompt_makes_no_group():
    tokens = np.array([[1, 2, 10, 11, 12, 13], [1, 2, 20, 21, 22, 23]])
    prefixes = common_prefixes(tokens, np.array([6, 6]), None)

    dealt = divide([6, 6], num_ranks=2, max_tokens=64, prefixes=prefixes, prompts=[5, 5])

    assert [[(0,)], [(1,)]] == dealt


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
    assert len(tokens) == int(micro.copies_M.sum())
    assert len(micro.tokens_M) - len(tokens) == micro.num_padding


def test_a_response_token_is_predicted_from_the_row_before_it():
    micro = cut(random_batch(), [2, 0, 5])

    assert len(micro.batch.tokens_R) == int(micro.batch.response_NT.sum())
    assert torch.equal(micro.batch.tokens_R, micro.tokens_M[micro.before_R + 1])


def test_routes_go_with_their_tokens_and_padding_names_different_experts():
    batch = random_batch()
    micro = cut(batch, [3, 6], tensor=32)
    routes_MLK = micro.routes_MLK()
    first = int(batch.lengths_N[3])
    padding = routes_MLK[micro.copies_M == 0]

    assert torch.equal(batch.experts_NTLK[3, :first], routes_MLK[:first])
    assert torch.equal(
        batch.experts_NTLK[6, : batch.lengths_N[6]], routes_MLK[first:][: batch.lengths_N[6]]
    )
    assert len(padding)
    assert (padding == torch.tensor([0, 1])).all()


def test_a_filler_is_a_row_of_padding_without_weight():
    micro = cut(random_batch(), [], tensor=2)

    assert micro.is_filler
    assert 2 == len(micro.tokens_M) == micro.num_padding
    assert 0 == len(micro.batch.tokens_R) == int(micro.copies_M.sum())
    assert (2, 2, 2) == tuple(micro.routes_MLK().shape)


def test_context_ranks_hold_every_row_once_and_a_share_of_every_sequence():
    micro = cut(random_batch(), [4, 1, 0], tensor=2, context=2)
    held = [held_rows(micro.parts, 2, rank) for rank in range(2)]

    assert all(0 == part % 4 for part in micro.parts)
    assert len(micro.tokens_M) == sum(micro.parts)
    assert int((micro.copies_M == 0).sum()) == micro.num_padding
    assert torch.equal(torch.arange(len(micro.tokens_M)), torch.cat(held).sort().values)
    assert torch.equal(micro.batch.tokens_R, micro.tokens_M[micro.before_R + 1])
    assert torch.equal(
        micro.routes_MLK()[micro.places_C], micro.batch.experts_NTLK[micro.batch.real_NT]
    )


def test_a_prompt_of_several_answers_is_one_set_of_rows():
    batch = grouped_batch()
    micro = shared_micro(batch, tensor=32)
    tokens = int(batch.lengths_N.sum())

    assert beginnings(batch) == len(micro.packing.cells_M) == int((micro.copies_M > 0).sum())
    assert tokens == int(micro.copies_M.sum())
    assert beginnings(batch) < 0.75 * tokens
    assert not micro.copies_M[len(micro.packing.cells_M) :].any()
    assert len(micro.tokens_M) - beginnings(batch) == micro.num_padding


def test_every_answer_is_predicted_from_rows_of_its_own_beginning():
    """The first token of a prompt's second answer too, which a row of the first predicts."""
    batch = grouped_batch()
    micro = shared_micro(batch)
    tokens_NT, routes_NTLK = micro.batch.tokens_NT, micro.batch.experts_NTLK
    width = tokens_NT.shape[1]
    foreign = 0
    for row, sequence, position in zip(
        micro.before_R.tolist(), *(part.tolist() for part in micro.batch.at), strict=True
    ):
        source, place = divmod(int(micro.packing.cells_M[row]), width)
        foreign += source != sequence
        assert position - 1 == place
        assert torch.equal(tokens_NT[source, :position], tokens_NT[sequence, :position])
        assert torch.equal(routes_NTLK[source, :position], routes_NTLK[sequence, :position])
        assert micro.tokens_M[row] == tokens_NT[sequence, place]
        assert torch.equal(micro.routes_MLK()[row], routes_NTLK[sequence, place])

    assert foreign > 5
    assert not torch.equal(
        micro.batch.tokens_R, micro.tokens_M[(micro.before_R + 1) % len(micro.tokens_M)]
    )


@pytest.mark.parametrize("tensor", [1, 32])
def test_attention_has_every_sequence_whole_and_every_row_finds_its_result(tensor):
    batch = grouped_batch()
    micro = shared_micro(batch, tensor=tensor)
    packed_W, attention_M = micro.attention_rows()
    bounds = list(pairwise(accumulate(micro.parts, initial=0)))
    sequences = [micro.tokens_M[packed_W[start:stop]] for start, stop in bounds]

    assert sum(micro.parts) == len(packed_W)
    assert torch.equal(torch.arange(len(micro.tokens_M)), packed_W[attention_M])
    for row, found in zip(micro.rows_N, sequences, strict=False):
        assert torch.equal(batch.tokens_NT[row, : batch.lengths_N[row]], found)
    if tensor > 1:
        assert len(sequences) == len(micro.rows_N) + 1
        assert not sequences[-1].any()


def test_sequences_that_share_nothing_are_attention_rows_as_they_are():
    assert cut(grouped_batch(), [1, 4, 0]).attention_rows() is None
    assert shared_micro(random_batch()).attention_rows() is None
    assert shared_micro(random_batch().select(torch.tensor([], dtype=torch.int64))).is_filler
