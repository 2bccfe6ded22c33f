"""Where a base model comes from: the shipped one, a folder, S3, or a registered model."""

from dataclasses import dataclass
from pathlib import Path

from data_schemas.artifacts import CheckpointRef, StoreRef
from tasks.errors import DataError, SettingsError, TamperError
from tasks.interchange.model_folder import local_folder
from tasks.lineage.lookup import Lookup
from tasks.lineage.origins import object_uri
from tasks.lineage.shipping import workplace
from tasks.lineage.stage import StageRecord
from tasks.lineage.statements import load_statement
from tasks.store.copies import S3, fetch_folder
from tasks.store.objects import localise


@dataclass(frozen=True, slots=True)
class Origin:
    """A verified local folder with a model, and how the lineage names it."""

    folder: Path
    uri: str = ""
    """Of a model outside of the store; '' = that of the folder."""
    ref: CheckpointRef | None = None
    """Of a model in the store, whose lineage goes on."""

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
        store: of the run; its MLflow knows the registered models.

    Raises:
        SettingsError: nothing is there.
        TamperError: a registered model or an object differs from its statement or manifest.
        EngineError: S3 or MLflow does not answer.
    """
    folder = local_folder(path)
    if folder is not None:
        return Origin(folder)
    try:
        if path.startswith(S3):
            uri = path.rstrip("/")
            return Origin(fetch_folder(uri, workplace(store)), uri)
        return _registered(path, store)
    except TamperError:
        raise
    except DataError as error:
        raise SettingsError(f"base model {path}: {error}") from error


def _registered(path: str, store: StoreRef) -> Origin:
    """Follow a version of a registered model to the object that its statement names.

    Raises:
        DataError: this pipeline did not register it, or its statement is gone.
    """
    version = Lookup(store.tracking_uri).version(path)
    root, model = version.tags.get("statement", ""), version.model
    if not root or model is None:
        raise DataError("it names no statement, so that nothing proves its content")
    home, _, _ = model.tags["uri"].rpartition("/objects/")
    outputs = [item for item in load_statement(home, root).outputs if item.role == "model"]
    if not outputs:
        raise DataError(f"statement {root} names no model")
    uri, digest = object_uri(home, outputs[0].uri, outputs[0].digest), outputs[0].digest
    folder = localise(uri, digest, workplace(store))
    if home == store.uri:
        return Origin(folder, ref=CheckpointRef(uri=uri, digest=digest, statement=root))
    return Origin(folder, uri if uri.startswith(S3) else "")
