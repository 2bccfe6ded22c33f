"""A published release, where neither its store nor MLflow is: what the folder itself proves.

    folder/model.safetensors ...      compared with the manifest of the release, by sha256
    folder/provenance/                statements of the whole chain (`lineage.publication`)

What `hf download` makes of it is accepted: links into a cache of blobs, the files of the hub and
its client, and a card that was edited on the hub, which the verdict names.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from data_schemas.audits import AuditReport
from data_schemas.reports import ReleaseManifest
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.audit.component_check import bom_problems
from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.provenance.audit.reading import Problem, UnreadableEvidence, hash_file, read_linked
from tasks.provenance.audit.release_check import OWN_FILES
from tasks.provenance.audit.target import Target
from tasks.provenance.audit.walk import known_signers, model_node, stage_nodes
from tasks.provenance.lineage.promotions import RELEASE
from tasks.provenance.lineage.publication import KEYS, SIGNATURE, is_own_form
from tasks.provenance.lineage.registry import BOM_FILE, CARD_FILE, MANIFEST_FILE
from tasks.provenance.lineage.signatures.keys import TrustedKeys
from tasks.provenance.lineage.signatures.model import (
    PROVENANCE,
    payload_signers,
    published_payload,
)
from tasks.store.files import sha256_bytes
from tasks.store.manifest import MANIFEST, is_of_the_hub, manifest_files, manifest_sizes

"""Files that the hub, its client or a clone adds; no loader reads them."""


def audit_published(folder: Path, keys: TrustedKeys | None = None) -> AuditReport:
    """Verify a folder that `eachprompt publish` wrote, wherever it is now.

    Args:
        folder: of the model's files.
        keys: from `read_public_keys`; one of them has to vouch for every statement. None = nobody
            has to.

    Raises:
        SettingsError: the folder is not there, or holds no statements.
        TamperError: no statement made the release whose list of files it holds.
    """
    place = folder.absolute() / PROVENANCE
    if not (place / "statements").is_dir():
        raise SettingsError(
            f"--folder {folder} has no {PROVENANCE}/statements. Name a folder that `eachprompt "
            "publish` wrote, or that was downloaded whole."
        )
    evidence = Evidence(str(place), keys, outside=False, published=True)
    root, digest, content = _release_in(place, evidence)
    listed, sizes = manifest_files(content, str(place)), manifest_sizes(content)
    evidence.visit(root)
    differences = dict(_differences(folder, listed, sizes))
    has_other_card = differences.pop(CARD_FILE, None) is not None
    for name, problem in differences.items():
        evidence.add(MODEL, name, problem)
    _check_signature(root, digest, listed, evidence)
    checkpoint = _check_manifest(folder, root, listed, evidence)
    _check_bill(folder, root, listed, evidence)
    for name in {*_names(place)} - {*_parts(evidence, digest, checkpoint)}:
        evidence.add(MODEL, f"{PROVENANCE}/{name}", "added after publication")
    nodes = (model_node(str(folder), Target(root, digest), evidence), *stage_nodes(evidence))
    sound = listed.keys() - differences.keys() - ({CARD_FILE} if has_other_card else set())
    return AuditReport(
        model=str(folder),
        version="",
        nodes=nodes,
        findings=tuple(finding for node in nodes for finding in node.findings),
        statements=len(evidence.statements) + len(evidence.damaged),
        objects=len(sound),
        raw_files=0,
        rehashed_bytes=evidence.rehashed_bytes + sum(sizes.get(name, 0) for name in sound),
        signers=known_signers(evidence),
        unsigned=len(evidence.damaged) + sum(not one for one in evidence.signers.values()),
        has_key=keys is not None,
        has_catalogue=False,
        published=_left_open(place, evidence, has_other_card=has_other_card),
    )


def _release_in(place: Path, evidence: Evidence) -> tuple[str, str, bytes]:
    """Find the statement of the release, its digest and its list of files."""
    lists = {}
    for path in sorted((place / "objects").glob(f"*/{MANIFEST}")):
        content = read_linked(str(path))
        lists[sha256_bytes(content)] = content
    results: list[tuple[str, str, bytes]] = []
    for name in _names(place / "statements"):
        statement = name.removesuffix(".json")
        attested = evidence.peek(statement)
        if attested is not None and attested.statement.stage == RELEASE:
            results += [
                (statement, output.digest, lists[output.digest])
                for output in attested.statement.outputs
                if output.digest in lists
            ]
    if len(results) != 1:
        raise TamperError(
            f"{place}: {len(results)} statements of a release made what {place}/objects lists, "
            "and one has to. The folder was changed or is not whole; download it again."
        )
    return results[0]


def _differences(
    folder: Path, listed: Mapping[str, str], sizes: Mapping[str, int]
) -> Iterator[Problem]:
    """Yield every file that is not as released."""
    present = {
        name
        for name in _names(folder)
        if name in listed or not (name.startswith(f"{PROVENANCE}/") or is_of_the_hub(name))
    }
    for name in sorted(present - listed.keys()):
        yield name, "added after publication"
    for name, sha256 in sorted(listed.items()):
        if name not in present:
            yield name, "removed after publication"
            continue
        try:
            # A cache of the hub holds links: the content is hashed, wherever it lies.
            result = hash_file((folder / name).resolve(), sizes.get(name))
        except UnreadableEvidence as error:
            yield name, str(error)
            continue
        if result != sha256:
            yield name, f"sha256 is {result}, released {sha256}"


def _check_signature(root: str, digest: str, listed: Mapping[str, str], evidence: Evidence) -> None:
    where = f"{PROVENANCE}/{SIGNATURE}"
    try:
        content = read_linked(f"{evidence.store}/{SIGNATURE}")
        signers = payload_signers(content, published_payload(digest, listed))
    except (UnreadableEvidence, TamperError) as error:
        evidence.add(root, where, str(error))
    else:
        evidence.check_signers(root, where, signers)


def _released(folder: Path, name: str, listed: Mapping[str, str]) -> bytes | None:
    """Read a file of the release; None where it differs, which is reported with the files."""
    try:
        content = read_linked(str(folder / name))
    except UnreadableEvidence:
        return None
    return content if sha256_bytes(content) == listed.get(name) else None


def _check_manifest(folder: Path, root: str, listed: Mapping[str, str], evidence: Evidence) -> str:
    """Compare the manifest with the chain, the files with its checkpoint; return its digest."""
    content = _released(folder, MANIFEST_FILE, listed)
    if content is None:
        return ""
    try:
        manifest = ReleaseManifest.model_validate_json(content)
    except ValidationError as error:
        evidence.add(root, MANIFEST_FILE, f"not a release manifest: {error}")
        return ""
    if not manifest.gate.released:
        evidence.add(root, MANIFEST_FILE, "its gate refused the model")
    for statement in manifest.statements:
        evidence.visit(statement)
    reached = evidence.statements.keys() | evidence.damaged
    for missing in sorted(reached - {*manifest.statements, root}):
        evidence.add(root, MANIFEST_FILE, f"does not list the statement {missing} of its chain")
    named = {*manifest.raw_files.values()}
    for origin, sha256 in evidence.raw_files.items():
        if sha256 not in named:
            evidence.add(root, MANIFEST_FILE, f"does not list the raw file {origin} {sha256}")
    _check_copy(root, listed, manifest.checkpoint, evidence)
    return manifest.checkpoint


def _check_bill(folder: Path, root: str, listed: Mapping[str, str], evidence: Evidence) -> None:
    """Every digest of the bill is one that a statement, the manifest or the files have."""
    bill, manifest = (_released(folder, name, listed) for name in (BOM_FILE, MANIFEST_FILE))
    if bill is None or manifest is None or any(evidence.findings.values()):
        return  # with parts unreadable, claims about them have no evidence
    raw_files = ReleaseManifest.model_validate_json(manifest).raw_files
    hashed = {*_artifacts(evidence), *raw_files.values(), *listed.values()}
    facts = evidence.statements[root].facts
    for problem in bom_problems(bill, hashed, evidence.statements, facts):
        evidence.add(root, BOM_FILE, problem)


def _check_copy(root: str, listed: Mapping[str, str], checkpoint: str, evidence: Evidence) -> None:
    """The weights are those of the checkpoint that the chain made."""
    name = f"objects/{checkpoint[:16]}/{MANIFEST}"
    try:
        content = read_linked(f"{evidence.store}/{name}")
        if sha256_bytes(content) != checkpoint or checkpoint not in _artifacts(evidence):
            raise TamperError("is not the list of files of a checkpoint of this chain")
        files = manifest_files(content, name)
    except DataError as error:
        evidence.add(root, f"{PROVENANCE}/{name}", str(error))
        return
    for file, sha256 in files.items():
        if listed.get(file) != sha256 and file not in OWN_FILES:
            evidence.add(root, file, f"is not the file of checkpoint {checkpoint}")


def _artifacts(evidence: Evidence) -> list[str]:
    """Digests of everything that the chain read and made."""
    return [
        item.digest for one in evidence.statements.values() for item in (*one.inputs, *one.outputs)
    ]


def _left_open(place: Path, evidence: Evidence, *, has_other_card: bool) -> str:
    """Say what the folder cannot prove."""
    own_form = sum(
        is_own_form(read_linked(f"{place}/statements/{digest}.json"))
        for digest in evidence.statements
    )
    parts = [
        f"the contents of {len({*_artifacts(evidence)})} artifacts and raw files behind it, which "
        "the statements name by sha256 and the publisher holds",
        "who ran the stages and when",
        "that it is the newest release",
    ]
    if own_form:
        parts.append(
            f"the places in {own_form} of the statements, signed once more with names instead"
        )
    if has_other_card:
        parts.append(f"{CARD_FILE}, which is not the card that was released")
    return "; ".join(parts)


def _parts(evidence: Evidence, digest: str, checkpoint: str) -> Iterator[str]:
    yield from (SIGNATURE, KEYS)
    yield from (f"objects/{one[:16]}/{MANIFEST}" for one in (digest, checkpoint))
    for statement in (*evidence.statements, *evidence.damaged):
        yield f"statements/{statement}.json"


def _names(folder: Path) -> list[str]:
    """List all files below a folder; a link is a file, whatever it leads to."""
    names: list[str] = []
    for current, folders, files in os.walk(folder):
        links = [name for name in folders if Path(current, name).is_symlink()]
        names += [Path(current, name).relative_to(folder).as_posix() for name in (*files, *links)]
    return sorted(names)
