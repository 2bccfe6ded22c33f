"""Input and output records of a scorer."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.rollouts import split_turns
from data_schemas.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Finished:
    """One response, submitted as soon as the rollout engine has finished it."""

    problem: Problem
    group: str
    """Samples with the same key are compared with each other; a prompt may be drawn twice."""
    sample: int
    group_size: int
    tokens: NDArray[np.int32] | str
    """Of the response, end token included; the scorer turns them into text. Or its text."""
    sampled: NDArray[np.bool_] | None = None
    """As `Rollout.sampled`: the verifier reads the policy's turns only."""

    @property
    def content(self) -> tuple[NDArray[np.int32], ...] | str:
        """What is scored: the tokens of each turn, or the text."""
        if isinstance(self.tokens, str):
            return self.tokens
        return split_turns(self.tokens, self.sampled)


@dataclass(frozen=True, slots=True)
class Scored:
    """The result for one response."""

    text: str
    verdict: Verdict
    seconds: float
    """Verifier time of this response; its share if a group is scored as a whole."""
    judge_calls: int


class ScoreRow(BaseModel):
    """A response with what scores it: a line of a file, or an entry of a request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verifier: str = Field(min_length=1, description="a key of tasks.gym.table.VERIFIERS")
    answer: dict[str, Any] | str = Field(description="what that verifier checks against")
    response: str
    id: str = Field(default="", description="of the problem; equal ones in a row are a group")
    prompt: str | tuple[Message, ...] = Field(default="", description="read by judges alone")
    language: str = Field(default="en", min_length=2, description="BCP 47 tag of the problem")

    def problem(self, place: int) -> Problem:
        """Return the problem that a verifier is given; a row without an id is alone."""
        prompt = self.prompt
        turns = (Message(role=Role.USER, content=prompt),) if isinstance(prompt, str) else prompt
        text = self.answer if isinstance(self.answer, str) else json.dumps(self.answer)
        return Problem(
            id=self.id or f"row/{place}",
            domain=Domain.OPEN_TEXT,
            language=self.language,
            messages=turns or (Message(role=Role.USER, content=""),),
            verifier=self.verifier,
            answer=text,
            source="api",
            source_row="api",
        )
