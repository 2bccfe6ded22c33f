"""What is audited: a registered model, an artifact by its digest, or a folder that holds one.

    models:/NAME@released, models:/NAME/3      found in MLflow, which is then compared as well
    3f2a9c01d4e5 (12 digits or more)           an artifact or a statement of the store
    runs/objects/3f2a..., s3://..., a copy     an artifact; its files are re-hashed where they lie

Only the first form needs MLflow.
"""

import re
from dataclasses import dataclass

from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.connection import OtherSchema
from tasks.provenance.lineage.lookup import Lookup, Version, parse_model_uri
from tasks.provenance.lineage.promotions import Promotion, number_of, promotions
from tasks.provenance.lineage.registry import MANIFEST_TAG, RELEASED
from tasks.provenance.lineage.releases import ALIASES, select
from tasks.store import location
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST

_DIGEST = re.compile(r"[0-9a-f]{12,64}")
_SCHEME = re.compile(r"(?!s3:)[a-z]+:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where an audit starts."""

    statement: str
    """Digest of the statement at the end of the chain."""
    digest: str
    """Hash of the artifact; '' if the statement made none."""
    version: Version | None = None
    """Registered model, if one was asked for."""
    lookup: Lookup | None = None
    """MLflow, if it is to be compared."""
    note: str = ""
    """What MLflow has lost."""
    copy: str = ""
    """Folder of the artifact, if one was asked for."""


def store_of(model: str, store: str) -> str:
    """Return the store that an artifact lies in, or else the one that was named.

    Raises:
        SettingsError: the name is empty, or of a scheme that is not supported.
    """
    folder, _, kind = model.rstrip("/").rpartition("/")[0].rpartition("/")
    return location.absolute_store(folder or "." if kind == "objects" else store)


def find_target(model: str, tracking_uri: str, evidence: Evidence) -> Target:
    """Find what was asked for.

    Raises:
        SettingsError: there is no such thing.
        TamperError: no statement made the artifact in a folder outside the store.
        EngineError: MLflow or the store does not answer.
    """
    if _SCHEME.match(model):
        return _registered(model, tracking_uri, evidence)
    if _DIGEST.fullmatch(model):
        return _find_by_digest(model, evidence)
    uri = location.absolute_store(model, "--model")
    if uri.startswith(f"{evidence.store}/objects/"):
        # The name says which artifact it was, whatever lies there now.
        return _find_by_digest(uri.rpartition("/")[2], evidence)
    try:
        manifest = read_record(f"{uri}/{MANIFEST}")
    except DataError as error:
        raise SettingsError(
            f"--model {model} is no artifact, {MANIFEST} is {error}. Name a folder or s3:// prefix "
            "that has one; or use models:/NAME@released, models:/NAME/3, or a digest."
        ) from error
    try:
        result = _find_by_digest(sha256_bytes(manifest), evidence)
    except SettingsError as error:
        raise TamperError(
            f"{uri}/{MANIFEST}: no statement of {evidence.store} made this artifact. It was "
            "changed, or its statements are elsewhere; name their store in --store."
        ) from error
    return Target(result.statement, result.digest, copy=uri)


def _find_by_digest(prefix: str, evidence: Evidence) -> Target:
    """Find the statement of a digest, or the one promoted last that made an artifact of it."""
    where = f"{evidence.store}/statements"
    names = [file.removesuffix(".json") for file in store_at(where).list_files()]
    results = {name: evidence.peek(name) for name in names}
    sound = {name: one.statement for name, one in results.items() if one is not None}
    targets = [
        Target(name, statement.outputs[0].digest if statement.outputs else "")
        for name, statement in sound.items()
        if name.startswith(prefix)
    ]
    if not targets:
        targets = [
            Target(name, output.digest)
            for name, statement in sound.items()
            for output in statement.outputs
            if output.digest.startswith(prefix)
        ]
    if not targets:
        raise SettingsError(
            f"no statement in {where} is {prefix} or made it. Correct the digest, or name the "
            "store of its statements in --store."
        )
    if len({target.digest for target in targets}) > 1:
        raise SettingsError(f"{prefix} begins several digests in {where}; give more of it")
    return max(targets, key=lambda one: (*_rank(one.statement, evidence), one.statement))


def _rank(digest: str, evidence: Evidence) -> tuple[bool, int]:
    """Order statements that made the same artifact: signed ones last, by promotion, not time."""
    attested = evidence.peek(digest)
    if attested is None:
        return False, 0
    is_vouched = any(evidence.vouches(one, digest) for one in attested.signers)
    return is_vouched, number_of(attested.statement)


def _registered(model: str, tracking_uri: str, evidence: Evidence) -> Target:
    """Find a release by the signed promotions, and what MLflow shows under the same name.

    Raises:
        SettingsError: neither has it.
    """
    name, alias, _ = parse_model_uri(model)
    history = promotions(name, evidence.store, evidence.keys)
    lookup, version, lost = None, None, ""
    try:
        lookup = Lookup(tracking_uri)
        version = lookup.version(model)
    except OtherSchema:
        raise  # nothing is lost or changed: MLflow reads it once it is upgraded
    except (SettingsError, DataError) as error:
        has_some = isinstance(error, SettingsError) and lookup and lookup.has_versions(name)
        if has_some and not (alias in ALIASES and history):
            raise
        lookup, lost = (lookup if has_some else None), str(error)
    promotion = select(alias if alias in ALIASES else RELEASED, history)
    if version is not None and (alias not in ALIASES or promotion is None):
        # Of a store whose version counted no promotions, MLflow alone says where the walk starts.
        statement, digest = _entry(version, evidence)
        return Target(statement, digest, version, lookup)
    if promotion is None:
        raise SettingsError(lost or f"{model}: nothing was released before the current version")
    if version is not None and version.tags.get("statement") != promotion.release:
        lost = (
            f"version {version.number} has the alias {alias!r}, but promotion "
            f"{promotion.number}, the last one, is of {promotion.release}"
        )
        version = lookup.registered(name, promotion.release) if lookup else None
    elif lost:
        lost = f"{lost} The newest release of {name} in the store was audited instead."
    if version is None:
        version = _version_of(name, promotion, evidence)
    return Target(promotion.release, promotion.checkpoint, version, lookup, lost)


def _version_of(name: str, promotion: Promotion, evidence: Evidence) -> Version:
    """Describe a release as MLflow would if it had not lost it."""
    attested = evidence.peek(promotion.release)
    facts = attested.statement.facts if attested else {}
    tags = {
        "statement": promotion.release,
        "sha256": promotion.checkpoint,
        MANIFEST_TAG: str(facts.get("manifest_sha256", "")),
    }
    return Version(name=name, number="unknown", aliases=(), tags=tags, model=None)


def _entry(version: Version, evidence: Evidence) -> tuple[str, str]:
    """Choose the start: the version's own tags, or its model's if those are unusable."""
    tags = [version.tags, *([version.model.tags] if version.model else [])]
    pairs = [(tag.get("statement", ""), tag.get("sha256", "")) for tag in tags]
    for statement, digest in pairs:
        producer = evidence.peek(statement)
        if producer and digest in {one.digest for one in producer.statement.outputs}:
            return statement, digest
    return pairs[0]
