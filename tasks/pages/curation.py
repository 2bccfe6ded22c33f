"""The page of a curated set."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from data_schemas.reports import EchoScore
from data_schemas.rows import (
    CLASSES,
    DEMONSTRATIONS,
    FACETS,
    HELD_OUT,
    MSC,
    PASS_RATE,
    PROBLEMS,
    QUARANTINE,
    SUBJECT,
    Band,
    band_of,
)
from tasks.algorithms.personal_data import without_personal_data
from tasks.pages import figures, wording
from tasks.pages.sections import Chart, Curation, Kept, SourceCounts, read_curation
from tasks.platform.page_style import STYLE, fill

# The template of the page of a curated set; its style is that of the run's report.

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ title }}</title>
<style>{{ style|safe }}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font:12.5px/1.5 var(--mono)}
.stack{display:flex;height:10px;border-radius:3px;overflow:hidden;background:var(--plain-soft);
margin:8px 0 2px}
.stack i{display:block;background:#c9d6e2}.stack i.good{background:#7fbfa4}
.stack i.bad{background:#dd9c94}
.family{margin-bottom:12px}.family .bar{min-width:6em}
details i.cut{font-weight:400;font-style:normal;color:var(--muted);display:block;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap}
summary.source b{font-weight:400;color:var(--muted);float:right}
details details.card{margin:0 18px 8px;border-color:var(--line)}
details details summary{font-weight:500;padding:8px 14px}
details details summary .pill{padding:1px 10px;font-weight:500;float:right}
td.key code{color:var(--muted)}
.sample{border-top:1px solid var(--line);padding:12px 18px}
.sample p{color:var(--muted);font-size:13px;margin:0 0 4px;overflow-wrap:anywhere}
.sample pre+pre{margin-top:8px;padding-top:8px;border-top:1px dashed var(--line)}
@media(max-width:760px){summary.source b{float:none;display:block}
details details.card{margin:0 10px 8px}
details details summary .pill{float:none;display:table;margin-top:4px}}
</style>
</head>
<body>
{% macro refusals(examples) %}
{% for one in examples %}<div class="sample"><p>{{ one.key }}</p>\
<pre>{{ one.detail or "no detail" }}</pre><p><code>row {{ one.row[:12] }}</code></p></div>\
{% endfor %}
{% endmacro %}
{% macro families(title, lines) %}
<div class="card scroll family"><table>
<thead><tr><th>{{ title }}</th><th class="n">problems</th><th class="n">share</th><th></th>\
<th class="n">demonstrations</th><th class="n">held out</th></tr></thead><tbody>
{% for line in lines %}
<tr><th>{{ line.name }}</th><td class="n">{{ line.counts[0] }}</td>\
<td class="n">{{ line.share }}</td>\
<td class="bar"><i class="good" style="width:{{ line.width }}%"></i></td>\
<td class="n">{{ line.counts[1] }}</td><td class="n">{{ line.counts[2] }}</td></tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
<header><div>
<p class="eyebrow">EachPrompt<span>curation</span>{% if note %}<span>{{ note }}</span>{% endif %}\
</p>
<h1>{{ headline }}</h1>
<dl class="tiles">
{% for label, value, note in tiles %}
<div><dt>{{ label }}</dt><dd>{{ value }}<small>{{ note }}</small></dd></div>
{% endfor %}
</dl>
</div></header>
<main>
<section><h2>From raw rows to the set</h2>
<p class="lede">Every item that was read is in the set, dropped (sound, but not wanted here) or \
quarantined (broken). Open a source for its reasons, and a reason for examples; \
<code>eachprompt trace --row</code> shows the raw row.</p>
{% if personal %}<p class="lede"><b>{{ personal }}</b></p>{% endif %}
<p class="key"><span><i style="background:#7fbfa4"></i>in the set</span>\
<span><i style="background:#c9d6e2"></i>dropped</span>\
<span><i style="background:#dd9c94"></i>quarantined</span></p>
{% for source in sources %}
<details class="card"><summary class="source">{{ source.name }} \
<span>{{ source.rows }} rows</span><b>{{ source.survivors }} of {{ source.items }} items kept, \
{{ source.left_out }} left out</b>
<div class="stack">{% for kind, width in source.bars %}\
<i class="{{ kind }}" style="width:{{ width }}%"></i>{% endfor %}</div></summary>
{% if source.decisions %}<div class="sample"><p>people decided about gold answers: \
{{ source.decisions }}</p></div>{% endif %}
{% if source.solve_rates %}<div class="sample"><p>solve rates of models: \
{{ source.solve_rates }} problems of the set before selection</p></div>{% endif %}
{% if source.personal %}<div class="sample"><p>items that tell something of a person: \
{{ source.personal }}</p></div>{% endif %}
{% if source.free %}<div class="sample"><p>reward that a text which does no task earns: \
{{ source.free }}</p></div>{% endif %}
{% for reason in source.reasons %}
<details class="card"><summary>{{ reason.label }} <span>{{ reason.count }}</span>\
<span class="pill {{ reason.kind }}">{{ reason.stage }}</span></summary>
{{ refusals(reason.examples) }}</details>
{% endfor %}
</details>
{% endfor %}
</section>
<section><h2>What the set is made of</h2>
<p class="lede">Problems to train on, demonstrations to imitate, and problems held out for \
evaluation.</p>
{{ families("domain", domains) }}
{{ families("language", languages) }}
{% if thinking %}
<p class="lede">How much the demonstrations think. Short or empty think blocks teach the form of a \
chain of thought alone.</p>
<div class="card scroll"><table><thead><tr><th>source</th><th>domain</th>\
<th class="n">demonstrations</th><th class="n">think block empty or missing</th>\
<th class="n">median words of thinking</th></tr></thead><tbody>
{% for source, domain, cells in thinking %}<tr><th>{{ source }}</th><td>{{ domain }}</td>\
{% for cell in cells %}<td class="n">{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endif %}
{% for title, lines in subjects if lines %}
<div class="card scroll"><table><thead><tr><th>{{ title }}</th>\
<th class="n">problems</th><th class="n">share</th></tr></thead><tbody>
{% for name, count, share in lines %}<tr><th>{{ name }}</th><td class="n">{{ count }}</td>\
<td class="n">{{ share }}</td></tr>{% endfor %}
</tbody></table></div>
{% endfor %}
</section>
{% if charts %}
<section><h2>Lengths and difficulty</h2>
<p class="lede">Of what is trained on.</p>
<div class="grid two">
{% for chart in charts %}
<figure class="card"><figcaption><h3>{{ chart.title }}<b>{{ chart.numbers }}</b></h3>\
<p>{{ chart.note }}</p></figcaption>
{{ chart.svg|safe }}</figure>
{% endfor %}
</div>
{% if models %}
<p class="lede">Problems by how often a model solves them.</p>
<div class="card scroll"><table><thead><tr><th>model</th><th class="n">problems</th>\
<th class="n">mean pass rate</th>{% for band in bands %}<th class="n">{{ band }}</th>{% endfor %}\
</tr></thead><tbody>
{% for model, cells in models %}<tr><th>{{ model }}</th>\
{% for cell in cells %}<td class="n">{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endif %}
</section>
{% endif %}
{% if clusters %}
<section><h2>Copies</h2>
<p class="lede">{{ clusters_note }}</p>
{% for cluster in clusters %}
<details class="card"><summary>{{ cluster.key }} <span>{{ cluster.count }} \
{{ "copy" if cluster.count == "1" else "copies" }}</span>\
<i class="cut">{{ cluster.text }}</i></summary>
{% if cluster.text %}<div class="sample"><p>the kept item</p><pre>{{ cluster.text }}</pre></div>\
{% endif %}
{{ refusals(cluster.members) }}</details>
{% endfor %}
</section>
{% endif %}
{% if leaks %}
<section><h2>Overlap with what is held out</h2>
<p class="lede">Items of each source that were dropped because they overlap with a held-out \
problem, by the source of that problem.</p>
<div class="card scroll"><table><thead><tr><th>dropped from</th>{% for suite in suites %}\
<th class="n">{{ suite }}</th>{% endfor %}</tr></thead><tbody>
{% for source, counts in leaks %}<tr><th>{{ source }}</th>{% for count in counts %}\
<td class="n">{{ count }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
</section>
{% endif %}
{% if groups %}
<section><h2>Samples</h2>
<p class="lede">The first problems and demonstrations of every domain and language.</p>
{% for group in groups %}
<details class="card"><summary>{{ group.title }} <span>{{ group.note }}</span></summary>
{% for sample in group.samples %}
<div class="sample"><p>{{ sample.key }}</p><pre>{{ sample.prompt }}</pre>\
<pre>{{ sample.response }}</pre></div>
{% endfor %}
</details>
{% endfor %}
</section>
{% endif %}
</main>
<footer>This page is one file: it loads nothing and can be kept or mailed as it is.</footer>
</body>
</html>
"""


