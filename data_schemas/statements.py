"""Who made what from what: the link of the lineage chain.

A statement holds only what is a function of code, settings and inputs, so a
stage that is run again on the same things writes the same bytes. When it ran, on
which machine and for how long is in the ExecutionRecord beside it.
"""

from pydantic import BaseModel, ConfigDict, Field


class Input(BaseModel):
    """One thing a stage read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str = Field(
        description="what it was to the stage: 'problems', 'start', 'parent:commerce'"
    )
    uri: str
    digest: str
    statement: str = Field(description="digest of its producer's statement, '' for a root")


class Output(BaseModel):
    """One thing a stage wrote."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str
    uri: str
    digest: str


class Statement(BaseModel):
    """What one stage did. Its digest is the sha256 of its canonical JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="'curate', 'sft/reasoning', 'rl/one' ...")
    settings: str = Field(description="canonical JSON of the stage's settings")
    code: tuple[str, ...] = Field(description="source digests that ran, in order of appearance")
    environment: str = Field(description="sha256 of the installed distributions and versions")
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    facts: dict[str, float | int | str] = Field(description="counts and results worth proving")


class ExecutionRecord(BaseModel):
    """One time a statement was made: not part of the chain, only for people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    execution: str
    stage: str
    statement: str
    started: float
    seconds: float
    cpu_seconds: float
    rows_in: int
    rows_out: int
    run_id: str = Field(description="MLflow run")
