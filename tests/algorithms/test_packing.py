import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.packing import (
    length_buckets,
    pack,
    pad_rows,
    prefix_order,
    shared_prefixes,
    token_buckets,
)


@given(lengths=st.lists(st.integers(1, 50), max_size=40), budget=st.integers(1, 200))
def test_buckets_hold_every_row_once_within_the_budget(lengths, budget):
    buckets = length_buckets(lengths, budget)

    assert sorted(range(len(lengths))) == sorted(row for bucket in buckets for row in bucket)
    for bucket in buckets:
        assert len(bucket) == 1 or len(bucket) * max(lengths[row] for row in bucket) <= budget


def test_rows_are_padded_on_the_right():
    padded = pad_rows([torch.tensor([1, 2, 3]), torch.tensor([4])], 0)

    assert [[1, 2, 3], [4, 0, 0]] == padded.tolist()


def test_no_rows_give_an_empty_tensor_of_the_fills_type():
    assert torch.bool is pad_rows([], False).dtype
    assert (0, 0) == tuple(pad_rows([], 0.0).shape)


SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=12)


def padded(sequences):
    lengths = np.array([len(one) for one in sequences])
    tokens = np.zeros((len(sequences), lengths.max()), dtype=np.int64)
    for row, one in zip(tokens, sequences, strict=True):
        row[: len(one)] = one
    return tokens, lengths


def packed(sequences, routes=None):
    tokens, lengths = padded(sequences)
    order = prefix_order(tokens, lengths, routes)
    tokens, lengths = tokens[order], lengths[order]
    routes = None if routes is None else routes[order]
    shared = shared_prefixes(tokens, lengths, routes)
    return tokens, lengths, pack(lengths, shared, tokens.shape[1])


@given(sequences=SEQUENCES)
def test_every_beginning_is_packed_exactly_once(sequences):
    tokens, lengths, packing = packed(sequences)
    beginnings = {tuple(one[: t + 1]) for one in sequences for t in range(len(one))}

    assert len(beginnings) == len(packing.cells_M)
    assert sum(len(one) for one in sequences) == int(packing.copies_M.sum())
    rows, width = packing.rows_NT.numpy(), tokens.shape[1]
    for n in range(len(tokens)):
        for t in range(lengths[n]):
            source = divmod(int(packing.cells_M[rows[n, t]]), width)
            assert t == source[1]
            assert tokens[n, : t + 1].tolist() == tokens[source[0], : t + 1].tolist()


def test_alike_tokens_with_other_routes_are_not_alike():
    routes = np.array([[[1], [2], [3]], [[1], [5], [3]]])

    _, _, packing = packed([[7, 8, 9], [7, 8, 9]], routes)

    assert 5 == len(packing.cells_M)
    assert [2, 1, 1, 1, 1] == packing.copies_M.tolist()


def test_padding_is_never_counted_as_a_common_prefix():
    _, _, packing = packed([[1, 0], [1]])  # padded, both are 1 0

    assert 2 == len(packing.cells_M)
    assert [2, 1] == packing.copies_M.tolist()


@given(sequences=SEQUENCES, budget=st.integers(1, 30))
def test_runs_hold_every_sequence_in_order_within_the_budget(sequences, budget):
    tokens, lengths = padded(sequences)
    order = prefix_order(tokens, lengths, None)
    tokens, lengths = tokens[order], lengths[order]
    shared = shared_prefixes(tokens, lengths, None)

    buckets = token_buckets(lengths, shared, budget)

    assert list(range(len(sequences))) == [row for bucket in buckets for row in bucket]
    for bucket in buckets:
        packing = pack(lengths[bucket], shared[bucket], tokens.shape[1])
        assert len(bucket) == 1 or len(packing.cells_M) <= budget


@pytest.mark.parametrize("budget", [1, 100])
def test_no_sequences_give_no_runs(budget):
    none = np.zeros(0, dtype=np.int64)

    assert [] == token_buckets(none, none, budget)
