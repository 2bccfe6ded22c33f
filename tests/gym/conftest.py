"""Builds problems for the verifiers."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data_schemas.rows import Problem
from tasks.store.files import canonical_json
from tests.records import problem_of

# Workers import what they run, and inherit the path.
sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def problem() -> Callable[[str, object], Problem]:
    """Return a builder: verifier name and gold to a problem."""

    def build(verifier: str, gold: object) -> Problem:
        return problem_of(
            "question",
            gold if isinstance(gold, str) else canonical_json(gold).decode(),
            id=f"test/{verifier}",
            verifier=verifier,
            source_row="0",
        )

    return build
