"""One verifiable piece of work."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Role(StrEnum):
    """Who speaks in a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(BaseModel):
    """One chat turn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    content: str


class Domain(StrEnum):
    """Reward domains: Compass-Gym's (CompassMax A.3, A.8) and Ring-lite's science.

    A phase of RL trains on a set of them. The sample world has the first seven.
    """

    MATHS = "maths"
    CODE = "code"
    INSTRUCTION = "instruction"
    CHOICE = "choice"
    EXTRACTION = "extraction"
    TOOL_USE = "tool_use"
    OPEN_TEXT = "open_text"
    SCIENCE = "science"
    """Answers are checked like those of maths, with a unit."""
    GENERAL = "general"
    """General questions: choices, and open text."""


OUTSIDE = "environment"
"""Verifier of environments that other libraries play."""


class Problem(BaseModel):
    """A prompt with everything its verifier needs; one row of problems.parquet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, description="stable and unique: '<source>/<row key>'")
    domain: Domain
    language: str = Field(min_length=2, description="BCP 47 tag: en, zh-TW, id, ms, pt, th, vi ...")
    messages: tuple[Message, ...] = Field(min_length=1, description="chat turns up to the answer")
    verifier: str = Field(min_length=1, description="a key of tasks.gym.table.VERIFIERS")
    answer: str = Field(description="canonical JSON: the reference for the verifier")
    source: str = Field(description="name of the adapter that read the row")
    source_row: str = Field(description="sha256 of the raw row's bytes: the end of row lineage")
    level: int = Field(default=0, ge=0, description="the source's own difficulty, 0 if it has none")

    @property
    def prompt_text(self) -> str:
        """All turns in one string."""
        return "\n".join(message.content for message in self.messages)

    @property
    def asked(self) -> str:
        """What is asked, for duplicate and contamination checks: the prompt.

        An environment may know more than it says at first, such as a secret word: of one that
        another library plays, the task belongs to what is asked.
        """
        return f"{self.prompt_text}\n{self.answer}" if self.is_outside else self.prompt_text

    @property
    def is_outside(self) -> bool:
        """Whether another library plays it; its raw row then names many tasks."""
        return self.verifier == OUTSIDE


SLICE = "slice="
"""Begins the id of a problem that was held out later: `slice=2026-11/<id>`."""


class Facet(BaseModel):
    """A property of a problem that is not part of its prompt; drift is measured on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="id")
    name: str = Field(description="category, brand, price ...")
    value: str
