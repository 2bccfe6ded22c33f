"""Result of an audit: the lineage of a registered model back to its raw files."""

from enum import StrEnum

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.texts import OneLine


class NodeKind(StrEnum):
    """Kind of a node in the lineage chain."""

    MODEL = "model"
    """The registered version in MLflow."""
    STAGE = "stage"
    """A statement with the objects it made."""
    ORIGIN = "origin"
    """External files, where the chain ends."""


class Finding(FrozenModel):
    """One difference between what is stored and what was recorded."""

    object: OneLine = Field(description="file, statement, MLflow run, model or version it is about")
    problem: OneLine


class AuditNode(FrozenModel):
    """One node of the chain and the objects re-hashed for it."""

    id: str
    kind: NodeKind
    title: OneLine
    details: tuple[tuple[OneLine, OneLine], ...] = Field(
        description="(name, value) pairs; digests in full"
    )
    parents: tuple[str, ...] = Field(description="ids of the nodes it was made from")
    findings: tuple[Finding, ...]


class SignerCount(FrozenModel):
    """A key and how much it signed."""

    fingerprint: str = Field(description="sha256 of the public key in DER")
    statements: int
    known: bool = Field(description="it is one of the auditor's keys")


class AuditReport(FrozenModel):
    """The audit result for one model or other artifact."""

    model: OneLine = Field(description="the audited model as it was named: 'models:/NAME@released'")
    version: OneLine = Field(description="of the registered model, '' for another artifact")
    nodes: tuple[AuditNode, ...] = Field(description="the model first, then back to the origins")
    findings: tuple[Finding, ...] = Field(description="all findings, including those of the nodes")
    statements: int
    objects: int
    buried: int = Field(default=0, description="models deleted on purpose, with a tombstone")
    raw_files: int
    rehashed_bytes: int
    signers: tuple[SignerCount, ...] = Field(
        description="whose signatures fit, most statements first"
    )
    unsigned: int = Field(description="statements that nobody signed, or that are damaged")
    published: OneLine = Field(
        default="", description="what a published folder leaves open; '' where a store was audited"
    )
    approved: OneLine = Field(
        default="", description="the keys of others that said yes; '' where settings ask for none"
    )
    stamped: OneLine = Field(default="", description="when the promotion existed, and who says so")
    pages: str = Field(default="not compared", description="of reports and phases, as signed")
    executions: str = Field(default="not compared", description="records of who ran the chain")
    has_catalogue: bool = Field(description="MLflow was compared with the statements")
    has_key: bool = Field(description="the auditor named the keys that have to vouch for it")

    @property
    def proved(self) -> bool:
        """True if everything is as recorded, down to the raw files."""
        return not self.findings
