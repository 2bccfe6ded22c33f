"""What a problem asks, as a key: the same question is recognised in any row."""

from collections.abc import Iterable

from data_schemas.rows import Demonstration, Problem
from tasks.algorithms.folding import folded
from tasks.store.files import sha256_bytes


def content_keys(problems: Iterable[Problem]) -> frozenset[str]:
    """Name what problems ask, so that a prompt seen before is recognised."""
    return frozenset(content_key(problem) for problem in problems)


def content_key(row: Problem | Demonstration) -> str:
    """Hash the prompt after folding width, case and blanks."""
    return sha256_bytes(folded(row.prompt_text).encode())
