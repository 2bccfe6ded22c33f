"""Which rows repeat another one, with vectors whose cosines are known."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.curation.meaning import repeats as repeats_module
from tasks.curation.meaning.protocol import unit
from tasks.curation.meaning.repeats import (
    MOST_PAIRS,
    check_feasible,
    key_of,
    limits_of,
    repeats,
    text_of,
)
from tasks.curation.overlap.nearness import FEWEST
from tasks.errors import SettingsError


def at(degrees):
    angles = np.radians(np.array(degrees, np.float64))
    return unit(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))


def found(degrees, limit):
    """Repeats of rows in their order, as a dictionary of row and twin."""
    rows = np.arange(len(degrees))
    limits = np.full(len(degrees), limit, np.float32)
    return {one.row: one.twin for one in repeats(rows, at(degrees), limits)}


def plainly(degrees, limit):
    """The same by the definition: the first kept row before it that is nearer than the limit."""
    vectors, kept, twins = at(degrees), [], {}
    for row in range(len(degrees)):
        near = [twin for twin in kept if vectors[row] @ vectors[twin] > limit]
        if near:
            twins[row] = near[0]
        else:
            kept.append(row)
    return twins


def test_a_row_is_left_out_for_the_first_kept_row_that_it_is_near_to():
    # 8 is near to 4 only, which is left out for 0: a chain does not spread.
    assert {1: 0, 3: 0} == found([0.0, 4.0, 8.0, 1.0], np.cos(np.radians(5.0)))


@pytest.mark.parametrize("block", [1, 2, 3, 64])
@given(degrees=st.lists(st.integers(0, 90), max_size=12))
def test_blocks_of_any_size_find_what_the_definition_says(block, degrees):
    limit = float(np.cos(np.radians(10.5)))
    before, repeats_module.ROWS = repeats_module.ROWS, block
    try:
        assert plainly(degrees, limit) == found(degrees, limit)
    finally:
        repeats_module.ROWS = before


def test_of_two_limits_the_higher_one_holds():
    limits = np.array([0.9, 0.999], np.float32)

    assert not list(repeats(np.arange(2), at([0.0, 10.0]), limits))


def test_the_threshold_is_what_99_percent_of_rows_do_not_have_with_rows_of_another_key():
    degrees = [*np.arange(FEWEST) * 0.9]
    degrees[1] = 0.1  # one pair is nearer than the others
    keys = np.stack([np.arange(FEWEST), np.zeros(FEWEST)], axis=1).astype(np.uint64)
    pools = {("problem", "a", "en"): np.arange(FEWEST), ("problem", "b", "en"): np.arange(3)}

    limits = limits_of(pools, keys, at(degrees))

    # The two of the near pair have the highest of the 100 cosines.
    assert limits["problem", "a", "en"] == pytest.approx(np.cos(np.radians(0.1)), abs=1e-7)
    assert limits["problem", "b", "en"] == limits["problem", "a", "en"]


def test_rows_of_one_key_do_not_say_how_near_different_rows_come(caplog):
    keys = np.ones((FEWEST, 2), np.uint64)

    assert {} == limits_of({("problem", "a", "en"): np.arange(FEWEST)}, keys, at(range(FEWEST)))
    assert "not compared" in caplog.text


def test_numbers_in_any_order_and_the_answer_make_a_key(make_problem, make_demonstration):
    one = make_problem("a", "Of 12 eggs 5 break.", "7")

    assert key_of(one) == key_of(make_problem("b", "5 break of the 12 eggs.", "7"))
    others = [
        make_problem("c", "Of 12 eggs 6 break.", "7"),
        make_problem("d", "Of 12 eggs 5 break.", "8"),
        make_demonstration("e", "Of 12 eggs 5 break.", "<think>s</think>7"),
        make_problem("f", " ", content=" "),
    ]
    assert len({key_of(one), *map(key_of, others)}) == 5
    assert bytes(16) == key_of(others[-1])
    assert all(left != right for left, right in pairwise(map(text_of, [one, *others])))


def test_more_pairs_than_are_feasible_are_refused_by_name():
    check_feasible([200_000, 2])
    with pytest.raises(SettingsError, match=r"^curation\.encoder: 300,000 rows"):
        check_feasible([300_000, 2])
    assert 200_000 * 199_999 // 2 < MOST_PAIRS
