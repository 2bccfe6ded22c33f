"""Papers for those who have to file them, filled in from a chain that was just hashed again.

Technical documentation by the points of Annex IV, and the public summary of training content of
Article 53(1)(d), of Regulation (EU) 2024/1689; and criteria of OWASP AISVS 1.0. Beside each fact
stands the statement that it is from; what no statement says is a blank, named as one, for whoever
places the model on the market.
Headings are short forms of the points and of the Commission's template, not their text.
"""

import json
import re
import time
from collections.abc import Callable, Mapping

from markdown_it import MarkdownIt

from data_schemas.audits import AuditReport, NodeKind
from data_schemas.sources import RawFile
from tasks.errors import DataError
from tasks.formats.script_data import escaped
from tasks.platform.page_style import STYLE
from tasks.platform.tables import markdown_table
from tasks.provenance.audit.aisvs import aisvs
from tasks.provenance.audit.chain import (
    BLANK,
    Chain,
    Fields,
    bases,
    cited,
    detail,
    facts_of,
    file_line,
    files_of,
    generated,
    inputs_of,
    is_model,
)
from tasks.provenance.audit.text import verdict
from tasks.provenance.lineage.origins import public_name, raw_name, read_raw_files
from tasks.provenance.lineage.places import without_places
from tasks.provenance.lineage.statements import load_executions
from tasks.store.interface import store_at

NONE = "None."
_HUB_COPY = re.compile(r"(?:^|/)hf/([^/]+/[^/]+)/([0-9a-f]{40})/")
_ROWS = (
    *("rows", "items", "problems", "demonstrations", "held_out", "dropped", "quarantined"),
    "personal",
)
_WRITTEN = ("distil", "promptcot")
"""First words of stages whose text a model wrote."""
_SHEET = """
@page{size:A4;margin:20mm 18mm}
main{max-width:46em;padding-top:24px;padding-bottom:48px}
main p,main li{overflow-wrap:anywhere}
h2{font-size:17px;margin:26px 0 6px}
main p,main ul{margin:0 0 8px}
code{font-family:var(--mono);font-size:.88em;overflow-wrap:anywhere}
@media print{main{padding:0;max-width:none}body{font-size:10pt}h1{font-size:18pt;margin-top:0}
h2{font-size:12pt}h1,h2{break-after:avoid}li,tr{break-inside:avoid}table{font-size:8pt}
td:first-child,th:first-child{padding-left:0}}
"""


def paper(kind: str, report: AuditReport, store: str) -> str:
    """Write a paper of a model in Markdown.

    Args:
        kind: one of `PAPERS`.
        report: of the audit; what it found stands at the top.
        store: folder or s3:// uri of the chain.
    """
    executions = {name.split("/")[0] for name in store_at(f"{store}/executions").list_files()}
    records = {one.statement: one for name in executions for one in load_executions(store, name)}
    chain = Chain(_without_places(report), records, _raw_files(report, store))
    title, write = PAPERS[kind]
    parts = [f"# {title}: {report.nodes[0].title}", f"Audit: {verdict(report)}"]
    parts += [f"## {heading}\n\n{text}" for heading, text in write(chain)]
    lines = [[node.title, f"`{node.id}`"] for node in chain.stages]
    parts.append(f"## Statements\n\n{markdown_table(['stage', 'sha256'], lines)}")
    return "\n\n".join(parts) + "\n"


def _raw_files(report: AuditReport, store: str) -> dict[str, RawFile]:
    """Read what the lists of the chain say of raw files; of a list that is damaged, nothing.

    The audit names the damage.
    """
    results: dict[str, RawFile] = {}
    for node in report.nodes:
        for name, digest in node.details:
            if node.kind != NodeKind.STAGE or not name.startswith("made "):
                continue
            try:
                listed = read_raw_files(f"{store}/objects/{digest[:16]}")
            except DataError:
                continue
            results |= {public_name(raw_name(digest, one), one.sha256): one for one in listed}
    return results


def _without_places(report: AuditReport) -> AuditReport:
    """A paper goes to others: it names what came from outside, and not where it lay."""
    nodes = []
    for node in report.nodes:
        details = tuple(
            (public_name(name, value), value)
            if node.kind == NodeKind.ORIGIN
            else (name, str(without_places(value)))
            for name, value in node.details
        )
        nodes.append(node.model_copy(update={"details": details}))
    return report.model_copy(update={"nodes": tuple(nodes)})