# What the page of a curated set shows, read from its tables in batches.
#
# The tables may hold more rows than fit in memory: counters, histograms and few examples are kept.

# pyright: basic
# pyarrow ships no types.


MAX_EXAMPLES = 3
"""Of one source and reason, and of one domain and language."""
MAX_CLUSTERS = 12
MAX_MEMBERS = 5
MAX_SUBJECTS = 20
MAX_PROMPT = 600
"""Characters of a prompt that are shown."""
_COPIES = ("duplicate", "near_duplicate", "same_meaning", "conflicting_answers")
_TWIN = re.compile(
    r"of (?P<of>.+?)(?:, (?:Jaccard|cosine) [\d.]+)?|"
    r"(?P<first>.+?) and .+ have the same prompt and .+"
)
_HELD_OUT = re.compile(r"held-out (?P<id>.+?)(?:: '|$)")
_BATCH = 4096

Table = str
"""problems, demonstrations or held_out."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One item that was left out."""

    key: str
    detail: str
    row: str


@dataclass(frozen=True, slots=True)
class Sample:
    """An item that is in the set, as the page shows it."""

    key: str
    prompt: str
    response: str


@dataclass(frozen=True, slots=True)
class Contents:
    """Counts and examples of one curated set."""

    reasons: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)
    """(source, stage, outcome) -> reason -> items."""
    refused: dict[tuple[str, str], list[Refusal]] = field(default_factory=lambda: defaultdict(list))
    """(source, reason) -> examples."""
    clusters: Counter[str] = field(default_factory=Counter)
    """Kept item -> how many copies of it were left out."""
    copies: dict[str, list[Refusal]] = field(default_factory=lambda: defaultdict(list))
    leaks: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(source, source of the held-out problem) -> items dropped as overlapping with it."""
    families: dict[Table, Counter[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """Table -> (domain, language) -> items."""
    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=lambda: defaultdict(list))
    """(domain, language) -> kept items."""
    prompts: Counter[int] = field(default_factory=Counter)
    """Characters of a prompt to train on -> prompts."""
    responses: Counter[int] = field(default_factory=Counter)
    subjects: Counter[str] = field(default_factory=Counter)
    """What sources say that problems are about, held out ones included."""
    classes: Counter[str] = field(default_factory=Counter)
    """MSC 2020 classes of the same problems, where they have one."""
    pass_rates: dict[str, Counter[float]] = field(default_factory=lambda: defaultdict(Counter))
    """Model -> pass rate -> problems, held out ones included."""
    levels: Counter[int] = field(default_factory=Counter)
    """The source's own difficulty of the problems that have one."""
    texts: dict[str, str] = field(default_factory=dict)
    """Prompts of the kept items that most copies were made of."""


