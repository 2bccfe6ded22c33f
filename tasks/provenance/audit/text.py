"""An audit as text and as a picture."""

from itertools import pairwise

from data_schemas.statements import AuditNode, AuditReport, NodeKind
from tasks.formats.script_data import escaped, script_json
from tasks.provenance.audit.catalogue_check import COMPARED, NOT_COMPARED
from tasks.provenance.audit.walk import NODE_HEIGHT, NODE_WIDTH, Layout, layered_layout

# The chain as text: one line per stage, followed by its findings.


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
        beside = f"{counts}{_stamp(report)} {vouchers(report)}"
        return f"PROVED: {checked}, all as recorded{catalogue}.{beside}"
    count = len(report.findings)
    return f"BROKEN: {count} finding{'s' * (count != 1)}; {checked}. {vouchers(report)}"


def _stamp(report: AuditReport) -> str:
    return f" Stamped {report.stamped}." if report.stamped else ""


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


# The chain as one HTML file: an SVG, a short script, and no external resources.
#
# A click on a node highlights it and its ancestors and shows its digests in the side panel.

_TITLE_CHARACTERS = 26
_SECOND_CHARACTERS = 29
"""What fits into NODE_WIDTH; the rest of a longer name is in the tooltip and the side panel."""
_STYLE = """
body{margin:0;font:14px/1.45 system-ui,sans-serif;color:#1d2430;background:#f6f7f9}
header{padding:14px 22px;background:#fff;border-bottom:1px solid #d9dee6}
h1{font-size:18px;margin:0 0 2px}
.verdict{font-weight:600}.proved .verdict{color:#17693a}.broken .verdict{color:#b3261e}
main{display:flex;align-items:flex-start}
#graph{flex:1;min-width:0;padding:18px;overflow:auto}
svg{display:block;margin:0 auto;max-width:none}
aside{width:350px;flex:none;position:sticky;top:0;max-height:100vh;overflow:auto;
box-sizing:border-box;padding:18px;background:#fff;border-left:1px solid #d9dee6;min-height:80vh}
aside h2{font-size:15px;margin:0 0 8px}
dl{margin:0}dt{color:#5c6675;font-size:12px;margin-top:8px}
dd{margin:0;font:12px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.finding{background:#fdecea;color:#8c1d18;padding:6px 8px;margin:6px 0;border-radius:4px;
overflow-wrap:anywhere;font-size:13px}
.node{cursor:pointer}.node rect{fill:#fff;stroke:#8794a8;stroke-width:1.2}
.node.model rect{fill:#e3ecfb;stroke:#2d5fb3}.node.origin rect{fill:#eef6ee;stroke:#5d8a5d}
.node.broken rect{fill:#fbd9d6;stroke:#b3261e;stroke-width:2}
.node.chosen rect{stroke-width:3}
.node text{text-anchor:middle;font-size:13px;font-weight:600;fill:#1d2430}
.node .small{font:11px ui-monospace,monospace;font-weight:400;fill:#5c6675}
.edge{fill:none;stroke:#9aa6b8;stroke-width:1.3}
.dim{opacity:.16}
h1,.verdict{overflow-wrap:anywhere}
@media(max-width:760px){main{display:block}header{padding:12px 16px}
aside{width:auto;position:static;max-height:none;min-height:0;border-left:0;
border-top:1px solid #d9dee6}}
@media(prefers-color-scheme:dark){:root{color-scheme:dark}body{color:#e6eaee;background:#12171c}
header,aside{background:#1a2129;border-color:#2d3742}dt,.node .small{color:#9aa6b2;fill:#9aa6b2}
.proved .verdict{color:#6fcfa5}.broken .verdict,.finding{color:#f0958d}.finding{background:#3d1f1d}
.node text{fill:#e6eaee}.node rect{fill:#1a2129}.node.model rect{fill:#1d2c47}
.node.origin rect{fill:#1c2a1f}.node.broken rect{fill:#43201d;stroke:#f0958d}}
"""

