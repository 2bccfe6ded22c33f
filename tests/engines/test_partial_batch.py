"""A rank that holds a share finds in it what it would find in the whole, or says that it cannot."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.algorithms.kept_sets import end_to_end, kept_behind
from tasks.algorithms.routing import missing_rows
from tasks.engines.partial_batch import Share, outline
from tasks.errors import EngineError
from tests.engines.trainer_megatron.batches import as_recorded, grouped_batch, random_batch


def held(batch, share):
    rows = [torch.tensor(bucket, dtype=torch.int64) for bucket in share.buckets]
    parts = tuple(batch.select(bucket, share.layers) for bucket in rows)
    return replace(outline(batch), share=share, parts=parts)


def assert_same(one, other):
    assert torch.equal(one.tokens_NT, other.tokens_NT)
    assert torch.equal(one.lengths_N, other.lengths_N)
    assert torch.equal(one.response_NT, other.response_NT)
    assert torch.equal(one.columns["weights"], other.columns["weights"])


def test_sequences_and_layers_have_the_numbers_of_the_whole():
    batch = random_batch()
    share = held(batch, Share(((0, 3), (5, 2, 6)), (1,)))
    rows = torch.tensor([2, 5])
    found, expected = share.select(rows, [1]), batch.select(rows)

    assert_same(expected, found)
    assert torch.equal(expected.experts_NTLK[:, :, [1]], found.experts_NTLK)


def test_sequences_keep_the_sets_that_they_were_drawn_from():
    batch = random_batch()
    sets = [
        kept_behind(0, end_to_end([np.array([row, 99], np.int32)] * int(length)))
        for row, length in enumerate(batch.lengths_N)
    ]
    batch = replace(batch, kept_N=tuple(sets))

    found = held(batch, Share(((0, 3), (5, 2, 6)), (1,))).select(torch.tensor([2, 5]), [1])

    sizes = found.response_NT.sum(1).tolist()
    assert [2, 99] * sizes[0] + [5, 99] * sizes[1] == found.kept_R.ids.tolist()


def test_layers_come_in_the_order_they_are_asked_for():
    batch = random_batch()
    share = held(batch, Share(((1, 3),), (0, 1)))
    rows = torch.tensor([3, 1])
    expected = batch.select(rows).experts_NTLK[:, :, [1, 0]]

    assert torch.equal(expected, batch.select(rows, [1, 0]).experts_NTLK)
    assert torch.equal(expected, share.select(rows, [1, 0]).experts_NTLK)


def test_no_sequences_are_held_by_anybody():
    filler = outline(random_batch()).select(torch.empty(0, dtype=torch.int64), ())

    assert (0, 0) == tuple(filler.tokens_NT.shape)
    assert (0, 0, 0, 2) == tuple(filler.experts_NTLK.shape)


def test_without_routes_layers_are_ignored():
    batch = replace(random_batch(), experts_NTLK=None)
    rows = torch.tensor([4])

    for layers in (None, [1]):
        found = held(batch, Share(((4,),), (0,))).select(rows, layers)
        assert_same(batch.select(rows), found)
        assert found.experts_NTLK is None


@pytest.mark.parametrize(
    ("rows", "layers", "message"),
    [
        ([2, 4], [1], r"sequences \[2, 4\] are not held together"),
        ([2, 3], [1], r"sequences \[2, 3\] are not held together"),
        ([2], [0, 1], r"routes of layers \[0\] are not held"),
        ([2], None, r"routes of layers \[0\] are not held"),
    ],
)
def test_what_is_not_held_is_refused_by_number(rows, layers, message):
    share = held(random_batch(), Share(((3,), (5, 2)), (1,)))

    with pytest.raises(EngineError, match=message):
        share.select(torch.tensor(rows), layers)


@pytest.mark.parametrize("layers", [None, (1,), (1, 0), (0, 1), ()])
@pytest.mark.parametrize("make", [random_batch, grouped_batch])
def test_routes_kept_as_recorded_are_those_of_one_tensor(make, layers):
    batch, recorded = make(), as_recorded(make())
    rows = torch.tensor([5, 0, 2])
    one, other = batch.select(rows, layers), recorded.select(rows, layers)

    assert batch.route_shape == recorded.route_shape
    assert batch.prefixes == recorded.prefixes
    assert missing_rows(batch.experts_NTLK, batch.lengths_N) == missing_rows(
        recorded.experts_NTLK, recorded.lengths_N
    )
    assert one.route_shape == other.route_shape
    assert torch.equal(one.experts_NTLK, other.padded_routes_NTLK.long())
    assert torch.equal(recorded.padded_routes_NTLK.long(), batch.experts_NTLK)


def test_recorded_routes_are_not_copied_before_a_micro_batch_is_made():
    batch = as_recorded(random_batch())
    recorded = batch.experts_NTLK.of_sequences
    update = batch.select(torch.tensor([1, 4]))
    stage = update.select(torch.tensor([1]), (1,))

    assert {np.dtype(np.uint8), np.dtype(np.int16)} == {one.dtype for one in recorded}
    assert np.shares_memory(recorded[4], update.experts_NTLK.of_sequences[1])
    assert np.shares_memory(recorded[4], stage.experts_NTLK.of_sequences[0])
