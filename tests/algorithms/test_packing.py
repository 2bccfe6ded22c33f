import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.packing import length_buckets, pad_rows


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
