from itertools import pairwise, takewhile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.packing import (
    common_prefixes,
    even_buckets,
    length_buckets,
    pack,
    pad_rows,
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
    features_of = None if routes is None else lambda row, reach: routes[row, :reach]
    prefixes = common_prefixes(tokens, lengths, features_of)
    order = list(prefixes.order)
    tokens, lengths = tokens[order], lengths[order]
    return tokens, lengths, pack(lengths, np.array(prefixes.shared), tokens.shape[1])


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


ROUTED = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1)), min_size=1, max_size=6),
    min_size=1,
    max_size=10,
)


@given(sequences=ROUTED)
def test_every_beginning_of_tokens_and_routes_is_packed_exactly_once(sequences):
    tokens, lengths = padded([[token for token, _ in one] for one in sequences])
    routes, _ = padded([[route for _, route in one] for one in sequences])
    beginnings = {tuple(one[: t + 1]) for one in sequences for t in range(len(one))}

    features = routes[:, :, None].astype(np.int16)
    prefixes = common_prefixes(tokens, lengths, lambda row, reach: features[row, :reach])
    packing = pack(lengths[list(prefixes.order)], np.array(prefixes.shared), tokens.shape[1])

    assert sorted(range(len(sequences))) == sorted(prefixes.order)
    assert len(beginnings) == len(packing.cells_M)


@given(sequences=SEQUENCES, data=st.data())
def test_any_sequences_in_order_share_what_they_begin_with(sequences, data):
    prefixes = common_prefixes(*padded(sequences), None)
    chosen = data.draw(st.sets(st.sampled_from(prefixes.order)))
    ordered = [sequence for sequence in prefixes.order if sequence in chosen]
    pairs = [zip(sequences[i], sequences[j], strict=False) for i, j in pairwise(ordered)]

    expected = [sum(1 for _ in takewhile(lambda x: x[0] == x[1], pair)) for pair in pairs]

    assert ([0, *expected] if ordered else []) == prefixes.among(ordered)


def test_padding_is_never_counted_as_a_common_prefix():
    _, _, packing = packed([[1, 0], [1]])  # padded, both are 1 0

    assert 2 == len(packing.cells_M)
    assert [2, 1] == packing.copies_M.tolist()


@given(sequences=SEQUENCES, budget=st.integers(1, 30))
def test_runs_hold_every_sequence_in_order_within_the_budget(sequences, budget):
    tokens, lengths = padded(sequences)
    prefixes = common_prefixes(tokens, lengths, None)
    order, shared = list(prefixes.order), np.array(prefixes.shared)
    tokens, lengths = tokens[order], lengths[order]

    buckets = token_buckets(lengths, shared, budget)

    assert list(range(len(sequences))) == [row for bucket in buckets for row in bucket]
    for bucket in buckets:
        packing = pack(lengths[bucket], shared[bucket], tokens.shape[1])
        assert len(bucket) == 1 or len(packing.cells_M) <= budget


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=40), parts=st.integers(1, 8))
def test_even_runs_are_as_many_as_asked_and_none_is_larger_than_it_has_to_be(lengths, parts):
    lengths_N, shared_N = np.array(lengths), np.zeros(len(lengths), dtype=np.int64)

    buckets = even_buckets(lengths_N, shared_N, 10**6, parts)
    largest = max(sum(lengths[row] for row in bucket) for bucket in buckets)

    assert list(range(len(lengths))) == [row for bucket in buckets for row in bucket]
    assert len(buckets) <= parts
    assert largest < sum(lengths) / parts + max(lengths)


def test_even_runs_by_hand():
    lengths, shared = np.array([4, 4, 4, 4]), np.array([0, 3, 0, 3])

    assert [[0, 1], [2, 3]] == even_buckets(lengths, shared, 100, 2)
    assert [[0, 1, 2, 3]] == even_buckets(lengths, shared, 100, 1)
    assert [[0], [1], [2], [3]] == even_buckets(lengths, shared, 4, 1)


@pytest.mark.parametrize("budget", [1, 100])
def test_no_sequences_give_no_runs(budget):
    none = np.zeros(0, dtype=np.int64)

    assert [] == token_buckets(none, none, budget)
    assert [] == even_buckets(none, none, budget, 4)
