"""The chain as text: one line per stage, followed by its findings."""

from data_schemas.audits import AuditNode, AuditReport, NodeKind
from tasks.provenance.audit.catalogue_check import COMPARED, NOT_COMPARED
from tasks.provenance.audit.chain import endpoints, served_models


def chain_text(report: AuditReport) -> str:
    """Draw the chain from the model back to the raw files, with the verdict below."""
    nodes = {node.id: node for node in report.nodes}
    ids: set[str] = set()
    lines: list[str] = []
    # Not recursive: a chain may be longer than Python's stack.
    # Entries: node, indent of its line, indent of what follows.
    waiting = [(report.nodes[0].id, "", "")]
    while waiting:
        name, first, rest = waiting.pop()
        node = nodes[name]
        if name in ids:
            lines.append(f"{first}{node.title} (above)")
            continue
        ids.add(name)
        above = [nodes[parent].title for parent in node.parents if parent in ids]
        lines.append(first + _line(node) + (f", also from {', '.join(above)}" if above else ""))
        lines += _below(node, rest)
        new = [parent for parent in node.parents if parent not in ids]
        for parent in reversed(new):
            last = parent == new[-1]
            corner, follow = ("└─ ", "   ") if last else ("├─ ", "│  ")
            waiting.append((parent, rest + corner, rest + follow))
    for node in report.nodes:
        if node.id not in ids:
            lines += [f"not reached: {_line(node)}", *_below(node, "")]
    return "\n".join([*lines, "", verdict(report)])


def verdict(report: AuditReport) -> str:
    """Summarise in one line whether the model is proved."""
    checked = (
        f"{report.statements} statements, {report.objects} objects and {report.raw_files} raw "
        f"files re-hashed ({report.rehashed_bytes / 2**20:.1f} MiB)"
    )
    if report.published:
        checked = (
            f"{report.statements} statements and {report.objects} files of the release re-hashed "
            f"({report.rehashed_bytes / 2**20:.1f} MiB)"
        )
        if report.proved:
            return (
                f"PROVED: {checked}, all as released. Not proved here: {report.published}. "
                f"{vouchers(report)}"
            )
    if report.buried:
        checked += f", {report.buried} models deleted on purpose (tombstones)"
    if report.proved:
        agrees = f", and MLflow agrees in: {COMPARED} (not compared: {NOT_COMPARED})"
        catalogue = agrees if report.has_catalogue else "; MLflow was not asked"
        counts = f" Executions: {report.executions}. Pages: {report.pages}."
        beside = f"{counts}{_stamp(report)}{_not_proved(report)} {vouchers(report)}"
        return f"PROVED: {checked}, all as recorded{catalogue}.{beside}"
    count = len(report.findings)
    return f"BROKEN: {count} finding{'s' * (count != 1)}; {checked}. {vouchers(report)}"


def _not_proved(report: AuditReport) -> str:
    served, names = served_models(report), endpoints(report)
    text = f" Behind addresses, by signed proof: {', '.join(served)}." if served else ""
    return f"{text} Not proved: which model answered at {', '.join(names)}." if names else text


def _stamp(report: AuditReport) -> str:
    approved = f" Approved {report.approved}." if report.approved else ""
    return approved + (f" Stamped {report.stamped}." if report.stamped else "")


def vouchers(report: AuditReport) -> str:
    """Say who signed the statements, and whether the auditor knows them."""
    counts = [
        f"{one.statements} signed by key {one.fingerprint[:16]}{' of --key' * one.known}"
        for one in report.signers
    ]
    counts += [f"{report.unsigned} by nobody"] * bool(report.unsigned)
    note = "" if report.has_key else " Nobody vouches for that: no --key was given."
    return f"Statements: {', '.join(counts)}.{note}"


def _below(node: AuditNode, indent: str) -> list[str]:
    """Findings, and the files where the chain ends."""
    lines = [f"{indent}  ✗ {finding.object}: {finding.problem}" for finding in node.findings]
    if node.kind == NodeKind.ORIGIN:
        lines += [f"{indent}  {sha256[:12]}  {where}" for where, sha256 in node.details]
    return lines


def _line(node: AuditNode) -> str:
    mark = "✗ " if node.findings else ""
    if node.kind == NodeKind.STAGE:
        outputs = [
            f"{name.removeprefix('made ')} {digest[:12]}"
            for name, digest in node.details
            if name.startswith("made ")
        ]
        arrow = f" -> {', '.join(outputs)}" if outputs else ""
        return f"{mark}{node.title} [{node.id[:12]}]{arrow}"
    return mark + node.title
