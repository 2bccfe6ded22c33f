"""What an audit found: the chain from a registered model back to its raw files."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class NodeKind(StrEnum):
    """What stands at a place of the chain."""

    MODEL = "model"
    """The registered version in MLflow."""
    STAGE = "stage"
    """A statement with the objects it made."""
    ORIGIN = "origin"
    """Files from outside: where the chain ends."""


class Finding(BaseModel):
    """One thing that is not as recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    object: str = Field(description="file, statement, MLflow run, model or version it is about")
    problem: str


class AuditNode(BaseModel):
    """One place of the chain with what was re-hashed there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: NodeKind
    title: str
    details: tuple[tuple[str, str], ...] = Field(description="what it is, value; digests in full")
    parents: tuple[str, ...] = Field(description="ids of the nodes it was made from")
    findings: tuple[Finding, ...]


class AuditReport(BaseModel):
    """The verdict on one registered model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(description="what was asked for, 'models:/NAME@released'")
    version: str
    nodes: tuple[AuditNode, ...] = Field(description="the model first, then back to the origins")
    findings: tuple[Finding, ...] = Field(description="all of them, those of the nodes included")
    statements: int
    objects: int
    raw_files: int
    rehashed_bytes: int

    @property
    def proved(self) -> bool:
        """True if everything is as recorded, down to the raw files."""
        return not self.findings
