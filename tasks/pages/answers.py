"""The page of an evaluation: ladder, families by language, differences, and every answer."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from data_schemas.reports import EvaluationReport, SuiteScore
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.sources import RowPlace
from tasks.algorithms.comparison import compare
from tasks.algorithms.personal_data import without_personal_data
from tasks.algorithms.suites import per_problem
from tasks.formats.script_data import script_json
from tasks.pages.live_template import SCRIPT
from tasks.pages.style import STYLE
from tasks.platform.page_style import fill

# The page of an evaluation. A string, because Flyte's code bundles contain modules only.

PAGE = (
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>{{ title }}</title>
<style>{{ style|safe }}
button.cell{font:inherit;border:0;background:none;padding:0;cursor:pointer;color:inherit;width:100%;
text-align:right}
.filters{display:flex;flex-wrap:wrap;gap:10px;margin:0 0 12px}
select,input{font:inherit;font-size:14px;padding:6px 10px;border:1px solid var(--line);
border-radius:8px;background:var(--card);color:var(--ink);max-width:100%}
details.item{border-top:1px solid var(--line)}details.item:first-child{border-top:0}
details.item>summary{padding:10px 18px;display:flex;gap:8px 14px;flex-wrap:wrap;font-weight:400}
summary .id{overflow-wrap:anywhere;font-weight:600;color:var(--ink)}
.inside{padding:0 18px 14px}.inside h4{margin:12px 0 4px;font-size:13px;color:var(--muted);
font-weight:500}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 var(--mono);margin:4px 0;
background:var(--paper);border-radius:8px;padding:10px 12px;max-height:32em;overflow:auto}
.note{color:var(--muted);font-size:13px;overflow-wrap:anywhere}
td.dim{color:var(--muted);white-space:normal;min-width:8em}
@media(max-width:760px){td.dim{min-width:17em}}
.inside details{border:1px solid var(--line);border-radius:8px;margin:6px 0}
.inside details summary{padding:8px 12px;font-weight:400}
.inside details .inside{padding:0 12px 10px}
</style></head><body>
<header><div><p class="eyebrow">EachPrompt<span>evaluation</span></p><h1 id="title"></h1>
<p class="lede" id="lede"></p></div></header>
<main>
<section><h2>Models</h2><div class="card scroll"><table id="ladder"></table></div></section>
<section id="differences"><h2>Differences, losses first</h2><p class="lede">Paired bootstrap over \
the same problems, 95 % interval. A row opens the problems behind it.</p>
<div class="card scroll"><table id="pairs"></table></div></section>
<section><h2>Task families by language</h2><p class="lede">Share of responses that solve their \
problem. A cell opens its problems.</p>
<div class="filters"><select id="model" aria-label="model"></select></div>
<div class="card scroll"><table id="heat"></table></div></section>
<section><h2 id="answers">Answers</h2><p class="lede" id="count"></p>
<div class="filters"><select id="family" aria-label="task family"></select>
<select id="language" aria-label="language"></select>
<select id="kind" aria-label="which problems"></select>
<input id="word" type="search" placeholder="text or id" aria-label="text or id"></div>
<div class="card" style="padding:0" id="list"></div>
<p class="filters" style="margin-top:12px"><button id="more" class="pill plain" \
style="border:0;cursor:pointer">show more</button></p></section>
</main><footer>This page is one file: it loads nothing and can be kept or mailed as it is.</footer>
<script type="application/json" id="data">{{ data|safe }}</script>
<script>
"""
    + SCRIPT
    + """
const D = JSON.parse($("data").textContent), PORTION = 40;
const last = D.models.length - 1, pct = v => v === null ? "\\u2013" : (100 * v).toFixed(1) + " %";
const pts = v => (v > 0 ? "+" : v < 0 ? "\\u2212" : "") + Math.abs(100 * v).toFixed(1);
const plain = text => text.replaceAll("_", " ");
const row = (table, cells, head) => {
  const line = el("tr");
  cells.forEach((c, k) => {
    const cell = el(head || !k ? "th" : "td", undefined, k ? "n" : "");
    if (head || !k) cell.scope = head ? "col" : "row";
    cell.append(c);
    line.append(cell);
  });
  table.append(line);
  return line;
};
const body = (table, head) => {
  table.replaceChildren();
  const top = el("thead"), rest = el("tbody");
  row(top, head, true);
  table.append(top, rest);
  return rest;
};
$("title").textContent = D.title;
$("lede").textContent = `${D.models.length} models on the same problems. A response without a ` +
  "verdict is counted and in no mean.";
const ladder = body($("ladder"), ["model", "solved", "95 % interval", "pass@k", "majority@k",
  "tokens", "cut off", "no verdict", "sampling"]);
D.ladder.forEach((m, k) => {
  const line = row(ladder, [D.models[k], pct(m.accuracy), `${pct(m.low)} to ${pct(m.high)}`,
    pct(m.pass), pct(m.majority), short(m.tokens), pct(m.truncated), short(m.abstained),
    `k ${m.k}, ${m.sampling}`]);
  line.lastChild.className = "dim n";
});
const pairs = body($("pairs"), ["where", "model", "against", "points", "95 % interval",
  "problems"]);
// Without its kind, a language of all problems reads as one of the harmful requests.
const kinds = {harmful: "harmful requests, ", harmless: "harmless requests, ",
  language: "language ", source: "source ", level: "level ", slice: "slice "};
D.differences.forEach(d => {
  const sure = d.high < 0 ? "no" : d.low > 0 ? "yes" : "plain";
  const mark = el("span", pts(d.difference), "pill " + sure);
  const [kind, name] = d.suite.split(":");
  const line = row(pairs, [(kinds[kind] || "") + plain(name || kind), D.models[d.candidate],
    D.models[d.parent], mark, `${pts(d.low)} to ${pts(d.high)}`, short(d.problems)]);
  line.style.cursor = "pointer";
  line.addEventListener("click", () => show({family: kind === "domain" ? name : "",
    language: kind === "language" ? name : "", kind: d.difference < 0 ? "worse" : "better"}));
});
if (!D.differences.length) $("differences").remove();
const options = (id, entries) => entries.forEach(([value, text]) => {
  const o = el("option", text);
  o.value = value;
  $(id).append(o);
});
const unique = name => [...new Set(D.problems.map(p => p[name]))].sort();
options("model", D.models.map((m, k) => [k, m]));
options("family", [["", "every family"], ...unique("family").map(f => [f, plain(f)])]);
options("language", [["", "every language"], ...unique("language").map(l => [l, l])]);
options("kind", [["", "every problem"], ["worse", "last model worse"], ["better",
  "last model better"], ["wrong", "not always solved"], ["abstained", "without a verdict"]]);
$("model").value = last;
function heat() {
  const cells = D.heat[$("model").value], families = Object.keys(cells);
  const languages = [...new Set(families.flatMap(f => Object.keys(cells[f])))].sort();
  const rest = body($("heat"), ["", ...languages]);
  families.forEach(f => {
    const line = row(rest, [plain(f), ...languages.map(l => {
      const cell = cells[f][l], b = el("button", cell ? pct(cell[0]) : "", "cell");
      if (cell) b.title = `${cell[1]} problems`;
      if (cell) b.addEventListener("click", () => show({family: f, language: l, kind: ""}));
      return b;
    })]);
    languages.forEach((l, k) => {
      const cell = cells[f][l];
      line.children[k + 1].className = "heat";
      if (cell) line.children[k + 1].style.background =
        `hsl(${(12 + 140 * cell[0]).toFixed(0)} 55% 45% / .22)`;  // on light and dark
    });
  });
}
const rate = (m, k) => {
  const scored = D.answers[m][k].filter(a => a.score !== null);
  return scored.length ? scored.filter(a => a.solved).length / scored.length : null;
};
const rates = D.problems.map((_, k) => D.models.map((_, m) => rate(m, k)));
const others = k => rates[k].slice(0, -1).filter(v => v !== null);
const KINDS = {
  "": () => true,
  worse: k => rates[k][last] !== null && others(k).some(v => v > rates[k][last]),
  better: k => rates[k][last] !== null && others(k).some(v => v < rates[k][last]),
  wrong: k => rates[k][last] !== null && rates[k][last] < 1,
  abstained: k => D.answers.some(m => m[k].some(a => a.score === null)),
};
function answer(a, number) {
  const box = el("details"), s = el("summary"), inside = el("div", undefined, "inside");
  const kind = a.score === null ? "plain" : a.solved ? "yes" : "no";
  s.append(el("span", a.score === null ? "no verdict" : a.solved ? "solved" :
    `score ${short(a.score)}`, "pill " + kind), ` ${number}: ${plain(a.reason)}, ` +
    `${short(a.tokens)} tokens${a.truncated ? ", cut off" : ""}`);
  const end = a.text.lastIndexOf("</think>");
  if (a.detail) inside.append(el("p", `verdict: ${a.detail}`, "note"));
  if (a.cut) inside.append(el("p", `${short(a.cut)} characters at the start are not here`, "note"));
  if (end >= 0) inside.append(el("h4", "reasoning"), el("pre", a.text.slice(0, end)
    .replace("<think>", "").trim()));
  const rest = a.text.slice(end < 0 ? 0 : end + "</think>".length).trim();
  inside.append(el("h4", "answer"), el("pre", rest || "\\u2013"));
  box.append(s, inside);
  return box;
}
function problem(k) {
  const p = D.problems[k], box = el("details", undefined, "item"), s = el("summary");
  const last = p.prompt.length ? brief(p.prompt[p.prompt.length - 1][1]) : "";
  s.append(el("span", last || p.id, "id"),
    el("span", `${p.id}, ${plain(p.family)}, ${p.language}`, "note"));
  D.models.forEach((m, i) => s.append(el("span", `${m} ${rates[k][i] === null ? "\\u2013" :
    pct(rates[k][i])}`, "note")));
  box.append(s);
  box.addEventListener("toggle", () => {
    if (!box.open || box.children.length > 1) return;
    const inside = el("div", undefined, "inside");
    p.prompt.forEach(([role, text]) => inside.append(el("h4", role), el("pre", text)));
    inside.append(el("h4", `reference for ${p.verifier}`), el("pre", p.answer),
      el("p", `raw row: ${p.row}`, "note"));
    [...D.models.keys()].reverse().forEach(m => {
      inside.append(el("h4", D.models[m]));
      D.answers[m][k].forEach((a, n) => inside.append(answer(a, n + 1)));
    });
    box.append(inside);
  });
  return box;
}
let chosen = [], shown = 0;
function more() {
  chosen.slice(shown, shown + PORTION).forEach(k => $("list").append(problem(k)));
  shown = Math.min(chosen.length, shown + PORTION);
  $("more").hidden = shown >= chosen.length;
}
function list() {
  const word = $("word").value.toLowerCase();
  chosen = [...D.problems.keys()].filter(k => {
    const p = D.problems[k];
    return (!$("family").value || p.family === $("family").value) &&
      (!$("language").value || p.language === $("language").value) && KINDS[$("kind").value](k) &&
      (!word || JSON.stringify([p.id, p.prompt]).toLowerCase().includes(word) ||
        D.answers.some(m => m[k].some(a => a.text.toLowerCase().includes(word))));
  });
  $("count").textContent = `${short(chosen.length)} of ${short(D.problems.length)} problems, ` +
    "those first on which the last model loses most." + (D.left_out ?
    ` ${short(D.left_out)} more problems are in samples.parquet only.` : "");
  $("list").replaceChildren();
  shown = 0;
  more();
}
function show(filters) {
  for (const [id, value] of Object.entries(filters)) $(id).value = value;
  list();
  $("answers").scrollIntoView();
}
["family", "language", "kind"].forEach(id => $(id).addEventListener("change", list));
$("word").addEventListener("input", list);
$("model").addEventListener("change", heat);
$("more").addEventListener("click", more);
heat();
list();
</script></body></html>
"""
)


