"""Rows with equal keys, whatever is sorted at once."""

import numpy as np
import pytest

from tasks.curation.overlap import groups


@pytest.mark.parametrize("part", [1, 3, 7, 1000])
def test_groups_do_not_depend_on_how_many_keys_are_sorted_at_once(
    part: int, monkeypatch: pytest.MonkeyPatch
):
    keys = np.random.default_rng(0).integers(0, 9, (60, 2)).astype(np.uint64)
    rows = np.arange(0, 60, 2)
    chosen = np.isin(np.arange(60), rows)
    monkeypatch.setattr(groups, "PART", part)

    found = {tuple(group.tolist()) for group in groups.equal(keys, chosen)}

    distinct = np.unique(keys, axis=0)
    every = [tuple(int(row) for row in rows if (keys[row] == key).all()) for key in distinct]
    assert {group for group in every if len(group) > 1} == found


def test_keys_that_differ_in_their_second_half_are_not_equal():
    keys = np.array([[1, 1], [1, 2], [2, 1]], np.uint64)

    assert [] == list(groups.equal(keys, np.ones(3, np.bool_)))
