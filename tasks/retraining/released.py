"""The released model, and the data it was trained and evaluated on."""

from dataclasses import dataclass

from data_schemas.artifacts import CheckpointRef, DatasetRef
from data_schemas.statements import Statement
from tasks.errors import DataError
from tasks.provenance.lineage.registry import RELEASED
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.statements import chain


@dataclass(frozen=True, slots=True)
class ReleasedModel:
    """The start of a retraining."""

    statement: str
    model: CheckpointRef
    """The checkpoint that was released, without card and manifest."""
    curated: tuple[DatasetRef, ...]
    """Everything curated on the way to it, oldest first; then what nights mixed of it."""
    held_out: DatasetRef
    """The set that contains its whole held-out set: of its last mixture, else of curation."""


def find_released(name: str, tracking_uri: str, store: str) -> ReleasedModel:
    """Find what the signed statements of the store say is released.

    Raises:
        SettingsError: nothing was released under that name.
        DataError: what was released has no chain in this store.
        EngineError: the store does not answer.
    """
    about = f"models:/{name}@{RELEASED}"
    release = find_release(about, store, tracking_uri)
    root, newest = release.folder.statement, release.checkpoint
    statements = chain(store, [root])
    curated = _outputs(statements, "curate")
    if newest is None or not curated:
        raise DataError(f"{about}: its chain holds no candidate or no curated rows. Run the audit.")
    mixed = _outputs(statements, "mix")
    held_out = [*curated[:1], *mixed][-1]
    return ReleasedModel(
        statement=root, model=newest, curated=(*curated, *mixed), held_out=held_out
    )


def _outputs(statements: dict[str, Statement], stage: str) -> tuple[DatasetRef, ...]:
    return tuple(
        DatasetRef(uri=output.uri, digest=output.digest, statement=digest)
        for digest, statement in statements.items()
        if statement.stage == stage
        for output in statement.outputs
    )