# Build the page of an evaluation: ladder, families by language, differences, and every answer.
#
# The page is one file. It holds at most MAX_PROBLEMS problems, those first on which the last model
# falls behind another; what is left out is said.

MAX_PROBLEMS = 400
MAX_CHARACTERS = 20_000
"""Longest text of a response; the end is kept, because it holds the answer."""

Evaluated = tuple[EvaluationReport, Sequence[SampleResult]]


def render(
    title: str,
    evaluated: Sequence[Evaluated],
    problems: Mapping[str, Problem],
    rows: Mapping[str, RowPlace],
    settings: EvaluationSettings,
) -> bytes:
    """Build the page.

    Args:
        title: of the page.
        evaluated: reports with samples of the same problems, the last model's last.
        problems: by id.
        rows: where each raw row lies, by its hash.
        settings: of the bootstrap.

    Raises:
        DataError: the models answered different problems.
    """
    ids = _select_problems(evaluated)
    data = {
        "title": title,
        "models": [report.model for report, _ in evaluated],
        "ladder": [_ladder(report) for report, _ in evaluated],
        "heat": [_heat(samples) for _, samples in evaluated],
        "differences": _differences(evaluated, settings),
        "problems": [_problem(problems[name], rows) for name in ids],
        "answers": [_answers(samples, ids) for _, samples in evaluated],
        "left_out": len({row.problem_id for row in evaluated[-1][1]}) - len(ids),
    }
    # No '<' survives in the data, so that no text of a response can end the script element.
    text = script_json(data)
    return fill(PAGE, title=title, style=STYLE, data=text).encode()


