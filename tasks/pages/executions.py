"""The front page of a store: every execution with its decision, and links to all of its pages."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from data_schemas.statements import ExecutionRecord, Statement
from tasks.pages import wording
from tasks.pages.navigation import INDEX, with_navigation
from tasks.pages.style import STYLE
from tasks.platform.page_style import fill
from tasks.provenance.lineage.signatures.pages import write_page
from tasks.provenance.lineage.statements import load_executions, load_statement
from tasks.store.interface import store_at

FOLDERS = ("reports", "live")
AUDITS = "audits"
WORKFLOW = "eachprompt.workflow"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>Executions</title>
<style>{{ style|safe }}main{padding-top:24px}
td a,.card>a{display:inline-block;margin-right:12px}
td.pages{min-width:13em}td.when span{white-space:nowrap}</style>
</head>
<body>
<header><div>
<p class="eyebrow">EachPrompt<span>{{ store }}</span></p>
<h1>{{ lines|length }} execution{{ "" if lines|length == 1 else "s" }}</h1>
</div></header>
<main>
<section><div class="card scroll"><table>
<thead><tr><th>execution</th><th>decision</th><th>pages</th><th class="n">held-out \
problems solved</th><th>workflow</th><th>began</th><th class="n">stages run</th>\
<th class="n">time in stages</th></tr>\
</thead>
<tbody>
{% for line in lines %}
<tr><th>{{ line.execution }}</th>\
<td><span class="pill {{ line.kind }}">{{ line.decision }}</span></td>\
<td class="pages">{% for text, place in line.pages %}\
<a href="{{ place }}">{{ text }}</a>{% endfor %}</td>\
<td class="n">{{ line.solved }}</td><td>{{ line.workflow }}</td>\
<td class="when">{% for part in line.began.split(" ", 1) %}<span>{{ part }}</span> {% endfor %}\
</td>\
<td class="n">{{ line.stages }}</td><td class="n">{{ line.time }}\
{% if line.cost %}<br>{{ line.cost }}{% endif %}</td></tr>
{% endfor %}
</tbody></table></div></section>
{% if audits %}
<section><h2>Audits</h2><p class="lede">Chains of releases that were hashed again.</p>
<div class="card">{% for text, place in audits %}
<a href="{{ place }}">{{ text }}</a>
{% endfor %}
</div></section>
{% endif %}
</main>
<footer>Written at the end of every execution. Stages that came from the cache are not counted. \
<code>eachprompt compare-runs BEFORE AFTER</code> compares two of them, on a page that is linked \
here.\
</footer>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class ExecutionLine:
    """One execution, for display."""

    execution: str
    workflow: str
    began: str
    stages: int
    time: str
    cost: str
    decision: str
    kind: str
    solved: str
    pages: tuple[tuple[str, str], ...]


def write_index(store: str) -> str:
    """Write `index.html` of a store, and return its location."""
    audits = [
        (_audited(name.removesuffix(".html")), f"{AUDITS}/{name}")
        for name in sorted(store_at(f"{store}/{AUDITS}").list_files(), reverse=True)
        if name.endswith(".html")
    ]
    lines = list(_lines(store))
    page = fill(PAGE, store=store, lines=lines, audits=audits, style=STYLE)
    return write_page(store, INDEX, with_navigation(page, {}))


def links_of(store: str, execution: str) -> dict[str, str]:
    """Return the pages of an execution, by what they are, as addresses below the store."""
    results: dict[str, str] = {"report": ""}
    for folder in FOLDERS:
        for name in sorted(store_at(f"{store}/{folder}").list_files()):
            if name.startswith(execution) and name.endswith(".html"):
                results[_text(folder, name, execution)] = f"{folder}/{name}"
    return {text: place for text, place in results.items() if place}


def _lines(store: str) -> Iterator[ExecutionLine]:
    names = {name.split("/")[0] for name in store_at(f"{store}/executions").list_files()}
    loaded = ((name, load_executions(store, name)) for name in names)
    executions = [(name, records) for name, records in loaded if records]
    for name, records in sorted(executions, key=lambda pair: -pair[1][0].started):
        statement = _release(store, records)
        decision, kind, solved = _decision(statement)
        yield ExecutionLine(
            execution=name,
            workflow=records[0].tags.get(WORKFLOW, ""),
            began=wording.date(records[0].started),
            stages=len(records),
            time=wording.duration(sum(record.seconds for record in records)),
            cost=wording.gpu_cost(sum(record.gpu_seconds for record in records)),
            decision=decision,
            kind=kind,
            solved=solved,
            pages=tuple(links_of(store, name).items()),
        )


def _release(store: str, records: Sequence[ExecutionRecord]) -> Statement | None:
    releases = [record.statement for record in records if record.stage == "release"]
    return load_statement(store, releases[-1]) if releases else None


def _decision(statement: Statement | None) -> tuple[str, str, str]:
    """Return the decision, its colour, and the accuracy of the candidate."""
    if statement is None:
        return "no candidate", "plain", ""
    name = json.loads(statement.settings).get("name", "")
    accuracy = statement.facts.get("accuracy/all")
    solved = wording.percent(accuracy) if isinstance(accuracy, float) else ""
    if statement.facts.get("released"):
        return f"{name} released", "yes", solved
    return f"{name} refused", "no", solved


def _audited(name: str) -> str:
    """'20261129-101838' -> '2026-11-29 10:18:38 UTC'; another name is as it is."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.strptime(name, "%Y%m%d-%H%M%S"))
    except ValueError:
        return name


def _text(folder: str, name: str, execution: str) -> str:
    """Name a page: `rl-one` of live/ID/rl-one.html, `curation` of ID.curation.html."""
    rest = name.removeprefix(execution).removesuffix(".html").strip("./-")
    if folder == "reports":
        return rest.replace("against-", "compared with ") or "report"
    return f"{folder} {PurePosixPath(rest).name}".strip()
