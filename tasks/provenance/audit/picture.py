"""The chain as one HTML file: an SVG, a short script, and no external resources.

A click on a node highlights it and its ancestors and shows its digests in the side panel.
"""

from itertools import pairwise

from data_schemas.audits import AuditNode, AuditReport, NodeKind
from tasks.formats.script_data import escaped, script_json
from tasks.provenance.audit.layout import NODE_HEIGHT, NODE_WIDTH, GraphLayout, layered_layout
from tasks.provenance.audit.text import verdict

_TITLE_CHARACTERS = 26
_SECOND_CHARACTERS = 29
"""What fits into NODE_WIDTH; the rest of a longer name is in the tooltip and the side panel."""
_STYLE = """
body{margin:0;font:14px/1.45 system-ui,sans-serif;color:#1d2430;background:#f6f7f9}
header{padding:14px 22px;background:#fff;border-bottom:1px solid #d9dee6}
h1{font-size:18px;margin:0 0 2px}
.verdict b{font-weight:600}.proved .verdict{color:#17693a}.broken .verdict{color:#b3261e}
main{display:flex;align-items:flex-start}
#graph{flex:1;min-width:0;padding:18px;overflow:auto}
/* A picture wider than its place says so: a scroll timeline runs only where there is something to
scroll. A browser without timelines says it on narrow pages. */
#graph::before{content:"Scroll sideways for the whole picture \\2192";display:block;position:sticky;
left:0;width:max-content;max-width:100%;color:#5c6675;font-size:12.5px;max-height:0;overflow:hidden;
animation:goes-on linear both;animation-timeline:scroll(nearest inline)}
@keyframes goes-on{from,to{max-height:3em;padding-bottom:10px}}
@supports not (animation-timeline:scroll()){@media(max-width:760px){
#graph::before{max-height:3em;padding-bottom:10px}}}
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
    num_findings = len(report.findings)
    word, _, reasons = verdict(report).partition(": ")
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
<div class="verdict"><b>{escaped(word)}</b>: {escaped(reasons)}</div></header>
<main><div id="graph">{_svg(report, layout)}</div>
<aside id="panel"><h2>{num_findings} finding{"s" * (num_findings != 1)}</h2>{findings}
<p>Raw files stand above the stage that read them, the released model at the bottom.
Click a node to highlight its ancestors and show its digests here. Escape resets the view.</p>
</aside></main>
<script type="application/json" id="nodes">{data}</script>
<script>{_SCRIPT}</script></body></html>
"""


def _svg(report: AuditReport, layout: GraphLayout) -> str:
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
