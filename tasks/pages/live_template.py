"""The page of a running phase: one HTML file without external resources.

A string instead of a separate file, because Flyte's code bundles contain modules only. The data
is JSON inside of the page; the script draws it. The page loads itself again while the phase
runs, except while somebody reads a response.
"""

from tasks.pages.style import WIDE_TABLES

SCRIPT = """const $ = id => document.getElementById(id);
const el = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
const short = v => v === null ? "\\u2013" : v === 0 ? "0"
  : Math.abs(v) >= 1000 || Number.isInteger(v) ? Math.round(v).toLocaleString("en")
  : (Math.abs(v) < 0.0001 ? v.toExponential(1) : String(+v.toPrecision(3)))
    .replaceAll("-", "\\u2212");  // a line may end behind a hyphen, not behind a minus
// What a prompt begins and ends with: instructions often come first, the question last.
const brief = text => {
  const line = text.replace(/\\s+/g, " ").trim();
  return line.length <= 110 ? line : `${line.slice(0, 50)} \u2026 ${line.slice(-55)}`;
};
"""
"""Functions of every page with data: an element by id, a new element, short forms of a number and
of a prompt."""

PAGE = (
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>{{ title }}</title>
<style>
:root{--ink:#1c2733;--muted:#66727f;--line:#e3e8ed;--paper:#f5f7f9;--good:#1a7f5a;--bad:#b3372f}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;
font-variant-numeric:tabular-nums}
header,main{max-width:1180px;margin:0 auto;padding:20px 24px}
h1{font-size:25px;margin:0}h2{font-size:19px;margin:34px 0 10px}h3{font-size:14px;margin:0}
p{margin:0;color:var(--muted);font-size:13px;overflow-wrap:anywhere}
.tiles,.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,minmax(min(100%,250px),1fr))}
.tiles{grid-template-columns:repeat(auto-fill,minmax(150px,1fr));margin-top:14px}
.card{background:#fff;border:1px solid var(--line);border-radius:10px;padding:12px 16px;min-width:0}
.tiles b{display:block;font-size:21px}
svg{display:block;width:100%;height:auto;overflow:visible}
table{border-collapse:collapse;width:100%;font-size:13px}
td,th{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;white-space:nowrap}td:first-child{min-width:16em}
p span{white-space:nowrap}.scroll{overflow-x:auto}
"""
    + WIDE_TABLES
    + """a{color:#b8491a}
details{border-top:1px solid var(--line);padding:6px 0}summary{cursor:pointer}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,monospace;margin:6px 0}
.tokens{font:13px/1.9 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}
.axis{display:flex;justify-content:space-between;border-top:1px solid var(--line);font-size:12px}
summary .id{color:var(--muted);font-size:13px;overflow-wrap:anywhere}
.heard{color:var(--muted);font-style:italic}
.yes{color:var(--good)}.no{color:var(--bad)}.plain{color:var(--muted)}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaee;--muted:#9aa6b2;--line:#2d3742;
--paper:#12171c;--good:#6fcfa5;--bad:#f0958d;color-scheme:dark}.card{background:#1a2129}
a{color:#f0a37c}}
@media(max-width:760px){header,main{padding:16px}h1{font-size:20px}}
i.box{display:inline-block;width:10px;height:10px;margin:0 5px 0 12px;border-radius:2px}
</style></head><body>
<header>{% if in_store %}<p><a href="../../index.html">all executions</a></p>{% endif %}
<h1 id="title"></h1><p id="state"></p><div class="tiles" id="tiles"></div></header>
<main>
<h2>Curves</h2><div class="grid" id="curves"></div>
<h2>By language and task family</h2>
<div class="card scroll"><p id="slice-note"></p><table id="slices"></table></div>
<h2>Where the time and the tokens go</h2><div class="grid" id="stacks"></div>
<h2>Slowest prompts of the newest step</h2>
<div class="card scroll"><table id="slowest"></table></div>
<h2>Responses of step <span id="step"></span></h2>
<p id="legend"></p><div class="card" id="groups"></div>
</main>
<script type="application/json" id="data">{{ data|safe }}</script>
<script>
const D = JSON.parse(document.getElementById("data").textContent);
"""
    + SCRIPT
    + """
const COLOURS = ["#1a7f5a", "#8cc7ad", "#c3ccd4", "#e3bd4f", "#b3372f", "#6b5aa8", "#3f7fb5",
  "#7d5a3c"];
const W = 300, H = 90;
function svg(body) {
  const box = el("div");
  box.innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img">${body}</svg>`;
  return box.firstChild;
}
function card(title, note, drawing) {
  const c = el("div", undefined, "card");
  c.append(el("h3", title), el("p", note));
  if (drawing) c.append(drawing);
  return c;
}
function axis(name, first, last) {
  const line = el("p", undefined, "axis");
  line.append(el("span", `${name} ${first}`), ...(first === last ? [] : [el("span", `${last}`)]));
  return line;
}
const across = (k, n) => n < 2 ? W / 2 : k * W / (n - 1);
function curve(points) {
  const ys = points.map(p => p[1]), low = Math.min(...ys), high = Math.max(...ys);
  const y = v => high > low ? H - 8 - (v - low) / (high - low) * (H - 16) : H / 2;
  const at = points.map((p, k) => `${across(k, points.length).toFixed(1)},${y(p[1]).toFixed(1)}`);
  const last = at[at.length - 1].split(",");
  return svg(`<polyline fill="none" stroke="#d08a1d" stroke-width="1.6" ` +
    `points="${at.join(" ")}"/>` +
    `<circle cx="${last[0]}" cy="${last[1]}" r="3" fill="#b8491a"/>`);
}
function stack(rows) {
  const sums = rows.map(r => r.reduce((a, b) => a + b, 0)), top = Math.max(...sums) || 1;
  let base = rows.map(() => 0), body = "";
  for (let k = 0; k < rows[0].length; k++) {
    const next = rows.map((r, s) => base[s] + r[k]);
    const x = s => rows.length < 2 ? [0, W] : [across(s, rows.length)];
    const edge = of => of.flatMap((v, s) => x(s).map(a => [a, H - v / top * H]));
    const around = [...edge(next), ...edge(base).reverse()];
    const path = around.map(p => p.map(v => v.toFixed(1)).join(","));
    body += `<polygon fill="${COLOURS[k % COLOURS.length]}" points="${path.join(" ")}"/>`;
    base = next;
  }
  return svg(body);
}
function legend(names, last) {
  const box = el("p");
  names.forEach((name, k) => {
    const mark = el("i", undefined, "box");
    mark.style.background = COLOURS[k % COLOURS.length];
    const entry = el("span");
    entry.append(mark, `${name} ${last[k]}`);
    box.append(entry, " ");
  });
  return box;
}
$("title").textContent = D.title;
$("state").textContent = D.state;
for (const [name, value] of D.tiles) {
  const tile = el("div", undefined, "card");
  tile.append(el("p", name), el("b", value));
  $("tiles").append(tile);
}
for (const c of D.curves) {
  const ys = c.points.map(p => p[1]), range = [Math.min(...ys), Math.max(...ys)].map(short);
  const drawn = card(`${c.title}: ${short(ys[ys.length - 1])}`, `${c.note}; ${range.join(" to ")}`,
    curve(c.points));
  drawn.append(axis(c.axis, c.points[0][0], c.points[c.points.length - 1][0]));
  $("curves").append(drawn);
}
for (const s of D.stacks) {
  const c = card(s.title, s.note, stack(s.rows)), last = s.rows[s.rows.length - 1];
  c.append(axis("step", s.steps[0], s.steps[s.steps.length - 1]));
  c.append(legend(s.names, last.map(v => `${short(v)} ${s.unit}`)));
  $("stacks").append(c);
}
function header(names) {
  const line = el("tr");
  names.forEach((t, k) => line.append(Object.assign(el("th", t, k ? "n" : ""), {scope: "col"})));
  return line;
}
$("slice-note").textContent = D.slices.note;
$("slices").append(header(["", ...D.slices.columns]));
for (const row of D.slices.rows) {
  const line = el("tr");
  row.forEach((v, k) => line.append(el("td", v, k ? "n" : "")));
  $("slices").append(line);
}
$("slowest").append(header(["prompt", "engine seconds", "verifier seconds", "judge calls"]));
const prompts = new Map((D.responses ? D.responses.groups : []).map(g => [g.problem, g.prompt]));
for (const row of D.slowest) {
  const line = el("tr"), text = brief(prompts.get(row[0]) || row[0]);
  row.forEach((v, k) => line.append(el("td", k ? short(v) : text, k ? "n" : "")));
  line.title = row[0];
  $("slowest").append(line);
}
function word(r, k) {
  const e = el("span", r.tokens[k]), gap = r.gaps[k] || 0, entropy = r.entropies[k] || 0;
  const strength = Math.min(1, Math.abs(gap) / 0.1), colour = gap < 0 ? "179,55,47" : "63,127,181";
  if (strength > 0.02) e.style.background = `rgba(${colour},${(0.75 * strength).toFixed(2)})`;
  e.style.borderBottom = `2px solid rgba(208,138,29,${Math.min(1, entropy / 2).toFixed(2)})`;
  if (r.environment.some(([first, end]) => first <= k && k < end)) {
    e.className = "heard";
    e.title = "written by the environment";
    return e;
  }
  e.title = [
    r.logprobs.length ? `log p ${r.logprobs[k]}` : "",
    r.gaps.length ? `trainer ${gap >= 0 ? "+" : ""}${gap}` : "",
    r.entropies.length ? `entropy ${entropy} nats` : "",
    r.routes.length ? `experts ${r.routes[k]}` : "",
  ].filter(Boolean).join(", ");
  return e;
}
function response(r) {
  const box = el("details"), s = el("summary");
  const kind = r.score === null ? "plain" : r.solved ? "yes" : "no";
  s.append(el("span", r.score === null ? "no verdict" : `score ${short(r.score)}`, kind),
    ` ${r.reason}; advantage ${short(r.advantage)}; penalty ${short(r.penalty)}; ` +
    `${r.tokens.length} tokens, ${r.stop_reason}`);
  box.append(s);
  box.addEventListener("toggle", () => {
    if (!box.open || box.children.length > 1) return;
    if (r.detail) box.append(el("p", r.detail));
    const text = el("div", undefined, "tokens");
    r.tokens.forEach((_, k) => text.append(word(r, k)));
    box.append(text);
  });
  return box;
}
$("step").textContent = D.responses ? D.responses.step : "";
$("legend").textContent = D.responses ? "Background: difference of the trainer's log-probability " +
  "from the rollout engine's (red lower, blue higher, full at 0.1 nats). Underline: entropy. " +
  "Grey: written by an environment. Hover a token for its numbers." + (D.responses.left_out ?
  ` ${D.responses.left_out} more prompts, longer or of smaller mismatch, not on this page.` : "")
  : D.no_responses;
for (const g of D.responses ? D.responses.groups : []) {
  const box = el("details"), solved = g.responses.filter(r => r.solved).length;
  const of = g.domain ? ` (${g.domain}, ${g.language})` : "";
  const name = el("summary", `${brief(g.prompt) || g.problem} `);
  name.append(el("span", `${g.problem}${of}: ${solved} of ${g.responses.length} solved` +
    (g.left_out ? `, ${g.left_out} more not on this page` : "") +
    (g.outcome ? `, ${g.outcome.replaceAll("_", " ")}` : ""), "id"));
  box.append(name);
  const row = g.source_row ? `; raw row ${g.source_row}` : "";
  box.append(el("pre", g.prompt), el("p", `reference ${g.answer}${row}`));
  g.responses.forEach(r => box.append(response(r)));
  $("groups").append(box);
}
for (const [box, filled] of [[$("stacks"), D.stacks.length],
    [$("slowest").parentElement, D.slowest.length],
    [$("slices").parentElement, D.slices.rows.length]])
  box.hidden = box.previousElementSibling.hidden = !filled;
if (D.refresh_s) setInterval(() => {
  if (!document.querySelector("details[open]")) location.reload();
}, 1000 * D.refresh_s);
</script></body></html>
"""
)
