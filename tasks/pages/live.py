"""The page of a running phase of RL: its records, template and publisher."""

import logging
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import isfinite, nan
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.reports import StepReport, StepTiming
from data_schemas.rollouts import PromptCost, TokenUse
from tasks.algorithms.mismatch import QUARTERS
from tasks.errors import PipelineError
from tasks.formats.script_data import script_json, visible
from tasks.platform.progress import say
from tasks.provenance.lineage.signatures.pages import write_page

# What the page of a running phase shows.


class ResponseView(BaseModel):
    """One response, token by token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: tuple[str, ...]
    gaps: tuple[float, ...] = Field(
        description="log p of the trainer minus that of the rollout engine, nats; empty if the "
        "response was not in the batch, or nobody recorded them"
    )
    entropies: tuple[float, ...] = Field(description="of the trainer, nats; empty as above")
    logprobs: tuple[float, ...] = Field(description="of the rollout engine; empty as above")
    routes: tuple[str, ...] = Field(
        description="experts per MoE layer that predicted the token; empty without router replay"
    )
    environment: tuple[tuple[int, int], ...] = Field(
        default=(), description="tokens [first, end) that an environment wrote, of every answer"
    )
    score: float | None
    solved: bool
    reason: str
    detail: str
    penalty: float
    advantage: float | None = Field(
        description="mean over its tokens; None if the response was not in the batch"
    )
    stop_reason: str


class GroupView(BaseModel):
    """All responses to one prompt of a step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str
    domain: str
    language: str
    prompt: str
    answer: str
    source_row: str = Field(description="sha256 of the raw row")
    outcome: str
    responses: tuple[ResponseView, ...]
    left_out: int = Field(default=0, ge=0, description="responses that are not on the page")


class StepView(BaseModel):
    """Measurements of one step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    report: StepReport
    timing: StepTiming
    costs: tuple[PromptCost, ...]


class Responses(BaseModel):
    """The responses of the newest step that fit the page."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int
    groups: tuple[GroupView, ...]
    left_out: int = Field(ge=0, description="groups of the step that are not on the page")


# The page of a running phase: one HTML file without external resources.
#
# A string instead of a separate file, because Flyte's code bundles contain modules only. The data
# is JSON inside of the page; the script draws it. The page loads itself again while the phase
# runs, except while somebody reads a response.

SCRIPT = """const $ = id => document.getElementById(id);
const el = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
const short = v => v === null ? "\\u2013" : v === 0 ? "0"
  : Math.abs(v) >= 1000 || Number.isInteger(v) ? Math.round(v).toLocaleString("en")
  : Math.abs(v) < 0.01 ? v.toExponential(1) : String(+v.toPrecision(3));
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
svg{display:block;width:100%;height:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
td,th{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right}p span{white-space:nowrap}.scroll{overflow-x:auto}
a{color:#b8491a}
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
i.box{display:inline-block;width:10px;height:10px;margin:0 5px 0 12px;border-radius:2px}
</style></head><body>
<header>{% if in_store %}<p><a href="../../index.html">all executions</a></p>{% endif %}
<h1 id="title"></h1><p id="state"></p><div class="tiles" id="tiles"></div></header>
<main>
<h2>Curves</h2><div class="grid" id="curves"></div>
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
const head = el("tr");
["prompt", "engine s", "verifier s", "judge calls"].forEach(
  (t, k) => head.append(Object.assign(el("th", t, k ? "n" : ""), {scope: "col"})));
$("slowest").append(head);
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
    [$("slowest").parentElement, D.slowest.length]])
  box.hidden = box.previousElementSibling.hidden = !filled;
if (D.refresh_s) setInterval(() => {
  if (!document.querySelector("details[open]")) location.reload();
}, 1000 * D.refresh_s);
</script></body></html>
"""
)


# The page of a running phase of RL, from what its steps recorded.