def paper_html(text: str) -> str:
    """Lay a paper out as a self-contained page of A4, which a browser prints or saves as PDF."""
    title, _, _ = text.removeprefix("# ").partition("\n")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escaped(title)}</title>
<style>{STYLE}{_SHEET}</style></head>
<body><main>{body}</main></body></html>
"""


def _annex_iv(chain: Chain) -> Fields:
    return (
        ("1 (a) Intended purpose", BLANK),
        ("1 (a) Provider", BLANK),
        ("1 (a) Version, and its relation to previous versions", _version(chain)),
        ("1 (b) Interaction with other hardware and software", BLANK),
        ("1 (c) Versions of software", _software(chain)),
        ("1 (d) Forms in which it is placed on the market", _form(chain)),
        ("1 (e) Hardware on which it is to run", BLANK),
        ("1 (f) Products of which it is a part", BLANK),
        ("1 (g) User interface", BLANK),
        ("1 (h) Instructions for use", BLANK),
        ("2 (a) Methods and steps of development", _steps(chain)),
        ("2 (a) Pre-trained systems of third parties", bases(chain)),
        ("2 (b) Design specifications and choices", _settings(chain)),
        ("2 (c) Architecture; computational resources", _resources(chain)),
        ("2 (d) Data: provenance, selection, cleaning", _data(chain)),
        ("2 (e) Human oversight", _people(chain)),
        ("2 (f) Changes that are determined in advance", _gate(chain)),
        ("2 (g) Validation and testing", _scores(chain)),
        ("2 (h) Cybersecurity", _signatures(chain)),
        ("3 Capabilities and limitations, accuracy", _accuracy(chain)),
        ("3 Foreseeable unintended outcomes, risks, input data", BLANK),
        ("4 Appropriateness of the performance metrics", BLANK),
        ("5 Risk management system", BLANK),
        ("6 Changes through the lifecycle", _changes(chain)),
        ("7 Harmonised standards", BLANK),
        ("8 EU declaration of conformity", BLANK),
        ("9 Post-market monitoring", BLANK),
    )


def _training_summary(chain: Chain) -> Fields:
    return (
        ("1.1 Provider", BLANK),
        ("1.2 Model: name and version", _version(chain)),
        ("1.2 Models that it is a modification of", bases(chain)),
        ("1.2 Date of placement on the Union market", BLANK),
        ("1.3 Modalities", "Text."),
        (
            "1.3 Size of the training data",
            facts_of(chain.stages_of("curate", "mix", "grade"), _ROWS),
        ),
        ("1.3 Languages", _languages(chain)),
        ("1.3 Latest date of acquisition", _acquired(chain)),
        ("2.1 Publicly available data sets", _public(chain)),
        ("2.2 Private, 2.3 crawled, 2.4 users' and 2.6 other data", _rest(chain)),
        ("2.5 Synthetic data", _synthetic(chain)),
        ("3.1 Reservations of rights (text and data mining)", BLANK),
        ("3.2 Removal of illegal content", _screened(chain)),
        ("3.3 Other processing", facts_of(chain.stages_of("curate", "mix"))),
    )


def _version(chain: Chain) -> str:
    head = chain.report.nodes[0]
    facts = facts_of(chain.stages_of("release"), ("version", "promotion", "promotion_before"))
    return f"{head.title}.\n\n{facts}" if facts != BLANK else f"{head.title}."


def _software(chain: Chain) -> str:
    return cited(
        (node, f"packages `{detail(node, 'environment')}`, lock file `{detail(node, 'lock')}`")
        for node in chain.stages
    )


def _form(chain: Chain) -> str:
    makers = [node for node in chain.stages if node.id in chain.report.nodes[0].parents]
    return cited(
        (node, f"a folder of weights, tokenizer and configuration, sha256 `{value}`")
        for node in makers
        for name, value in node.details
        if name.startswith("made ")
    )


def _steps(chain: Chain) -> str:
    return cited((node, f"from {inputs_of(node) or 'outside'}") for node in chain.stages)


def _settings(chain: Chain) -> str:
    return cited(
        (node, f"`{detail(node, 'settings')}`")
        for node in chain.stages_of("curate", "sft", "merge", "grade", "rl", "release")
    )


def _resources(chain: Chain) -> str:
    return cited(
        (
            node,
            f"{record.seconds:.0f} s, {record.cpu_seconds:.0f} CPU s, "
            f"{record.gpu_seconds / 3600:.2f} GPU hours",
        )
        for node in chain.stages
        if (record := chain.records.get(node.id))
    )


def _data(chain: Chain) -> str:
    parts = (
        _public(chain),
        _rest(chain),
        _synthetic(chain),
        facts_of(chain.stages_of("curate", "mix")),
    )
    return "\n\n".join(part for part in parts if part not in (BLANK, NONE)) or BLANK


def _people(chain: Chain) -> str:
    return facts_of(chain.stages_of("approve", "reject", "rollback"), ("by", "because", "reason"))


def _gate(chain: Chain) -> str:
    return cited(
        (node, f"rules of every release: `{detail(node, 'settings')}`")
        for node in chain.stages_of("release")
    )


def _scores(chain: Chain) -> str:
    return facts_of(chain.stages_of("evaluate", "compare"))


def _signatures(chain: Chain) -> str:
    return cited((node, f"signed by `{detail(node, 'signed by')}`") for node in chain.stages)


def _accuracy(chain: Chain) -> str:
    kinds = ("accuracy/", "false_positive/", "false_negative/")
    return facts_of(chain.stages_of("release"), kinds)


def _changes(chain: Chain) -> str:
    return facts_of(chain.stages_of("release", "rollback"), ("promotion", "restored", "replaced"))


def _languages(chain: Chain) -> str:
    kind = "accuracy/language:"
    return cited(
        (node, f"of its held-out rows: {', '.join(results)}")
        for node in chain.stages_of("release")
        if (
            results := [
                name.removeprefix(kind) for name, _ in node.details if name.startswith(kind)
            ]
        )
    )


def _acquired(chain: Chain) -> str:
    records = [chain.records.get(node.id) for node in chain.stages_of("ingest")]
    times = [record.started for record in records if record]
    if not times:
        return BLANK
    day = time.strftime("%Y-%m-%d", time.gmtime(max(times)))
    return f"Read on {day}, by the execution record. When its text was written: {BLANK}"


def _public(chain: Chain) -> str:
    result = cited(
        (node, f"{match[1]} of the Hugging Face hub at {match[2]}: {file_line(chain, uri, sha256)}")
        for node, uri, sha256 in files_of(chain)
        if not is_model(node) and (match := _HUB_COPY.search(uri))
    )
    return NONE if result == BLANK else result


def _rest(chain: Chain) -> str:
    result = cited(
        (node, file_line(chain, uri, sha256))
        for node, uri, sha256 in files_of(chain)
        if not is_model(node)
        and not _HUB_COPY.search(uri)
        and not any(f"/{adapter}/" in uri for adapter in generated(node))
    )
    if result == BLANK:
        return NONE
    return f"{result}\n\nOf which kind each is: {BLANK}"


def _synthetic(chain: Chain) -> str:
    programs = [
        (node, f"rows that a program draws: {adapter}")
        for node in chain.stages_of("ingest")
        if not is_model(node)
        for adapter in generated(node)
    ]
    models = [(node, "text that a model wrote") for node in chain.stages_of(*_WRITTEN)]
    result = cited([*programs, *models])
    return NONE if result == BLANK else result


def _screened(chain: Chain) -> str:
    guards = [
        (node, json.loads(detail(node, "settings")).get("guard", {}))
        for node in chain.stages_of("curate")
    ]
    return cited(
        (node, f"what `{guard.get('model') or guard['address']}` calls harmful was dropped")
        for node, guard in guards
        if guard.get("address")
    )


PAPERS: Mapping[str, tuple[str, Callable[[Chain], Fields]]] = {
    "annex-iv": ("Technical documentation (Annex IV)", _annex_iv),
    "training-summary": ("Public summary of training content (Article 53)", _training_summary),
    "aisvs": ("OWASP AISVS 1.0: data, fine-tuning, supply chain", aisvs),
}
"""Kind -> title, and what fills it in."""
