"""What stages sign and say of their work, and what is answered from it: audits and row lineage."""

import time
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from data_schemas.texts import OneLine

# Which stage made which outputs from which inputs: one link of the lineage chain.
#
# On disk a statement is an in-toto Statement in a signed envelope (see
# `tasks.provenance.lineage.attestation`). It holds only what is a function of code, settings and
# inputs, so a stage that is run again on the same inputs writes the same bytes. When it ran, on
# which machine and for how long is in the ExecutionRecord.


class Input(BaseModel):
    """One input of a stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str = Field(description="its role in the stage: 'problems', 'start', 'parent:commerce'")
    uri: str
    digest: str
    statement: str = Field(description="digest of its producer's statement, '' for a root")


class Output(BaseModel):
    """One output of a stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str
    uri: str
    digest: str


class Statement(BaseModel):
    """What one stage did. Its digest is the sha256 of the in-toto Statement it is stored as."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class ExecutionRecord(BaseModel):
    """One execution that produced a statement: for people, not part of the chain."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class Tombstone(BaseModel):
    """A model that was deleted on purpose; lies signed in the store in its place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str = Field(description="of the object")
    uri: str
    stage: str = Field(description="that made it")
    statement: str = Field(description="digest of the statement of that stage")
    bytes: int
    used: float = Field(description="when it was made, or last read; seconds since 1970")
    deleted: float
    kept: str = Field(description="what was kept: 'released,previous,30d'")
    store: str = Field(default="", description="id of the store; '' of an earlier version")


# What a stage tells MLflow about itself, one record per line of its spool.


class _Event(BaseModel):
    # Curves hold NaN and infinity, which plain JSON cannot express.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    time: float = Field(default_factory=time.time, description="Unix time, seconds")


class ExecutionStarted(_Event):
    """An execution of a workflow begins; the runs of its stages are nested in its own."""

    kind: Literal["execution"] = "execution"
    tags: dict[str, str]


class ExecutionEnded(_Event):
    """An execution of a workflow has ended, and how, in a sentence."""

    kind: Literal["ended"] = "ended"
    message: str = Field(description="'' = nothing to add to what its stages say")
    task: str = Field(default="", description="that ended it, one of its last; '' = all of it")


class StageStarted(_Event):
    """A run of the stage begins, or begins again."""

    kind: Literal["start"] = "start"
    stage: str
    params: dict[str, str] = Field(description="every setting by its dotted name")
    tags: dict[str, str]


class ArtifactLinked(_Event, Input):
    """The stage read or made an artifact."""

    kind: Literal["input", "output"]
    type: str = Field(description="of the reference; a CheckpointRef is a model to MLflow")
    name: str = Field(description="of the model or dataset in MLflow")
    parents: tuple[str, ...] = Field(description="digests that an output was made from")


class MetricsLogged(_Event):
    """Points of curves."""

    kind: Literal["metrics"] = "metrics"
    step: int
    values: dict[str, float]


class FactsCounted(_Event):
    """What the stage counted."""

    kind: Literal["facts"] = "facts"
    values: dict[str, float | int | str]
    model: str = Field(default="", description="digest of the checkpoint they describe; '' = none")
    model_statement: str = Field(default="", description="of the stage that made it")
    of_execution: bool = Field(default=False, description="shown by the run of the execution, too")


class FileAttached(_Event):
    """A file of the store belongs to the artifacts of the run."""

    kind: Literal["file"] = "file"
    uri: str
    name: str = Field(description="among the artifacts")
    to_execution: bool = Field(default=False, description="to the run of the execution instead")


class ModelRegistered(_Event):
    """An output becomes a version of a registered model."""

    kind: Literal["register"] = "register"
    name: str
    uri: str
    digest: str
    statement: str
    released: bool = Field(description="it passed the gate")
    replaces: str = Field(
        default="", description="statement of the version it may replace; '' = any or none"
    )
    tags: dict[str, str]
    description: str = Field(default="", description="of the version: the model card")


class VersionRestored(_Event):
    """A version that was released before is the released one again."""

    kind: Literal["restore"] = "restore"
    name: str
    statement: str = Field(description="of the release that made the version")


class StageFinished(_Event):
    """The run ends, with or without an error."""

    kind: Literal["finish"] = "finish"
    status: Literal["FINISHED", "FAILED", "KILLED"]
    tags: dict[str, str] = {}


Event = (
    ExecutionStarted
    | ExecutionEnded
    | StageStarted
    | ArtifactLinked
    | MetricsLogged
    | FactsCounted
    | FileAttached
    | ModelRegistered
    | VersionRestored
    | StageFinished
)
EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


# Result of an audit: the lineage of a registered model back to its raw files.


class NodeKind(StrEnum):
    """Kind of a node in the lineage chain."""

    MODEL = "model"
    """The registered version in MLflow."""
    STAGE = "stage"
    """A statement with the objects it made."""
    ORIGIN = "origin"
    """External files, where the chain ends."""


class Finding(BaseModel):
    """One difference between what is stored and what was recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    object: OneLine = Field(description="file, statement, MLflow run, model or version it is about")
    problem: OneLine


class AuditNode(BaseModel):
    """One node of the chain and the objects re-hashed for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: NodeKind
    title: OneLine
    details: tuple[tuple[OneLine, OneLine], ...] = Field(
        description="(name, value) pairs; digests in full"
    )
    parents: tuple[str, ...] = Field(description="ids of the nodes it was made from")
    findings: tuple[Finding, ...]


class SignerCount(BaseModel):
    """A key and how much it signed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str = Field(description="sha256 of the public key in DER")
    statements: int
    known: bool = Field(description="it is one of the auditor's keys")


