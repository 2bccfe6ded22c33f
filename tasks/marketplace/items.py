"""One piece of work, before it becomes a raw row or a line of the pretraining corpus.

Problems and teaching material never meet: a prompt's hash decides once and for all
whether it may be asked (RL, held-out) or taught (demonstrations, pretraining), whatever
seed drew it. So no seed can leak a test prompt into the base model.
"""

import hashlib
import json
from dataclasses import dataclass, field

from data_schemas.prompts import Domain

_ASKED_SHARE = 0.3
"""Of all prompts; the rest may be taught."""


@dataclass(frozen=True, slots=True)
class Item:
    """A prompt, how it is verified, and three ways to answer it."""

    domain: Domain
    language: str
    level: int
    """1 = easiest."""
    prompt: str
    verifier: str
    answer: dict[str, object] = field(hash=False)
    """What the verifier checks against."""
    steps: str
    """The working of a careful teacher."""
    shortcut: str
    """The working of a terse teacher: right, but leaves the model to do more in its head."""
    solution: str
    """The right answer, as text."""
    blunder_steps: str
    """The working of a hasty teacher."""
    blunder: str
    """The wrong answer this leads to."""

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


def is_asked(prompt: str) -> bool:
    """True if this prompt may be a problem; False if it may be taught."""
    first = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    return first < _ASKED_SHARE * 2**32


def compact(value: object) -> str:
    """JSON without spaces: fewer tokens to get wrong."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
