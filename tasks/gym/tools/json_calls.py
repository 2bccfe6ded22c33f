"""What is JSON to every reader of calls: each key once, and no NaN."""

from collections.abc import Sequence
from typing import Any


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from pairs.

    Raises:
        ValueError: a key stands twice.
    """
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is not JSON")
