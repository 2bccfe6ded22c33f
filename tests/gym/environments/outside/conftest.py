"""Problems with an environment of another process."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data_schemas.rows import Domain, Problem
from tasks.gym.environments.outside import play
from tasks.store.files import canonical_json
from tests import records


def problem_of(number: int = 3, library: str = "example", **gold: object) -> Problem:
    """Return a game of `example_host`, or a task of another library."""
    answer = {
        "library": library,
        "environment": "guess",
        "task": {"number": number},
        "version": "1",
    }
    return records.problem_of(
        "Guess a number from 1 to 20.",
        canonical_json(answer | gold).decode(),
        id=f"guess/{number}",
        domain=Domain.TOOL_USE,
        verifier="environment",
        source="environments",
    )


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Path], None]:
    """Let a library's interpreter be one that runs a script of ours instead of its host."""

    def use(library: str, script: Path) -> None:
        path = tmp_path / library
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n', encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv(play.VARIABLE, f"{library}={path}")

    yield use
    play.close()