def read_contents(curated: Path) -> Contents:
    """Read the tables of a curated set."""
    contents = Contents()
    for row in _rows(curated / QUARANTINE):
        _count_refusal(contents, row)
    largest = {key for key, _ in contents.clusters.most_common(MAX_CLUSTERS)}
    for name, path in (
        ("problems", PROBLEMS), ("demonstrations", DEMONSTRATIONS), ("held_out", HELD_OUT)
    ):  # fmt: skip
        for row in _rows(curated / path):
            _count_kept(contents, name, row, largest)
    if (curated / FACETS).exists():
        for row in _rows(curated / FACETS):
            _count_facet(contents, row["name"], row["value"])
    return contents


def _count_facet(contents: Contents, name: str, value: str) -> None:
    if name == SUBJECT:
        contents.subjects[value] += 1
    elif name == MSC:
        contents.classes[value] += 1
    elif name.startswith(PASS_RATE):
        contents.pass_rates[name.removeprefix(PASS_RATE)][float(value)] += 1


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=_BATCH):
            yield from batch.to_pylist()


def _count_refusal(contents: Contents, row: dict[str, Any]) -> None:
    source, reason = row["source"], row["reason"]
    place = (source, row["stage"], row["outcome"])
    contents.reasons.setdefault(place, Counter())[reason] += 1
    refusal = Refusal(row["key"], without_personal_data(row["detail"]), row["source_row"])
    examples = contents.refused[source, reason]
    if len(examples) < MAX_EXAMPLES:
        examples.append(refusal)
    if reason in _COPIES and (twin := _TWIN.fullmatch(row["detail"])):
        original = twin["of"] or twin["first"]
        contents.clusters[original] += 1
        if len(contents.copies[original]) < MAX_MEMBERS:
            contents.copies[original].append(refusal)
    if reason == "contaminated":
        match = _HELD_OUT.search(row["detail"])
        suite = match["id"].partition("/")[0] if match else "a held-out problem"
        contents.leaks[source, suite] += 1


