"""Where a model comes from: the shipped one, a folder, S3, a registered model, or the store.

A setting that names a folder says nothing about its content. Judges and the screening model are
therefore copied into the store before the cached stages, whose settings then name the artifact and
its statement: `runs/objects/3f2a9c01d4e55b70#<digest of the statement>`.
"""

from dataclasses import dataclass
from pathlib import Path

from data_schemas.artifacts import CheckpointRef, StoreRef, is_address
from tasks.errors import DataError, SettingsError, TamperError
from tasks.models.architectures import refuse_foreign_code
from tasks.models.model_folder import local_folder
from tasks.provenance.lineage.origins import object_uri
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.shipping import workplace
from tasks.provenance.lineage.stage import StageRecord
from tasks.provenance.lineage.statements import load_statement
from tasks.store.copies import S3, fetch_folder
from tasks.store.objects import localise


@dataclass(frozen=True, slots=True)
class Origin:
    """A verified local folder with a model, and how the lineage names it."""

    folder: Path
    uri: str = ""
    """Address of a model outside of the store; '' = that of the folder."""
    ref: CheckpointRef | None = None
    """Reference of a model in the store, whose lineage goes on."""

    def record(self, record: StageRecord) -> None:
        """Record the model as an input of a stage."""
        if self.ref is not None:
            record.read("origin", self.ref)
        else:
            record.source("origin", self.folder, self.uri)


def find_base(path: str, store: StoreRef) -> Origin:
    """Find a base model and copy it to this machine if it is elsewhere.

    Args:
        path: a folder, s3://bucket/prefix, models:/NAME@alias, models:/NAME/3, or ''.
        store: of the run, in which a registered model was released.

    Raises:
        SettingsError: nothing is there.
        TamperError: a registered model or an object is not what trusted statements say.
        EngineError: S3 or MLflow does not answer.
    """
    folder = local_folder(path)
    if folder is not None:
        if folder.resolve().is_relative_to(Path(store.uri, "objects").resolve()):
            raise SettingsError(
                f"base model {path} is an object of the store, and its path says nothing about "
                "what made it. Name it models:/NAME@released or models:/NAME/3, or copy the folder."
            )
        return Origin(folder)
    try:
        if path.startswith(S3):
            uri = path.rstrip("/")
            return Origin(fetch_folder(uri, workplace(store)), uri)
        release = find_release(path, store.uri, store.tracking_uri).folder
        folder = localise(release.uri, release.digest, workplace(store))
        return Origin(folder, ref=release)
    except TamperError:
        raise
    except DataError as error:
        raise SettingsError(f"base model {path}: {error}") from error


def read_model(role: str, address: str, record: StageRecord) -> Path:
    """Return the local folder of a model that a setting names, and record it as an input.

    Args:
        role: of the input.
        address: of an artifact of the store; or a folder, which is recorded by content.
        record: of the stage.

    Raises:
        SettingsError: a folder names code that opens it and is not of this project.
    """
    if is_address(address):
        return record.read(role, _model_of(record.store.uri, address.rpartition("#")[2]))
    folder = Path(address).expanduser().resolve()
    refuse_foreign_code(folder)
    return record.source(role, folder)


def _model_of(home: str, statement: str) -> CheckpointRef:
    """Return the model that a statement of the store at `home` names.

    Raises:
        DataError: it names none, or is gone.
    """
    outputs = [item for item in load_statement(home, statement).outputs if item.role == "model"]
    if not outputs:
        raise DataError(f"statement {statement} names no model")
    uri, digest = object_uri(home, outputs[0].uri, outputs[0].digest), outputs[0].digest
    return CheckpointRef(uri=uri, digest=digest, statement=statement)