MAX_TOKENS = 40_000
"""Response tokens on a page: about 2 MB."""
DIGITS = 4
"""Decimals of a log-probability on the page."""
REFRESH_S = 5
INSIDE = ("rollout", "reward")
"""Times within that of `collect`, or beside other parts: they are no parts of a step's sum."""
SLOWEST = 10
CURVES: tuple[tuple[str, str, str], ...] = (
    ("reward/mean", "Reward", "mean score of the responses with a verdict"),
    ("reward/solved_share", "Solved", "share of the responses with a verdict"),
    ("reward/above_graded", "Solved above grading", "share, minus the prompts' graded pass rate"),
    ("zero_variance/share", "Zero-variance groups", "share of prompts, first draw"),
    ("policy/entropy_nats", "Entropy", "nats per token"),
    ("policy/clip_share", "Clipped", "share of tokens"),
    ("policy/grad_norm", "Gradient norm", "before clipping"),
    ("rollout/length_tokens", "Response length", "tokens"),
    ("mismatch/k3", "Mismatch, k3", "trainer against rollout engine, nats"),
    ("mismatch/abs_logprob_p999", "Mismatch, largest tokens", "|dlogp|, 99.9 % quantile, nats"),
)
"""Metric of a step report, title, note. A metric that no step has is left out."""


def render(
    title: str,
    state: str,
    views: Sequence[StepView],
    responses: Responses | None,
    *,
    num_steps: int | None,
    running: bool,
    in_store: bool = True,
) -> str:
    """Build the page.

    Args:
        title: the phase and its execution.
        state: one line under the title.
        views: of all steps so far, at least one; what they do not say is not on the page.
        responses: of the newest step; None if its snapshot is too large for a page.
        num_steps: of the whole phase; None if its tokens end it.
        running: False for the last page of a phase, which does not load itself again.
        in_store: link to the list of executions, which lies beside it.
    """
    newest = views[-1]
    data = {
        "title": title,
        "state": state,
        "tiles": _tiles(newest, num_steps),
        "curves": [
            *(curve for name in CURVES if (curve := _curve(views, *name))),
            *_by_place(newest),
        ],
        "stacks": [
            stack | {"steps": [view.report.step for view in views]}
            for stack in (*_parts(views), *_uses(views))
        ],
        "slowest": [
            [cost.problem_id, cost.engine_seconds, cost.verifier_seconds, cost.judge_calls]
            for cost in sorted(
                newest.costs, key=lambda cost: -(cost.engine_seconds + cost.verifier_seconds)
            )[:SLOWEST]
        ],
        "responses": None if responses is None else responses.model_dump(mode="json"),
        "no_responses": "The snapshot of this step is too large for a page.",
        "refresh_s": REFRESH_S if running else 0,
    }
    environment = Environment(autoescape=True, finalize=visible, undefined=StrictUndefined)
    # No '<' survives in the data, so that no text of a response can end the script element.
    text = script_json(data)
    return environment.from_string(PAGE).render(title=title, data=text, in_store=in_store)


def by_mismatch(
    gaps: Sequence[Sequence[float]], tokens: Sequence[Sequence[int]], max_tokens: int
) -> dict[int, list[int]]:
    """Choose the responses of a page: groups with the largest mismatch whose tokens fit.

    If no group fits, it is what fits of the first, and at least one response.

    Args:
        gaps: of every response of every group.
        tokens: likewise.
        max_tokens: on the page.

    Returns:
        The chosen responses of a group by its place, largest mismatch first.
    """
    order = sorted(range(len(gaps)), key=lambda place: -max(gaps[place], default=0.0))
    chosen: dict[int, list[int]] = {}
    for place in order:
        if sum(tokens[place]) <= max_tokens:
            chosen[place] = list(range(len(tokens[place])))
            max_tokens -= sum(tokens[place])
    if chosen or not order:
        return chosen
    ranked = sorted(range(len(gaps[order[0]])), key=lambda sample: -gaps[order[0]][sample])
    ends = accumulate(tokens[order[0]][sample] for sample in ranked)
    fitting = [sample for sample, end in zip(ranked, ends, strict=True) if end <= max_tokens]
    return {order[0]: sorted(fitting or ranked[:1])}


def rounded(values: NDArray[np.float32]) -> tuple[float, ...]:
    """Values for JSON: a token whose logits overflowed has no number and reads as 0."""
    finite = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return tuple(np.round(finite, DIGITS).tolist())