def _ladder(report: EvaluationReport) -> dict[str, Any]:
    """The whole of one model, and how it was sampled."""
    overall = next(score for score in report.suites if score.suite == "all")
    sampling = report.sampling
    return {
        **_score(overall),
        "pass": overall.pass_at_k,
        "majority": overall.majority_at_k,
        "tokens": report.mean_response_tokens,
        "truncated": report.truncated_share,
        "abstained": overall.abstained,
        "k": overall.samples,
        "sampling": "not recorded"
        if sampling is None
        else f"temperature {sampling.temperature:g}, top-p {sampling.top_p:g}, "
        f"at most {sampling.max_new_tokens} tokens, seed {sampling.seed}",
    }


def _score(score: SuiteScore) -> dict[str, float]:
    return {"accuracy": score.accuracy, "low": score.low, "high": score.high}


def _heat(samples: Sequence[SampleResult]) -> dict[str, dict[str, tuple[float, int]]]:
    """Accuracy and problems per task family and language."""
    cells: dict[str, dict[str, list[SampleResult]]] = {}
    for row in samples:
        cells.setdefault(row.domain.value, {}).setdefault(row.language, []).append(row)
    return {
        family: {language: cell for language, rows in members.items() if (cell := _mean(rows))}
        for family, members in cells.items()
    }


