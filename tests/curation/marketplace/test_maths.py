"""Worked sums, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.curation.marketplace.maths import addition, change_of_hundred


def test_a_carry_is_named():
    assert "28+35: 8+5=13, 2+3+1=6, 63" == addition(28, 35)


def test_no_carry_is_named_where_there_is_none():
    assert "21+35: 1+5=6, 2+3=5, 56" == addition(21, 35)


@pytest.mark.parametrize(
    ("price", "steps"),
    [
        (42, "100-42: 10-2=8, 9-4=5, 58"),
        (40, "100-40: 10-4=6, 60"),
        (95, "100-95: 10-5=5, 9-9=0, 5"),
    ],
)
def test_change_is_counted_from_the_right(price, steps):
    assert steps == change_of_hundred(price)


@given(st.integers(1, 99), st.integers(1, 99))
def test_every_written_step_is_true(left, right):
    for step in addition(left, right).split(": ")[1].split(", ")[:-1]:
        terms, result = step.split("=")
        assert int(result) == sum(map(int, terms.split("+")))
