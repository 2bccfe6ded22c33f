"""A test of many rows names every row that fails, and runs all others."""

import pytest

from tests.tables import for_each


def test_every_row_runs_and_those_that_fail_are_raised_with_their_row():
    seen = []

    @for_each(("left", "right"), [(1, 1), (1, 2), (3, 3), (4, None)])
    def equal(left, right):
        seen.append(left)
        if right is None:
            pytest.fail("nothing to compare with")
        assert left == right

    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows") as raised:
        equal()

    assert [1, 1, 3, 4] == seen
    assert [["row: (1, 2)"], ["row: (4, None)"]] == [
        one.__notes__ for one in raised.value.exceptions
    ]


@for_each("text", ["a", "b"])
def test_what_is_no_column_is_a_fixture(text, tmp_path):
    assert tmp_path.is_dir()
    assert text in "ab"


@pytest.mark.parametrize("factor", [1, 2])
@for_each("left", [1, 2])
@for_each("right", [3, 4])
def test_tables_multiply_and_stand_below_parameters(left, right, factor):
    assert factor * left < factor * right


def test_a_row_with_a_mark_of_its_own_is_refused():
    with pytest.raises(AssertionError):
        for_each("one", [1, pytest.param(2, marks=pytest.mark.slow)])


def test_a_row_that_is_skipped_skips_no_other():
    seen = []

    @for_each("one", [1, 2])
    def second(one):
        if one == 1:
            pytest.skip("not here")
        seen.append(one)

    second()
    assert [2] == seen


def test_a_table_of_skipped_rows_is_skipped():
    @for_each("one", [1, 2])
    def none(one):
        pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception):
        none()
