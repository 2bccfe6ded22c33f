"""When a value or a printed text counts as the expected one."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.sandbox.comparison import same_text, same_value
from tests.tables import for_each

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@for_each(
    ("expected", "printed", "same"),
    [
        ("3", "3\n", True),
        ("1 2\n3\n", "1  2 \r\n3\n\n\n", True),
        ("1 2\n3", "1 2 3", False),
        ("1\n\n2", "1\n2", False),
        ("0.333333", "0.3333333333", True),
        ("0.333333", "0.3334", False),
        ("1e-9", "0", True),
        ("1.0", "1", True),
        ("1", "1.0", False),
        ("100000000", "100000001", False),
        ("100000000.0", "100000001.0", True),
        ("1.5", "nan", False),
        ("nan.", "nan.", True),
        ("Yes", "yes", False),
        ("", "", True),
        ("", "x", False),
        ("3", "", False),
    ],
)
def test_text_is_compared_by_lines_and_words(expected: str, printed: str, same: bool) -> None:
    assert same is same_text(expected, printed)


@for_each(
    ("expected", "value", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (True, 1, False),
        (1, 1.0, False),
        (1.0, 1, True),
        (0.5, 0.5 + 1e-9, True),
        (0.5, 0.51, False),
        (0.5, "0.5", False),
        (0.0, False, False),
        (1.5, float("nan"), False),
        (None, None, True),
        (None, 0, False),
        ("a", "a", True),
        ("a", b"a", False),
        ([1, [2]], (1, [2]), True),
        ([1, 2], [1], False),
        ([1, 2], {1, 2}, False),
        ({"a": 1}, {"a": 1}, True),
        ({"1": 1}, {1: 1}, True),
        ({"1": 1}, {1: 1, "1": 1}, False),
        ({"True": 1}, {True: 1}, False),
        ({"a": 1}, {"b": 1}, False),
        ([], None, False),
        ({}, [], False),
        (1.0, 10**400, False),
        (object(), object(), False),
    ],
)
def test_values_are_compared_with_their_types(expected: object, value: object, same: bool) -> None:
    assert same is same_value(expected, value)


@given(VALUES)
def test_every_json_value_is_itself_and_not_what_is_around_it(value: object) -> None:
    assert same_value(value, value)
    assert not same_value(value, [value])
    assert not same_value([value], value)
