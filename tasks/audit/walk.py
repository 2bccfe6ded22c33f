"""From the alias in MLflow back to the raw files, re-hashing everything on the way.

    version -> its statement -> the statements that one names -> ... -> external files

The statement chain is the evidence; MLflow is the start of the walk and is cross-checked at
the end. If MLflow was lost, the walk starts at the newest release in the store. The release
manifest lists the whole chain, so a damaged statement does not hide its ancestors. The audit
proves that nothing changed since it was recorded. Only the auditor's own copy of the public key
proves who recorded it: with write access to store and MLflow, the whole chain can be replaced.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from data_schemas.audits import AuditNode, AuditReport, Finding, NodeKind, Signer
from data_schemas.statements import Statement
from tasks.audit.catalogue_check import check_catalogue, check_version
from tasks.audit.evidence import MODEL, Evidence, origin_id
from tasks.audit.lost import newest_release
from tasks.audit.release_check import check_release
from tasks.errors import DataError, SettingsError
from tasks.lineage.lookup import Lookup, Version, parse_model_uri
from tasks.lineage.signing import fingerprint


def audit(
    model_uri: str, tracking_uri: str, store: str, keys: Mapping[str, str] | None = None
) -> AuditReport:
    """Verify a registered model, or report every difference from the record.

    Args:
        model_uri: 'models:/NAME@released' or 'models:/NAME/3'.
        tracking_uri: of MLflow.
        store: folder or s3:// uri the artifacts lie in.
        keys: from `read_public_keys`; one of them has to vouch for every statement. None = nobody
            has to.

    Raises:
        SettingsError: there is no such model.
        EngineError: MLflow or the store does not answer.
    """
    evidence = Evidence(store, keys)
    version, lookup, lost = _find(model_uri, tracking_uri, evidence)
    root, digest = _entry(version, evidence)
    evidence.visit(root)
    check_release(version, root, digest, evidence)
    if lost:
        evidence.add(MODEL, "MLflow", lost)
    elif lookup is not None:
        for node, finding in (
            *check_version(lookup, MODEL, version, root, evidence.statements),
            *check_catalogue(lookup, evidence.statements),
        ):
            evidence.findings[node].append(finding)
    nodes = (_model_node(version, root, evidence), *_nodes(evidence))
    return AuditReport(
        model=model_uri,
        version=version.number,
        nodes=nodes,
        findings=tuple(finding for node in nodes for finding in node.findings),
        statements=len(evidence.statements) + len(evidence.damaged),
        objects=len(evidence.objects),
        raw_files=len(evidence.raw_files),
        rehashed_bytes=evidence.rehashed_bytes,
        signers=_signers(evidence),
        unsigned=len(evidence.damaged) + sum(not one for one in evidence.signers.values()),
        has_key=keys is not None,
    )


def _signers(evidence: Evidence) -> tuple[Signer, ...]:
    counts = Counter(key for signers in evidence.signers.values() for key in signers)
    return tuple(
        Signer(fingerprint=fingerprint(key), statements=count, known=key in (evidence.keys or {}))
        for key, count in counts.most_common()
    )


def _find(
    model_uri: str, tracking_uri: str, evidence: Evidence
) -> tuple[Version, Lookup | None, str]:
    """Find the version in MLflow or, if MLflow lost all of this model, its newest release.

    Returns:
        The version, MLflow, and what is lost; one of the last two is empty.

    Raises:
        SettingsError: neither MLflow nor the store has such a model.
        EngineError: MLflow does not answer.
    """
    name = parse_model_uri(model_uri)[0]
    lookup = None
    try:
        lookup = Lookup(tracking_uri)
        return lookup.version(model_uri), lookup, ""
    except (SettingsError, DataError) as error:
        if isinstance(error, SettingsError) and lookup is not None and lookup.has_versions(name):
            raise
        release = newest_release(name, evidence)
        if release is None:
            raise
        lost = f"{error} The newest release of {name} in the store was audited instead."
        return release, None, lost


def _entry(version: Version, evidence: Evidence) -> tuple[str, str]:
    """Choose the start: the version's own tags, or its model's if those are unusable."""
    tags = [version.tags, *([version.model.tags] if version.model else [])]
    named = [(tag.get("statement", ""), tag.get("sha256", "")) for tag in tags]
    for statement, digest in named:
        made = evidence.peek(statement)
        if made and digest in {output.digest for output in made.outputs}:
            return statement, digest
    return named[0]


def _model_node(version: Version, root: str, evidence: Evidence) -> AuditNode:
    details = [
        ("aliases", ", ".join(version.aliases) or "none"),
        ("logged model", version.model.id if version.model else "gone"),
        *sorted(version.tags.items()),
    ]
    return AuditNode(
        id=MODEL,
        kind=NodeKind.MODEL,
        title=f"{version.name} version {version.number}",
        details=tuple(details),
        parents=(root,),
        findings=tuple(evidence.findings[MODEL]),
    )


def _nodes(evidence: Evidence) -> list[AuditNode]:
    """Stages from the release back, each followed by the external files it read."""
    readers = defaultdict(list)
    nodes: list[AuditNode] = []
    for digest, statement in reversed(evidence.statements.items()):
        outside = [origin_id(digest)] if evidence.origins.get(digest) else []
        producers = [item.statement for item in statement.inputs if item.statement]
        for producer in producers:
            readers[producer].append(statement.stage)
        details = [
            ("statement", digest),
            *((f"made {output.role}", output.digest) for output in statement.outputs),
            *((f"read {item.role}", item.digest) for item in statement.inputs),
            *(("code", code) for code in statement.code),
            ("environment", statement.environment),
            *((name, value) for name, value in _builder(statement) if value),
            ("signed by", ", ".join(map(fingerprint, evidence.signers[digest])) or "nobody"),
            ("settings", statement.settings),
            *((name, str(value)) for name, value in statement.facts.items()),
        ]
        nodes.append(
            AuditNode(
                id=digest,
                kind=NodeKind.STAGE,
                title=statement.stage,
                details=tuple(details),
                parents=(*dict.fromkeys(producers), *outside),
                findings=tuple(evidence.findings[digest]),
            )
        )
        if outside:
            nodes.append(_origin_node(digest, evidence))
    nodes += [
        AuditNode(
            id=digest,
            kind=NodeKind.STAGE,
            title="damaged statement",
            details=(("statement", digest), ("read by", ", ".join(readers[digest]))),
            parents=(),
            findings=tuple(evidence.findings[digest]),
        )
        for digest in sorted(evidence.damaged)
    ]
    return nodes


def _builder(statement: Statement) -> tuple[tuple[str, str], ...]:
    return ("lock", statement.lock), ("container", statement.container)


def _origin_node(digest: str, evidence: Evidence) -> AuditNode:
    files = evidence.origins[digest]
    findings: list[Finding] = evidence.findings[origin_id(digest)]
    return AuditNode(
        id=origin_id(digest),
        kind=NodeKind.ORIGIN,
        title=f"{len(files)} raw file{'s' * (len(files) != 1)}",
        details=tuple(files),
        parents=(),
        findings=tuple(findings),
    )
