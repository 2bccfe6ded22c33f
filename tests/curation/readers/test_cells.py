"""Numbers of half and single precision are the decimals that somebody wrote."""

import numpy as np
import pyarrow as pa
import pytest

from tasks.curation.readers.cells import column_cells

SINGLE = pa.float32()


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (pa.array([0.1, 1e-5, None, 12345678.0], SINGLE), [0.1, 1e-5, None, 12345678.0]),
        (pa.array([np.float16(0.1), None], pa.float16()), [0.1, None]),
        (pa.array([0.1, 0.1, 0.2], SINGLE).dictionary_encode(), [0.1, 0.1, 0.2]),
        (pa.array([[0.1, 0.2], None], pa.list_(SINGLE)), [[0.1, 0.2], None]),
        (pa.array([[[0.1]]], pa.large_list(pa.list_(SINGLE, 1))), [[[0.1]]]),
        (pa.array([{"price": 0.1, "n": 1}], pa.struct([("price", SINGLE), ("n", pa.int8())])),
         [{"price": 0.1, "n": 1}]),
        (pa.array([[("net", 0.1)]], pa.map_(pa.string(), SINGLE)), [{"net": 0.1}]),
        (pa.array([[("a", 0.1), ("a", 0.2)]], pa.map_(pa.string(), SINGLE)),
         [[["a", 0.1], ["a", 0.2]]]),
        (pa.array([float("nan"), float("-inf")], SINGLE), ["NaN", "-Infinity"]),
        (pa.array([0.1 + 0.2], pa.float64()), [0.30000000000000004]),
    ],
)  # fmt: skip
def test_a_number_of_less_precision_is_read_as_it_was_written(
    column: pa.Array, cells: list[object]
) -> None:
    assert cells == column_cells(column)
