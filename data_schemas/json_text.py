"""JSON as RFC 8259 has it: Python reads NaN as well, and of a key that is given twice the last.

Two hooks for a decoder, each of which refuses what it would otherwise read:

    json.loads(text, object_pairs_hook=each_key_once, parse_constant=refuse_constant)
"""

from collections.abc import Sequence
from typing import Any


def each_key_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; what is hashed or scored must not depend on which of two values is read.

    Raises:
        ValueError: names a key that is given twice, its first 60 characters.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated[:60]!r} is given twice")
    return value


def refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is not JSON")
