"""From a model back to the raw files, re-hashing everything on the way.

    version or artifact -> its statement -> the statements that one names -> ... -> external
    files

The statement chain is the evidence. For a registered model, MLflow is the start of the walk and
is cross-checked at the end; if it was lost, the walk starts at the newest release in the store.
The release manifest lists the whole chain, so a damaged statement does not hide its ancestors.

The audit proves that nothing changed since it was recorded. Only the auditor's own copy of the
public key proves who recorded it: with write access to store and MLflow, the whole chain can be
replaced.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from cryptography.x509 import Certificate

from data_schemas.audits import AuditNode, AuditReport, Finding, NodeKind, SignerCount
from data_schemas.statements import Statement
from tasks.errors import DataError
from tasks.provenance.audit.catalogue_check import check_catalogue, check_page, check_version
from tasks.provenance.audit.evidence import MODEL, Evidence, origin_id
from tasks.provenance.audit.execution_check import check_executions
from tasks.provenance.audit.page_check import check_pages
from tasks.provenance.audit.reading import check_folder, read_record
from tasks.provenance.audit.release_check import approvers, check_release
from tasks.provenance.audit.stamp_check import check_stamp
from tasks.provenance.audit.store_check import check_place, check_store
from tasks.provenance.audit.target import Target, find_target
from tasks.provenance.lineage.registry import CARD_FILE
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.keys import TrustedKeys, keys_of
from tasks.store.files import sha256_bytes
from tasks.store.local import STORE_MARK
from tasks.store.location import identity


def audit(
    model: str,
    tracking_uri: str,
    store: str,
    keys: TrustedKeys | None = None,
    authorities: Sequence[Certificate] = (),
    *,
    outside: bool = True,
) -> AuditReport:
    """Verify a model or any other artifact, or report every difference from the record.

    Args:
        model: registered model, digest, or folder; see `tasks.provenance.audit.target`.
        tracking_uri: of MLflow; it is asked for registered models only.
        store: folder or s3:// uri the artifacts lie in.
        keys: from `read_public_keys`; one of them has to vouch for every statement. None = nobody
            has to.
        authorities: certificates of time stamp services; one of them has to vouch for the time of
            a promotion; () = no time is read.
        outside: hash the raw files that lie outside of the store as well.

    Raises:
        SettingsError: there is no such model or artifact.
        EngineError: MLflow or the store does not answer.
    """
    own = keys_of(store, keys) if keys else keys
    evidence = Evidence(store, own, outside=outside)
    if keys and not own:
        homes = " or ".join(sorted({key.store for key in keys.values()}))
        problem = f"has the id {identity(store)}, and the keys of --key vouch in {homes} only"
        evidence.add(MODEL, f"{store}/{STORE_MARK}", problem)
    target = find_target(model, tracking_uri, evidence)
    evidence.visit(target.statement)
    if target.copy:
        for where, problem in check_folder(target.copy, target.digest):
            evidence.add(MODEL, where, problem)
    check_release(target, evidence)
    check_store(evidence)
    check_place(evidence)
    executions = check_executions(evidence, target.lookup)
    pages = check_pages(evidence)
    approved = approvers(target, evidence)
    stamped = check_stamp(target, evidence, authorities)
    if target.note:
        evidence.add(MODEL, "MLflow", target.note)
    if target.lookup is not None and target.version is not None:
        for node, finding in (
            *check_version(
                target.lookup, MODEL, target.version, target.statement, evidence.statements
            ),
            *_page(target, evidence),
            *check_catalogue(target.lookup, evidence.statements),
        ):
            evidence.findings[node].append(finding)
    nodes = (model_node(model, target, evidence), *stage_nodes(evidence))
    return AuditReport(
        model=model,
        version=target.version.number if target.version else "",
        nodes=nodes,
        findings=tuple(finding for node in nodes for finding in node.findings),
        statements=len(evidence.statements) + len(evidence.damaged),
        objects=len(evidence.objects) - len(evidence.buried),
        buried=len(evidence.buried),
        raw_files=len(evidence.raw_files),
        rehashed_bytes=evidence.rehashed_bytes,
        signers=known_signers(evidence),
        unsigned=len(evidence.damaged) + sum(not one for one in evidence.signers.values()),
        has_key=keys is not None,
        approved=approved,
        stamped=stamped,
        pages=pages,
        executions=executions,
        has_catalogue=target.lookup is not None,
    )


def _page(target: Target, evidence: Evidence) -> Iterator[tuple[str, Finding]]:
    statement = evidence.statements.get(target.statement)
    if target.version is None or statement is None:
        return
    uri = f"{evidence.store}/objects/{target.digest[:16]}"
    listed = evidence.listed_files(uri, target.digest)
    card = None
    if CARD_FILE in listed:
        with suppress(DataError):  # reported with the object
            card = read_record(f"{uri}/{CARD_FILE}")
    if card is not None and sha256_bytes(card) != listed[CARD_FILE]:
        card = None
    yield from check_page(evidence.store, MODEL, target.version, statement, card)


def known_signers(evidence: Evidence) -> tuple[SignerCount, ...]:
    counts = Counter(key for signers in evidence.signers.values() for key in signers)
    return tuple(
        SignerCount(
            fingerprint=fingerprint(key), statements=count, known=key in (evidence.keys or {})
        )
        for key, count in counts.most_common()
    )


def model_node(model: str, target: Target, evidence: Evidence) -> AuditNode:
    version = target.version
    statement = evidence.statements.get(target.statement)
    if version is not None:
        title = f"{version.name} version {version.number}"
        details = [
            ("aliases", ", ".join(version.aliases) or "none"),
            ("logged model", version.model.id if version.model else "gone"),
            *sorted(version.tags.items()),
        ]
    else:
        maker = f" of {statement.stage}" if statement else ""
        title = f"artifact {target.digest[:12]}{maker}"
        details = [("asked for", model), ("artifact", target.digest)]
    return AuditNode(
        id=MODEL,
        kind=NodeKind.MODEL,
        title=title,
        details=tuple(details),
        parents=(target.statement,),
        findings=tuple(evidence.findings[MODEL]),
    )


def stage_nodes(evidence: Evidence) -> list[AuditNode]:
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
