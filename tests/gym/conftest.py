"""Builds problems for the verifiers."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.store.files import canonical_json

# Workers import what they run, and inherit the path.
sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def problem() -> Callable[[str, object], Problem]:
    """Return a builder: verifier name and gold to a problem."""

    def build(verifier: str, gold: object) -> Problem:
        return Problem(
            id=f"test/{verifier}",
            domain=Domain.MATHS,
            language="en",
            messages=(Message(role=Role.USER, content="question"),),
            verifier=verifier,
            answer=gold if isinstance(gold, str) else canonical_json(gold).decode(),
            source="test",
            source_row="0",
        )

    return build
