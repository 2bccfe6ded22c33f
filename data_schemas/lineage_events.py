"""What a stage tells MLflow about itself, one record per line of its spool."""

import time
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from data_schemas.statements import Input


class _Event(BaseModel):
    # Curves hold NaN and infinity, which plain JSON cannot express.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    time: float = Field(default_factory=time.time, description="Unix time, seconds")


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


class ModelRegistered(_Event):
    """An output becomes a version of a registered model."""

    kind: Literal["register"] = "register"
    name: str
    uri: str
    digest: str
    statement: str
    released: bool = Field(description="it passed the gate")
    tags: dict[str, str]
    description: str = Field(default="", description="of the version: the model card")


class StageFinished(_Event):
    """The run ends, with or without an error."""

    kind: Literal["finish"] = "finish"
    status: Literal["FINISHED", "FAILED", "KILLED"]
    tags: dict[str, str] = {}


Event = (
    StageStarted | ArtifactLinked | MetricsLogged | FactsCounted | ModelRegistered | StageFinished
)
EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])