def _mean(rows: Sequence[SampleResult]) -> tuple[float, int] | None:
    decided = [problem.accuracy for problem in per_problem(rows) if problem.decided]
    return (sum(decided) / len(decided), len(decided)) if decided else None


def _differences(
    evaluated: Sequence[Evaluated], settings: EvaluationSettings
) -> list[dict[str, Any]]:
    """Every pair of models on every family and language, certain losses first."""
    differences = [
        {"candidate": later, "parent": earlier, **one.model_dump(exclude={"parent"})}
        for earlier, later in combinations(range(len(evaluated)), 2)
        for one in compare(
            evaluated[later][1], evaluated[earlier][1], evaluated[earlier][0].model, settings
        )
    ]
    return sorted(differences, key=lambda one: (one["high"] >= 0.0, one["difference"]))


def _select_problems(evaluated: Sequence[Evaluated]) -> list[str]:
    """Return the ids of the problems on the page: regressions of the last model first."""
    scores = [
        {one.problem_id: one.accuracy for one in per_problem(samples) if one.decided}
        for _, samples in evaluated
    ]
    names = list(dict.fromkeys(row.problem_id for row in evaluated[-1][1]))
    last = scores[-1]

    def gain(name: str) -> float:
        others = [score[name] for score in scores[:-1] if name in score]
        return last[name] - max(others) if name in last and others else 0.0

    return sorted(names, key=gain)[:MAX_PROBLEMS]


def _problem(problem: Problem, rows: Mapping[str, RowPlace]) -> dict[str, Any]:
    place = rows.get(problem.source_row)
    where = f", row {place.number} of the file with sha256 {place.file}" if place else ""
    return {
        "id": problem.id,
        "family": problem.domain.value,
        "language": problem.language,
        "source": problem.source,
        "prompt": [
            [message.role.value, without_personal_data(message.content)]
            for message in problem.messages
        ],
        "verifier": problem.verifier,
        "answer": without_personal_data(problem.answer),
        "row": f"sha256 {problem.source_row}{where}",
    }


def _answers(samples: Sequence[SampleResult], ids: Sequence[str]) -> list[list[dict[str, Any]]]:
    by_problem: dict[str, list[dict[str, Any]]] = {name: [] for name in ids}
    for row in samples:
        if row.problem_id in by_problem:
            cut = max(0, len(row.text) - MAX_CHARACTERS)
            by_problem[row.problem_id].append(
                {
                    "text": without_personal_data(row.text[cut:]),
                    "cut": cut,
                    "score": row.score,
                    "solved": row.solved,
                    "reason": row.reason,
                    "detail": without_personal_data(row.detail),
                    "tokens": row.tokens,
                    "truncated": row.truncated,
                }
            )
    return [by_problem[name] for name in ids]
