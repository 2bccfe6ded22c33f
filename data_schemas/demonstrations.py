"""One worked response, for supervised fine-tuning."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Domain, LanguageTag, Message


class Parent(StrEnum):
    """Which model a demonstration teaches: a parent of the merge (CompassMax A.2), or another."""

    REASONING = "reasoning"
    COMMERCE = "commerce"
    JUDGE = "judge"
    """Compares answers; not a parent of the merge."""
    WRITER = "writer"
    """Writes a rationale and a problem for concepts, p(z, x | c); not a parent of the merge."""
    PLANNER = "planner"
    """Writes the rationale of a problem, q(z | c, x); not a parent of the merge."""
    GENERAL = "general"
    """The model after RL (Ring-lite's last stage), which learns from all but the judge's."""


USES_FILE = "uses.parquet"
"""File of a fine-tuning's report: every demonstration of the parent, as DemonstrationUse."""
TRAINED_TOKENS = "trained_tokens"
"""Fact of a fine-tuning: response tokens that trained the chosen checkpoint, in all its epochs."""
MERGED = (Parent.REASONING, Parent.COMMERCE)
"""The parents of the merge."""


class Demonstration(BaseModel):
    """A prompt and the response to imitate; only response tokens have a loss."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    parent: Parent
    domain: Domain
    language: LanguageTag
    messages: tuple[Message, ...] = Field(min_length=1)
    response: str = Field(min_length=1, description="'<think>...</think>answer', without end token")
    source: str
    source_row: str = Field(description="sha256 of the raw row's bytes")

    @property
    def prompt_text(self) -> str:
        """All turns in one string."""
        return "\n".join(message.content for message in self.messages)

    @property
    def asked(self) -> str:
        """What is asked, for duplicate and contamination checks."""
        return self.prompt_text


class DemonstrationUse(BaseModel):
    """How often the chosen checkpoint was trained on a demonstration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    source_row: str
    epochs: int = Field(ge=0, description="0 = of the validation rows, which choose the checkpoint")