def _count_kept(contents: Contents, table: Table, row: dict[str, Any], largest: set[str]) -> None:
    family = (row["domain"], row["language"])
    contents.families[table][family] += 1
    text = "\n".join(turn["content"] for turn in json.loads(row["messages"]))
    if row["id"] in largest:
        contents.texts.setdefault(row["id"], without_personal_data(text[:MAX_PROMPT]))
    if table == "held_out":
        return
    if table == "problems":
        contents.prompts[len(text)] += 1
        if row["level"]:
            contents.levels[row["level"]] += 1
    else:
        contents.responses[len(row["response"])] += 1
    samples = contents.samples[family]
    if len(samples) < MAX_EXAMPLES:
        response = row.get("response") or f"Gold answer: {row['answer']}"
        texts = (without_personal_data(one[:MAX_PROMPT]) for one in (text, response))
        samples.append(Sample(row["id"], *texts))


# The page of a curated set: one HTML file in the style of the run's report.

BANDS = {
    Band.UNSOLVED: "never",
    Band.HARD: "below 1/3",
    Band.MEDIUM: "1/3 to 2/3",
    Band.EASY: "above 2/3",
    Band.SOLVED: "always",
}
"""Headings of the shares of problems that a model solves so often."""
CURATION_PAGE = ".curation.html"
"""End of the name of a run's page of curation."""


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One reason of one source, with examples."""

    label: str
    stage: str
    count: str
    kind: str
    examples: Sequence[Refusal]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What became of the items of one source; widths are percent of them."""

    name: str
    rows: str
    items: str
    survivors: str
    left_out: str
    bars: Sequence[tuple[str, float]]
    decisions: str
    solve_rates: str
    personal: str
    free: str
    reasons: Sequence[ReasonLine]


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """One kept item and its copies."""

    key: str
    count: str
    text: str
    members: Sequence[Refusal]


