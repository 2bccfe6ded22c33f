"""Copy a release into a folder as the Hugging Face hub lays models out."""

from pathlib import Path

from data_schemas.artifacts import StoreRef
from data_schemas.reports import GateDecision
from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.text import vouchers
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.registry import GATE_FILE
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.shipping import workplace
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.store.files import copy_file
from tasks.store.manifest import MANIFEST
from tasks.store.objects import localise

READABLE = 0o644


def publish_release(model: str, store: StoreRef, out: Path) -> str:
    """Audit a release, copy it into a new folder and say what it is.

    The chain and its files are hashed again with the keys that this run trusts. Raw files outside
    of the store, which may be out of reach here, are left to `eachprompt audit`.

    Raises:
        SettingsError: as `publish` and `find_release`.
        TamperError: the audit found something.
    """
    release = find_release(model, store.uri, store.tracking_uri)
    keys = trusted_keys(store.uri) or None
    report = audit(release.folder.statement, "", store.uri, keys, outside=False)
    if report.findings:
        first = report.findings[0]
        raise TamperError(
            f"{model} is not published, its audit has {len(report.findings)} findings, first "
            f"{first.object}: {first.problem}. All of them: eachprompt audit --model {model} "
            f"--store {store.uri}"
        )
    folder = localise(release.folder.uri, release.folder.digest, workplace(store))
    publish(folder, out)
    return f"release {release.folder.statement[:12]} of {release.name}. {vouchers(report)}"


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
