"""Which stage made which outputs from which inputs: one link of the lineage chain.

On disk a statement is an in-toto Statement in a signed envelope (see
`tasks.provenance.lineage.attestation`). It holds only what is a function of code, settings and
inputs, so a stage that is run again on the same inputs writes the same bytes. When it ran, on
which machine and for how long is in the ExecutionRecord.
"""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel


class Input(FrozenModel):
    """One input of a stage."""

    role: str = Field(description="its role in the stage: 'problems', 'start', 'parent:commerce'")
    uri: str
    digest: str
    statement: str = Field(description="digest of its producer's statement, '' for a root")


class Output(FrozenModel):
    """One output of a stage."""

    role: str
    uri: str
    digest: str


class Statement(FrozenModel):
    """What one stage did. Its digest is the sha256 of the in-toto Statement it is stored as."""

    stage: str = Field(description="'curate', 'sft/reasoning', 'rl/one' ...")
    settings: str = Field(description="canonical JSON of the stage's settings")
    code: tuple[str, ...] = Field(
        description="digests of the source that ran, in order of first use"
    )
    environment: str = Field(description="sha256 of the installed distributions and versions")
    lock: str = Field(
        default="", description="sha256 of the lock file they come from, '' if they agree with none"
    )
    container: str = Field(default="", description="image the stage ran in, '' outside a pod")
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    facts: dict[str, float | int | str] = Field(description="counts and results worth proving")


class ExecutionRecord(FrozenModel):
    """One execution that produced a statement: for people, not part of the chain."""

    execution: str
    stage: str
    statement: str
    started: float
    seconds: float
    cpu_seconds: float
    gpus: int = Field(default=0, description="its pods reserved; 0 outside of a cluster")
    rows_in: int
    rows_out: int
    run_id: str = Field(description="MLflow run")
    tags: dict[str, str] = Field(default={}, description="of the MLflow run when it began")

    @property
    def gpu_seconds(self) -> float:
        """Seconds times the GPUs that it reserved."""
        return self.seconds * self.gpus


class Tombstone(FrozenModel):
    """A model that was deleted on purpose; lies signed in the store in its place."""

    digest: str = Field(description="of the object")
    uri: str
    stage: str = Field(description="that made it")
    statement: str = Field(description="digest of the statement of that stage")
    bytes: int
    used: float = Field(description="when it was made, or last read; seconds since 1970")
    deleted: float
    kept: str = Field(description="what was kept: 'released,previous,30d'")
    store: str = Field(default="", description="id of the store; '' of an earlier version")
