"""References passed between Flyte tasks: small, typed and keyed by content.

An artifact is a directory `<store>/objects/<digest[:16]>/` holding files and a
MANIFEST.json that lists every file with its sha256. The digest of the artifact is
the sha256 of that manifest. References carry the digest, so Flyte's cache key is
the content and not the path.
"""

import re
from typing import NamedTuple

from pydantic import Field

from data_schemas.frozen_model import FrozenModel

_ADDRESS = re.compile(r".+#[0-9a-f]{64}", re.DOTALL)


class CheckpointRef(FrozenModel):
    """A model directory in Hugging Face format (config, safetensors, tokenizer)."""

    uri: str = Field(description="absolute path or s3:// of the artifact directory")
    digest: str = Field(repr=False, description="sha256 of its MANIFEST.json")
    statement: str = Field(
        default="", repr=False, description="digest of the producer's statement; '' = root"
    )

    @property
    def address(self) -> str:
        """Return the text by which a setting names this model, content included."""
        return f"{self.uri}#{self.statement}"


def is_address(text: str) -> bool:
    """Return whether a setting names an artifact and its statement, not a folder."""
    return _ADDRESS.fullmatch(text) is not None


class CandidateRef(FrozenModel):
    """A model of a table of evaluations: one in the store, or one behind an endpoint."""

    name: str = Field(description="column of the table")
    address: str = Field(
        description="folder, s3:// prefix, models:/ uri or base URL of an endpoint; '' = shipped"
    )
    served_as: str = Field(
        default="", description="name under which the endpoint serves it; '' = no endpoint"
    )
    model: CheckpointRef | None = Field(default=None, description="None for an endpoint")
    precision: str = Field(
        default="", description="of its rollout engine; '' = that of the settings"
    )


class RawRef(FrozenModel):
    """A list of raw source files.

    A type of its own, as that of graded sets: neither Flyte nor the type checker takes one for rows
    that were curated. A mixture of a night is a curated set.
    """

    uri: str
    digest: str = Field(repr=False)
    statement: str = Field(default="", repr=False)


class GradedRef(FrozenModel):
    """A directory of problems with the pass rates of a model."""

    uri: str
    digest: str = Field(repr=False)
    statement: str = Field(default="", repr=False)


class DatasetRef(FrozenModel):
    """A directory of parquet tables: curated rows, or what is read beside them."""

    uri: str
    digest: str = Field(repr=False)
    statement: str = Field(default="", repr=False)


NO_DATASET, NOT_GRADED = DatasetRef(uri="", digest=""), GradedRef(uri="", digest="")
"""Passed on where nothing was curated or graded: Flyte feeds no optional value to a plain input."""


class ReportRef(FrozenModel):
    """A directory with a machine-readable report and the data it was computed from."""

    uri: str
    digest: str = Field(repr=False)
    statement: str = Field(default="", repr=False)


AnyRef = CheckpointRef | RawRef | DatasetRef | GradedRef | ReportRef


class StoreRef(FrozenModel):
    """The store all artifacts of a run live in.

    The id is generated when the store is created and is part of every cache key, so after a
    store is deleted, no cache hit can refer to objects that no longer exist.
    """

    uri: str
    id: str
    tracking_uri: str = Field(description="MLflow tracking URI")


STAGES = {
    "post_training": (
        *("ingest/base", "ingest", "curate", "sft/reasoning", "sft/commerce", "merge", "grade"),
        *("rl/one", "evaluate/rl/one", "rl/two", "evaluate/rl/two"),
        *("evaluate/base", "evaluate/sft/reasoning", "evaluate/sft/commerce", "evaluate/merged"),
        *("compare", "release"),
    )
}
"""Stages of a workflow that leave a record, in the order in which they run; what settings add to
them has no number."""


class Execution(FrozenModel):
    """One run of a workflow. Never part of a cache key."""

    id: str
    started: float = Field(description="Unix time, seconds")
    workflow: str = Field(default="", description="'post_training', 'retrain' ...")
    last: tuple[str, ...] = Field(
        default=(),
        description="tasks after which it is over; () = when none of its stages runs any more",
    )


class Context(NamedTuple):
    """Where a stage works: what every stage of a workflow is handed on.

    In the body of a workflow both parts are promises.
    """

    store: StoreRef
    execution: Execution
