"""Copy a release into a folder as the Hugging Face hub lays models out, with its proof.

What proves it (`tasks.provenance.lineage.publication`) lies in a folder of its own: beside
`manifest.json`, the store's `MANIFEST.json` is the same name to a disk that is blind to case.
"""

import base64
from collections.abc import Mapping
from pathlib import Path

from data_schemas.artifacts import StoreRef
from data_schemas.reports import GateDecision, ReleaseManifest
from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.text import vouchers
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.publication import KEYS, SIGNATURE, published_bytes
from tasks.provenance.lineage.registry import GATE_FILE, MANIFEST_FILE
from tasks.provenance.lineage.releases import Release, find_release
from tasks.provenance.lineage.shipping import workplace
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer, trusted_keys
from tasks.provenance.lineage.signatures.model import PROVENANCE, bundle_of, published_payload
from tasks.provenance.lineage.statements import open_statement, statement_uri
from tasks.store.files import copy_file, write_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files
from tasks.store.objects import localise

READABLE = 0o644
TEXTS = (".json", ".md", ".yaml", ".jinja", ".txt")
ALWAYS = (b"file:///",)
"""What no text names that goes to others, beside the folders of this run."""
_LARGEST_TEXT = 2**20
"""Bytes; a larger file is a vocabulary."""


def publish_release(model: str, store: StoreRef, out: Path) -> str:
    """Audit a release, copy it with its proof into a new folder and say what it is.

    The chain and its files are hashed again with the keys that this run trusts. Raw files outside
    of the store, which may be out of reach here, are left to `eachprompt audit`.

    Raises:
        SettingsError: as `publish` and `find_release`; there is no key to sign with; or a file of
            the release names a place of this machine.
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
    proof = proof_of(release, folder, store.uri)
    _check_places(folder, proof, store.uri)
    publish(folder, out)
    for name, content in proof.items():
        path = out / PROVENANCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
        path.chmod(READABLE)
    return f"release {release.folder.statement[:12]} of {release.name}. {vouchers(report)}"


def proof_of(release: Release, folder: Path, store: str) -> dict[str, bytes]:
    """Collect what verifies a release where its store is not, by name in the folder of the proof.

    Args:
        release: that is published.
        folder: of its verified files.
        store: uri it lies in.

    Raises:
        SettingsError: there is no key to sign with.
        DataError: a part of the chain is gone.
    """
    signer = find_signer(store)
    if signer is None:
        raise SettingsError(
            "a release is signed when it is published, and there is no key. Name its file in "
            f"{KEY_VARIABLE}."
        )
    manifest = ReleaseManifest.model_validate_json((folder / MANIFEST_FILE).read_bytes())
    proof: dict[str, bytes] = {}
    signers = [signer.public]
    for digest in (*manifest.statements, release.folder.statement):
        content = store_at(statement_uri(store, digest)).read_bytes()
        proof[f"statements/{digest}.json"] = published_bytes(content, digest, store)
        signers += open_statement(content, digest, store).signers
    for digest in (release.folder.digest, manifest.checkpoint):
        name = f"objects/{digest[:16]}/{MANIFEST}"
        proof[name] = store_at(f"{store}/{name}").read_bytes()
    listed = manifest_files((folder / MANIFEST).read_bytes(), str(folder))
    payload = published_payload(release.folder.digest, listed)
    proof[SIGNATURE] = bundle_of(dsse.seal(payload, [signer.sign(payload)]))
    # The first key is that of the signature: other verifiers read no further.
    keys = map(dsse.public_key, dict.fromkeys(signers))
    proof[KEYS] = b"".join(map(dsse.public_pem, keys))
    return proof


def _check_places(folder: Path, proof: Mapping[str, bytes], store: str) -> None:
    """Refuse to publish a text that names a place of this machine.

    Raises:
        SettingsError: names the file.
    """
    places = {str(Path(store).absolute()), str(Path.home()), str(Path.cwd())}
    known = [*ALWAYS, *(f"{place}/".encode() for place in places if place != "/")]
    texts = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in TEXTS and path.is_file() and path.stat().st_size <= _LARGEST_TEXT
    }
    texts |= {
        name: base64.b64decode(dsse.Envelope.model_validate_json(content).payload)
        for name, content in proof.items()
        if name.startswith("statements/")
    }
    for name, content in sorted(texts.items()):
        for place in known:
            if place in content:
                raise SettingsError(
                    f"{name} of the release names a place of this machine, "
                    f"{place.decode(errors='replace')}, and is not published. Release the model "
                    "again with this version."
                )


def publish(release: Path, out: Path) -> None:
    """Copy the files of a release, readable by everybody.

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
