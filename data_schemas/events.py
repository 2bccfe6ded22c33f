"""What a stage tells MLflow about itself, one record per line of its spool."""

import time
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from data_schemas.statements import Input


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
    """A version is the released one: again, or because enough people said yes to it."""

    kind: Literal["restore"] = "restore"
    name: str
    statement: str = Field(description="of the release that made the version")
    by: str = Field(default="rollback", description="what did it: 'rollback' or 'approve'")


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
