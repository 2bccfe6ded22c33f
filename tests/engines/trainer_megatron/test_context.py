"""Every row has one holder, and attention costs every holder the same."""

import pytest
import torch

from tasks.engines.trainer_megatron.pieces import held_rows, multiple_of, pieces


def test_a_rank_holds_a_chunk_from_the_front_and_one_from_the_back():
    assert [0, 1, 6, 7, 8, 11] == held_rows([8, 4], context=2, rank=0).tolist()
    assert [2, 3, 4, 5, 9, 10] == held_rows([8, 4], context=2, rank=1).tolist()


def test_without_context_parallelism_the_one_rank_holds_all_in_order():
    assert list(range(9)) == held_rows([5, 1, 3], context=1, rank=0).tolist()


@pytest.mark.parametrize("context", [2, 3, 4])
def test_every_row_is_held_once(context):
    lengths = [multiple_of(context) * count for count in (1, 3, 2)]
    rows = torch.cat([held_rows(lengths, context, rank) for rank in range(context)])

    assert list(range(sum(lengths))) == sorted(rows.tolist())


@pytest.mark.parametrize("context", [2, 3, 4])
def test_ranks_look_at_equally_many_keys(context):
    lengths = [multiple_of(context) * count for count in (1, 3, 2)]
    looks = [
        sum(
            row - piece.first + 1
            for piece in pieces(lengths, context, rank)
            for row in range(piece.start, piece.stop)
        )
        for rank in range(context)
    ]

    assert [looks[0]] * context == looks


def test_sequences_that_do_not_make_whole_chunks_are_a_mistake_of_ours():
    with pytest.raises(AssertionError, match="6 rows do not make 4 chunks"):
        held_rows([6], context=2, rank=0)