@dataclass(frozen=True, slots=True)
class FamilyLine:
    """One domain or language; the width is percent of all problems."""

    name: str
    counts: Sequence[str]
    share: str
    width: float


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Samples of one domain and language."""

    title: str
    note: str
    samples: Sequence[Sample]


def render_curation(curated: Path, title: str, note: str = "") -> bytes:
    """Render the page of a curated set.

    Args:
        curated: folder of the set.
        title: of the page.
        note: what it belongs to, above the title.

    Raises:
        DataError: the folder has no report of a curation.
    """
    curation, contents = read_curation(curated), read_contents(curated)
    html = fill(
        PAGE,
        title=title,
        note=note,
        style=STYLE,
        headline=_headline(curation),
        tiles=_tiles(curation),
        personal=_personal(curation),
        sources=[
            _source_line(name, counts, contents, curation.free_rewards.get(name, {}))
            for name, counts in curation.sources.items()
        ],
        clusters=list(_clusters(contents)),
        clusters_note=_clusters_note(contents),
        suites=sorted({suite for _, suite in contents.leaks}),
        leaks=_leak_table(contents.leaks),
        charts=list(_charts(contents)),
        domains=_families(contents, 0),
        languages=_families(contents, 1),
        thinking=list(_thinking(curation)),
        subjects=[
            ("subject, as sources name it", list(_subjects(contents.subjects))),
            ("class of the MSC 2020", list(_subjects(_classes(contents.classes)))),
        ],
        bands=BANDS.values(),
        models=list(_models(contents.pass_rates)),
        groups=[
            SampleGroup(
                f"{domain.replace('_', ' ')}, {language}", f"{len(samples)} of "
                f"{wording.count(_trained(contents, (domain, language)))}", samples,
            )
            for (domain, language), samples in sorted(contents.samples.items())
        ],
    )  # fmt: skip
    return html.encode()


def _total(curation: Curation, kind: Kept) -> int:
    return sum(counts.kept.get(kind, 0) for counts in curation.sources.values())


def _headline(curation: Curation) -> str:
    counts = curation.sources.values()
    items, survivors = sum(c.items for c in counts), sum(sum(c.kept.values()) for c in counts)
    share = wording.percent(survivors / items) if items else "none"
    return f"{wording.count(survivors)} of {wording.count(items)} items are in the set ({share})."


def _tiles(curation: Curation) -> list[tuple[str, str, str]]:
    counts = curation.sources.values()
    dropped = sum(sum(c.dropped.values()) for c in counts)
    quarantined = sum(sum(c.quarantined.values()) for c in counts)
    sources = "1 source" if len(counts) == 1 else f"{len(counts)} sources"
    return [
        ("Raw rows", wording.count(sum(c.rows for c in counts)), sources),
        ("Problems", wording.count(_total(curation, "problems")),
         f"{wording.count(_total(curation, 'held_out'))} more held out"),
        ("Demonstrations", wording.count(_total(curation, "demonstrations")), "to imitate"),
        ("Left out", wording.count(dropped + quarantined),
         f"{wording.count(quarantined)} of them broken"),
    ]  # fmt: skip


def _personal(curation: Curation) -> str:
    count = sum(one.personal.get("items", 0) for one in curation.sources.values())
    if not count:
        return ""
    return (
        f"{wording.count(count)} items tell something of a person, which this page masks. "
        "curation.personal says whether they are kept, masked or left out."
    )


def _source_line(
    name: str, counts: SourceCounts, contents: Contents, free: Mapping[str, EchoScore]
) -> SourceLine:
    count = sum(counts.kept.values())
    dropped, broken = sum(counts.dropped.values()), sum(counts.quarantined.values())
    whole = max(counts.items, 1)
    bars = [("good", count), ("", dropped), ("bad", broken)]
    return SourceLine(
        name=name,
        rows=wording.count(counts.rows),
        items=wording.count(counts.items),
        survivors=wording.count(count),
        left_out=wording.count(dropped + broken),
        bars=[(kind, round(100 * number / whole, 2)) for kind, number in bars if number],
        decisions=_listed(counts.decisions),
        solve_rates=_listed(counts.solve_rates),
        personal=_listed(counts.personal),
        free=", ".join(
            f"{verifier.partition('@')[0]} {wording.percent(one.score)} ({one.text})"
            for verifier, one in free.items()
        ),
        reasons=list(_reason_lines(name, contents)),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {wording.count(number)}" for name, number in counts.items())


def _reason_lines(source: str, contents: Contents) -> Iterator[ReasonLine]:
    lines = [
        (count, reason, stage, outcome)
        for (name, stage, outcome), reasons in contents.reasons.items()
        if name == source
        for reason, count in reasons.items()
    ]
    for count, reason, stage, outcome in sorted(lines, key=lambda line: (-line[0], line[1])):
        yield ReasonLine(
            label=reason.replace("_", " "),
            stage=f"{outcome} by {stage}",
            count=wording.count(count),
            kind="no" if outcome == "quarantined" else "plain",
            examples=contents.refused[source, reason],
        )


def _clusters(contents: Contents) -> Iterator[ClusterLine]:
    for key, count in contents.clusters.most_common(MAX_CLUSTERS):
        text = contents.texts.get(key, "")
        yield ClusterLine(key, wording.count(count), text, contents.copies[key])


def _clusters_note(contents: Contents) -> str:
    copies, originals = contents.clusters.total(), len(contents.clusters)
    return (
        f"{wording.count(copies)} items were left out as copies of {wording.count(originals)} "
        f"others; the {min(originals, MAX_CLUSTERS)} largest clusters:"
    )


def _leak_table(leaks: Mapping[tuple[str, str], int]) -> list[tuple[str, list[str]]]:
    suites = sorted({suite for _, suite in leaks})
    return [
        (source, [wording.count(leaks[source, suite]) if (source, suite) in leaks else ""
                  for suite in suites])
        for source in sorted({source for source, _ in leaks})
    ]  # fmt: skip


def _charts(contents: Contents) -> Iterator[Chart]:
    for name, title, lengths in (
        ("prompts", "Prompts", contents.prompts),
        ("responses", "Responses to imitate", contents.responses),
    ):
        if lengths:
            cumulative = np.cumsum([lengths[length] for length in sorted(lengths)])
            middle = sorted(lengths)[int(np.searchsorted(cumulative, cumulative[-1] / 2))]
            svg = figures.lengths_figure(lengths, name)
            summary = f"median {wording.count(middle)}"
            yield Chart(title, "characters, on a logarithmic axis", summary, svg)
    if contents.levels:
        svg = figures.levels_figure(contents.levels, "levels")
        yield Chart(
            "Difficulty",
            "level that the source gives; grading measures the model's own",
            f"{wording.count(contents.levels.total())} problems",
            svg,
        )


def _families(contents: Contents, axis: int) -> list[FamilyLine]:
    """Count problems, demonstrations and held-out problems by domain (0) or language (1)."""
    tables: list[Counter[str]] = []
    for name in ("problems", "demonstrations", "held_out"):
        counts: Counter[str] = Counter()
        for family, count in contents.families[name].items():
            counts[family[axis]] += count
        tables.append(counts)
    whole = max(tables[0].total(), 1)
    names = sorted({name for table in tables for name in table}, key=lambda n: (-tables[0][n], n))
    return [
        FamilyLine(
            name.replace("_", " "),
            [wording.count(table[name]) for table in tables],
            wording.percent(tables[0][name] / whole),
            round(100 * tables[0][name] / whole, 2),
        )
        for name in names
    ]


def _thinking(curation: Curation) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (source, domain, [demonstrations, those without thinking, median words])."""
    for source, domains in curation.thinking.items():
        for domain, counts in domains.items():
            empty = wording.count(counts.empty)
            if counts.empty:
                empty += f" ({wording.percent(counts.empty / counts.demonstrations)})"
            words = f"{counts.median_words:,g}"
            yield (
                source,
                domain.replace("_", " "),
                [wording.count(counts.demonstrations), empty, words],
            )