class AuditReport(BaseModel):
    """The audit result for one model or other artifact."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    stamped: OneLine = Field(default="", description="when the promotion existed, and who says so")
    pages: str = Field(default="not compared", description="of reports and phases, as signed")
    executions: str = Field(default="not compared", description="records of who ran the chain")
    has_catalogue: bool = Field(description="MLflow was compared with the statements")
    has_key: bool = Field(description="the auditor named the keys that have to vouch for it")

    @property
    def proved(self) -> bool:
        """True if everything is as recorded, down to the raw files."""
        return not self.findings


# Answers of row lineage: what a row touched, what made a release, what two releases differ in.


class TracedCheckpoint(BaseModel):
    """One checkpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    statement: str
    checkpoint: str = Field(description="digest")
    release: str = Field(default="", description="name of the registered model; '' = no release")
    version: str = ""
    passed: bool = Field(default=False, description="the gate of the release")


class RawRowPlace(BaseModel):
    """Where a raw row lies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uri: str = Field(description="of the raw file, as it was ingested")
    file: str = Field(description="sha256")
    number: int = Field(description="of the row in its file, from 1")


class RowOutcome(BaseModel):
    """What curation or grading made of a raw row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    artifact: str = Field(description="digest of the curated or graded set")
    item: str
    kind: str = Field(description="'problem', 'demonstration', 'held out', 'row', 'decision'")
    source_row: str
    source: str
    reason: str = Field(
        default="", description="why it was left out, or what people decided; '' = it was kept"
    )
    detail: str = ""


class StageUse(BaseModel):
    """What one stage did with the rows that were asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    statement: str
    checkpoint: str
    outcome: str = Field(description="a GroupOutcome, 'demonstration' or 'validation'")
    rows: int
    steps: tuple[int, ...] = Field(description="of RL; empty for fine-tuning")
    times: int = Field(description="rollouts, or epochs of fine-tuning")
    tokens: int = Field(description="trained by RL")
    advantage: float = Field(description="sum of |advantage| over these tokens")
    trained: bool = Field(description="it changed weights")


class TrainedRow(BaseModel):
    """A row that trained a model, summed over all stages behind it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_row: str
    item: str
    source: str
    stages: int
    times: int
    tokens: int
    advantage: float


class RowTrace(BaseModel):
    """Everything that some raw rows touched."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: str
    rows: int = Field(description="distinct raw rows")
    places: tuple[RawRowPlace, ...] = Field(description="the first of them")
    outcomes: tuple[RowOutcome, ...] = Field(description="the first of them")
    uses: tuple[StageUse, ...]
    evaluations: tuple[str, ...] = Field(description="statements that were measured with them")
    checkpoints: tuple[TracedCheckpoint, ...] = Field(
        description="whose weights they changed, in order"
    )


class ModelTrace(BaseModel):
    """Which rows made a model, and what was made from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: TracedCheckpoint
    rows: int = Field(description="distinct raw rows that trained it")
    uses: tuple[StageUse, ...] = Field(description="per stage behind it and outcome")
    top: tuple[TrainedRow, ...] = Field(description="the rows with the largest advantage")
    table: str = Field(description="all of them as CSV; '' if the store cannot be written")
    made_of: tuple[TracedCheckpoint, ...]
    made_from: tuple[TracedCheckpoint, ...]


class Retraining(BaseModel):
    """How to train a release anew without the withdrawn rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: str = Field(description="name of the registered model")
    settings: str = Field(description="file for `post_training --settings`; '' = see `reason`")
    reason: str = Field(default="", description="why there is no such file")


class WithdrawalImpact(BaseModel):
    """What has to go because of rows that are withdrawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    named: int = Field(description="rows that were named")
    unknown: tuple[str, ...] = Field(description="of these, those that this store never read")
    duplicates: tuple[str, ...] = Field(
        description="other rows that say the same; one of each kind is kept, so all are withdrawn"
    )
    similar: tuple[str, ...] = Field(
        description="near duplicates, which are not withdrawn: people decide"
    )
    exclusions: str = Field(description="file with the exclusion list")
    rows: int = Field(description="on the list, with those of earlier lists")
    trace: RowTrace
    retrainings: tuple[Retraining, ...] = Field(description="of every affected released name")

    @property
    def releases(self) -> tuple[TracedCheckpoint, ...]:
        """Return the releases that must go."""
        return tuple(one for one in self.trace.checkpoints if one.release)


class Difference(BaseModel):
    """One value that two releases do not have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="'rl/one', or 'rl/retrain 2' for its second run; '' = of all")
    name: str
    before: str = Field(description="'' = it has none")
    after: str


class ReleaseComparison(BaseModel):
    """What two checkpoints or releases differ in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: TracedCheckpoint
    after: TracedCheckpoint
    rows_before: int
    rows_after: int
    added: int = Field(description="rows that trained the second only, per item")
    removed: int
    changed: int = Field(description="rows that trained both, to another extent")
    table: str = Field(description="these rows as CSV; '' if the store cannot be written")
    data: tuple[Difference, ...] = Field(description="raw files")
    code: tuple[Difference, ...] = Field(description="stages, source digests and environments")
    settings: tuple[Difference, ...] = Field(description="of the stages that both have")
    rewards: tuple[Difference, ...] = Field(description="reward settings, and use per verifier")
    evaluation: tuple[Difference, ...]
