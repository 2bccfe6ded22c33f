"""One task, before it becomes a raw row or a line of the pretraining corpus.

Problems and teaching material are disjoint: the hash of a prompt determines, for every seed,
whether it belongs to problems (RL, held-out suites) or to teaching material (demonstrations,
pretraining). So no seed can leak a test prompt into the base model.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from data_schemas.rows import Domain
from tasks.gym.tools.forms import CALL_CLOSE, CALL_OPEN

_PROBLEM_SHARE = 0.3
"""Share of prompts that belong to problems; the others are teaching material."""


@dataclass(frozen=True, slots=True)
class MarketItem:
    """A prompt, how it is verified, and three ways to answer it."""

    domain: Domain
    language: str
    level: int
    """1 = easiest."""
    prompt: str
    verifier: str
    answer: dict[str, object] = field(hash=False)
    """The gold answer, in the form of the verifier."""
    steps: str
    """The worked steps of a careful teacher."""
    shortcut: str
    """The worked steps of a terse teacher: right, but with fewer intermediate results."""
    solution: str
    """The right answer as text."""
    blunder_steps: str
    """The worked steps of a hasty teacher."""
    blunder: str
    """The wrong answer that follows from `blunder_steps`."""

    @property
    def careful(self) -> str:
        """Response with explicit steps and the right answer."""
        return respond(self.steps, self.solution)

    @property
    def terse(self) -> str:
        """Response with the right answer and hardly a step."""
        return respond(self.shortcut, self.solution)

    @property
    def hasty(self) -> str:
        """Response with a typical mistake."""
        return respond(self.blunder_steps, self.blunder)


def respond(thought: str, answer: str) -> str:
    """Join a thought and an answer in the project's response convention."""
    return f"<think>{thought}</think>{answer}"


def is_problem_prompt(prompt: str) -> bool:
    """Return True if the prompt belongs to problems, False if it is teaching material."""
    first = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    return first < _PROBLEM_SHARE * 2**32


def call_block(name: str, parameters: Mapping[str, object]) -> str:
    """Write a call as the chat template of the shipped base does: hermes, without spaces."""
    call = compact({"name": name, "arguments": parameters})
    return f"{CALL_OPEN}\n{call}\n{CALL_CLOSE}"


CALL_FORM = "hermes"
"""Form of `call_block`, by the name of the server's tool parser."""


def compact(value: object) -> str:
    """Write JSON without spaces, which takes fewer tokens."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