def _subjects(subjects: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (subject, problems, share) of the most frequent ones, and of all others together."""
    most = subjects.most_common(MAX_SUBJECTS)
    rest = subjects.total() - sum(count for _, count in most)
    if rest:
        most.append((f"{wording.count(len(subjects) - MAX_SUBJECTS)} others", rest))
    for name, count in most:
        yield name, wording.count(count), wording.percent(count / subjects.total())


def _classes(classes: Counter[str]) -> Counter[str]:
    """Write the names of classes behind their numbers."""
    names = {
        codes: "; ".join(CLASSES.get(code, "") for code in codes.split(", ")) for codes in classes
    }
    return Counter({f"{codes} {names[codes]}".rstrip(): count for codes, count in classes.items()})


def _models(pass_rates: Mapping[str, Counter[float]]) -> Iterator[tuple[str, list[str]]]:
    """Yield (model, [problems, mean pass rate, share of each band]), the best model first."""
    means = {
        model: sum(rate * count for rate, count in rates.items()) / rates.total()
        for model, rates in pass_rates.items()
    }
    for model in sorted(means, key=lambda name: (-means[name], name)):
        total, bands = pass_rates[model].total(), Counter[Band]()
        for rate, count in pass_rates[model].items():
            bands[band_of(rate)] += count
        shares = [wording.percent(bands[band] / total) for band in BANDS]
        yield model, [wording.count(total), wording.percent(means[model]), *shares]


def _trained(contents: Contents, family: tuple[str, str]) -> int:
    return contents.families["problems"][family] + contents.families["demonstrations"][family]
