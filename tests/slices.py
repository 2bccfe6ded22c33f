"""A slice of a parametrised test for every day; all of its cases run at night."""

from collections.abc import Callable, Iterable

import pytest


def sliced(values: Iterable[object], is_daily: Callable[..., bool]) -> list[object]:
    """Return the values for `parametrize`, with the mark `slow` on those that are not daily.

    Args:
        values: of one parameter, or tuples of several.
        is_daily: says of a value, or of those in a tuple, whether it runs every day.
    """
    found = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*value, marks=() if is_daily(*value) else pytest.mark.slow) for value in found
    ]
