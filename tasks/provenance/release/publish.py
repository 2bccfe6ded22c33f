"""Copy a release into a folder as the Hugging Face hub lays models out."""

from pathlib import Path

from data_schemas.artifacts import StoreRef
from data_schemas.reports import GateDecision
from tasks.errors import SettingsError
from tasks.provenance.lineage.base_model import find_base
from tasks.provenance.lineage.lookup import parse_model_uri
from tasks.provenance.lineage.registry import GATE_FILE
from tasks.store.files import copy_file
from tasks.store.manifest import MANIFEST

READABLE = 0o644


def publish_release(model: str, store: StoreRef, out: Path) -> str:
    """Copy a registered release into a new folder and return its name; see `publish`."""
    name, _, _ = parse_model_uri(model)
    publish(find_base(model, store).folder, out)
    return name


def publish(release: Path, out: Path) -> None:
    """Copy the files of a release, readable by everybody.

    The store's own list of files stays behind: beside `manifest.json` it is the same name to a
    disk that is blind to case.

    Raises:
        SettingsError: the folder holds no release, it did not pass its gate, or `out` has files.
    """
    gate = release / GATE_FILE
    if not gate.is_file():
        raise SettingsError(f"{release} is no release: it has no {GATE_FILE}")
    if not GateDecision.model_validate_json(gate.read_bytes()).released:
        raise SettingsError(
            f"{release} did not pass its gate, as its README.md says; publish a version that did"
        )
    if out.exists() and any(out.iterdir()):
        raise SettingsError(f"--out {out} has files; name a new folder")
    for file in sorted(path for path in release.rglob("*") if path.is_file()):
        name = file.relative_to(release)
        if str(name) == MANIFEST:
            continue
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        copy_file(file, out / name)
        (out / name).chmod(READABLE)