_SCRIPT = """
const nodes = JSON.parse(document.getElementById('nodes').textContent);
const panel = document.getElementById('panel');
const start = panel.innerHTML;
function line(parent, tag, text, css) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (css) made.className = css;
  parent.appendChild(made);
  return made;
}
function choose(id) {
  const lit = new Set(), waiting = [id];
  while (waiting.length) {
    const next = waiting.pop();
    if (!lit.has(next)) { lit.add(next); waiting.push(...nodes[next].parents); }
  }
  for (const each of document.querySelectorAll('.node')) {
    each.classList.toggle('dim', !lit.has(each.dataset.id));
    each.classList.toggle('chosen', each.dataset.id === id);
  }
  for (const each of document.querySelectorAll('.edge'))
    each.classList.toggle('dim', !(lit.has(each.dataset.from) && lit.has(each.dataset.to)));
  panel.replaceChildren();
  line(panel, 'h2', nodes[id].title);
  for (const [where, what] of nodes[id].findings)
    line(panel, 'div', where + ': ' + what, 'finding');
  const list = line(panel, 'dl', '');
  for (const [name, value] of nodes[id].details) {
    line(list, 'dt', name);
    line(list, 'dd', value);
  }
}
function reset() {
  for (const each of document.querySelectorAll('.dim,.chosen'))
    each.classList.remove('dim', 'chosen');
  panel.innerHTML = start;
}
document.getElementById('graph').addEventListener('click', event => {
  const node = event.target.closest('.node');
  if (node) choose(node.dataset.id); else reset();
});
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') reset();
  if (event.key === 'Enter' && document.activeElement.dataset.id)
    choose(document.activeElement.dataset.id);
});
"""


def picture_html(report: AuditReport) -> str:
    """Draw an audit as a self-contained page."""
    layout = layered_layout({node.id: node.parents for node in report.nodes})
    state = "proved" if report.proved else "broken"
    panels = {
        node.id: {
            "title": node.title,
            "parents": node.parents,
            "details": node.details,
            "findings": [(finding.object, finding.problem) for finding in node.findings],
        }
        for node in report.nodes
    }
    data = script_json(panels)
    findings = "".join(
        f'<div class="finding">{escaped(finding.object)}: {escaped(finding.problem)}</div>'
        for finding in report.findings
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>Lineage of {escaped(report.model)}</title>
<style>{_STYLE}</style></head>
<body class="{state}">
<header><h1>Lineage of {escaped(report.model)}, version {escaped(report.version)}</h1>
<div class="verdict">{escaped(verdict(report))}</div></header>
<main><div id="graph">{_svg(report, layout)}</div>
<aside id="panel"><h2>{len(report.findings)} findings</h2>{findings}
<p>Raw files stand above the stage that read them, the released model at the bottom.
Click a node to highlight its ancestors and show its digests here. Escape resets the view.</p>
</aside></main>
<script type="application/json" id="nodes">{data}</script>
<script>{_SCRIPT}</script></body></html>
"""


def _svg(report: AuditReport, layout: Layout) -> str:
    size = f"{layout.width:.0f} {layout.height:.0f}"
    edges = [
        f'<path class="edge" data-from="{escaped(parent)}" data-to="{escaped(child)}" '
        f'd="{_curve(points)}"/>'
        for (parent, child), points in layout.edges.items()
    ]
    nodes = [_box(node, *layout.centres[node.id]) for node in report.nodes]
    return (
        f'<svg viewBox="0 0 {size}" width="{layout.width:.0f}" height="{layout.height:.0f}" '
        f'role="img" aria-label="lineage graph">{"".join(edges)}{"".join(nodes)}</svg>'
    )


def _curve(points: tuple[tuple[float, float], ...]) -> str:
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (next_x, next_y) in pairwise(points):
        middle = (y + next_y) / 2
        path += f"C{x:.1f},{middle:.1f} {next_x:.1f},{middle:.1f} {next_x:.1f},{next_y:.1f}"
    return path


def _box(node: AuditNode, x: float, y: float) -> str:
    css = f"node {node.kind}{' broken' if node.findings else ''}"
    title, second = _lines(node)
    left, top = x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2
    tip = (
        "; ".join(f"{finding.object}: {finding.problem}" for finding in node.findings) or node.title
    )
    return (
        f'<g class="{css}" data-id="{escaped(node.id)}" tabindex="0"><title>{escaped(tip)}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="6"/>'
        f'<text x="{x:.1f}" y="{y - 4:.1f}">{escaped(_cut(title, _TITLE_CHARACTERS))}</text>'
        f'<text class="small" x="{x:.1f}" y="{y + 14:.1f}">'
        f"{escaped(_cut(second, _SECOND_CHARACTERS))}</text></g>"
    )


def _lines(node: AuditNode) -> tuple[str, str]:
    """The title of a node and the line under it."""
    if node.kind == NodeKind.STAGE:
        outputs = [(name, digest) for name, digest in node.details if name.startswith("made ")]
        if len(outputs) == 1:
            return node.title, f"{outputs[0][0].removeprefix('made ')} {outputs[0][1][:8]}"
        return node.title, f"{len(outputs)} outputs" if outputs else "no output known"
    if node.kind == NodeKind.ORIGIN:
        (_, digest), *others = node.details
        return node.title, f"{digest[:12]}{' ...' if others else ''}"
    # A registered version: its name alone fills the first line.
    name, _, version = node.title.rpartition(" version ")
    return (
        (name, f"version {version}: {dict(node.details)['aliases']}") if name else (node.title, "")
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