def _tiles(newest: StepView, num_steps: int | None) -> list[tuple[str, str]]:
    metrics = newest.report.metrics

    def tile(name: str, metric: str, form: str) -> list[tuple[str, str]]:
        return [(name, f"{metrics[metric]:{form}}")] if metric in metrics else []

    total = sum(_parts_of(newest).values())
    step = newest.report.step
    whole = f" of {num_steps}" if num_steps else ""
    remaining = (
        [("left at this pace", f"{(num_steps - step) * total / 60:.0f} min")] if num_steps else []
    )
    return [
        ("step", f"{step}{whole}"),
        *tile("reward", "reward/mean", ".3f"),
        *([("seconds of the step", f"{total:.1f}")] if total else []),
        *remaining,
        *tile("generated tokens", "rollout/generated_tokens", ",.0f"),
        *tile("k3", "mismatch/k3", ".1e"),
    ]


def _curve(views: Sequence[StepView], metric: str, title: str, note: str) -> dict[str, Any] | None:
    points = [
        (view.report.step, view.report.metrics[metric])
        for view in views
        if isfinite(view.report.metrics.get(metric, nan))  # JSON in a browser has no NaN
    ]
    if not points:
        return None
    return {"title": title, "note": note, "points": points, "axis": "step"}


def _by_place(newest: StepView) -> list[dict[str, Any]]:
    """Mismatch by the place in a response; nothing if the step does not say it."""
    metrics = newest.report.metrics
    points = [
        (quarter, metrics[name])
        for quarter in range(1, QUARTERS + 1)
        if (name := f"mismatch/k3_quarter_{quarter}") in metrics
    ]
    title, note = "Mismatch at the end of a response", "k3 by quarters of the newest responses"
    return [{"title": title, "note": note, "points": points, "axis": "quarter"}] if points else []


def _parts(views: Sequence[StepView]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(name for view in views for name in _parts_of(view)))
    if not names:
        return []
    rows = [[_parts_of(view).get(name, 0.0) for name in names] for view in views]
    names = [name.replace("_", " ") for name in names]
    note = "seconds of every step; collect has rollouts and rewards"
    return [{"title": "Parts of a step", "note": note, "names": names, "rows": rows, "unit": "s"}]


def _parts_of(view: StepView) -> dict[str, float]:
    return {name: took for name, took in view.timing.seconds.items() if name not in INSIDE}


def _uses(views: Sequence[StepView]) -> list[dict[str, Any]]:
    """What generated tokens were used for; nothing if no step says it."""
    keys = {use.value.replace("_", " "): f"tokens/{use.value}_share" for use in TokenUse}
    rows = {
        name: [100.0 * view.report.metrics.get(key, 0.0) for view in views]
        for name, key in keys.items()
    }
    names = [name for name, values in rows.items() if any(values)]
    if not names:
        return []
    shares = [[rows[name][place] for name in names] for place in range(len(views))]
    title, note = "Use of generated tokens", "% of the tokens of every step"
    return [{"title": title, "note": note, "names": names, "rows": shares, "unit": "%"}]


# Writes the page of a running phase where a person can open it: into the store.

FOLDER = "live"
SHARE = 0.02
"""Share of the time that writing pages may take, after the first one."""
logger = logging.getLogger(__name__)


def page_name(execution: str, stage: str) -> str:
    """Name the page of a stage of an execution, below `live/` and without ending."""
    return f"{execution}/{stage.replace('/', '-')}"


class Publisher:
    """Writes a page after a step, unless that would cost too much of the phase's time.

    A store that does not answer, or a full disk, costs the page and not the phase.
    """

    def __init__(
        self,
        store: str,
        name: str,
        show: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is written yet.

        Args:
            store: uri of the run's store.
            name: from `page_name`.
            show: also gets every page, such as the deck of a Flyte task.
            clock: seconds that only rise.
        """
        self._store, self._name = store, f"{FOLDER}/{name}.html"
        self.uri = f"{store}/{self._name}"
        self._show, self._clock = show, clock
        self._page = ""
        self._next = float("-inf")

    def publish(self, render: Callable[[], str], *, last: bool = False) -> bool:
        """Render and write the page if it is due or the last one; True if it was."""
        start = self._clock()
        if start < self._next and not last:
            return False
        if self._next == float("-inf"):
            say(f"  watch it at {self.uri}")
        try:
            page = render()
            self._show(page)
            write_page(self._store, self._name, page, before=self._page)
            self._page = page
        except (PipelineError, OSError) as error:
            logger.warning("the page %s is not written: %s", self.uri, error)
        end = self._clock()
        self._next = end + (end - start) * (1.0 / SHARE - 1.0)
        return True
