"""What papers are filled in from: stages of a chain that was just hashed again, and their facts."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from data_schemas.audits import AuditNode, AuditReport, NodeKind
from data_schemas.sources import RawFile
from data_schemas.statements import ExecutionRecord
from tasks.formats.licences import licence_of, responsible_for

BLANK = "**Blank**: no statement says it."
_LONG = re.compile(r"^-?\d+\.\d{5,}(?:e-?\d+)?$")
"""A number as Python writes it: 0.7654761904761904."""
_DIGITS = 12
_ENDPOINT = ("http://", "https://")
ADDRESS_FACT = "/address"
"""How the fact's name ends in which a stage keeps the address of a model: `judge/address`."""
_MODELS = ("ingest/", "foundation")
"""Stages that read a model from outside."""
Fields = Sequence[tuple[str, str]]
"""Heading, text."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What the papers are filled in from."""

    report: AuditReport
    records: Mapping[str, ExecutionRecord]
    """By statement: when and for how long, signed beside the chain and no part of it."""
    raw: Mapping[str, RawFile] = field(default_factory=dict)
    """What the lists of raw files say of each, by its public name."""

    @property
    def stages(self) -> list[AuditNode]:
        """Stages in the order of work."""
        return [node for node in reversed(self.report.nodes) if node.kind == NodeKind.STAGE]

    def stages_of(self, *words: str) -> list[AuditNode]:
        """Stages whose name begins with one of the words."""
        return [node for node in self.stages if node.title.split("/")[0] in words]


def cited(facts: Iterable[tuple[AuditNode, str]]) -> str:
    """Write a line per fact, with its stages and the first digits of their statements."""
    stages: dict[str, list[str]] = {}
    for node, text in facts:
        stages.setdefault(text, []).append(f"{node.title} [{node.id[:_DIGITS]}]")
    return "\n".join(f"- {', '.join(names)}: {text}" for text, names in stages.items()) or BLANK


def _rounded(number: re.Match[str]) -> str:
    """0.7654761904761904 -> 0.7655; the statement, which is named beside it, has all digits."""
    return f"{float(number[0]):.4g}"


def facts_of(nodes: Sequence[AuditNode], names: Sequence[str] = ()) -> str:
    """Write facts of statements: all, or those of a name, or that begin like one with a slash."""
    results = []
    for node in nodes:
        details = [name for name, _ in node.details]
        facts = node.details[details.index("settings") + 1 :] if "settings" in details else ()
        texts = [
            f"{name} {_LONG.sub(_rounded, value)}"
            for name, value in facts
            if not names or name in names or f"{name.split('/')[0]}/" in names
        ]
        if texts:
            results.append((node, ", ".join(texts)))
    return cited(results)


def files_of(chain: Chain) -> Iterator[tuple[AuditNode, str, str]]:
    """Yield (stage that read it, uri, sha256) of everything from outside."""
    origins = {node.id: node for node in chain.report.nodes if node.kind == NodeKind.ORIGIN}
    for node in chain.stages:
        for parent in node.parents:
            if parent in origins:
                yield from ((node, uri, sha256) for uri, sha256 in origins[parent].details)


def bases(chain: Chain) -> str:
    """List the files of models that stages read from outside, with their digests."""
    return cited(
        (node, f"`{uri}`, sha256 `{sha256}`")
        for node, uri, sha256 in files_of(chain)
        if is_model(node)
    )


def endpoints(report: AuditReport) -> list[str]:
    """Name the models behind addresses that stages asked, and whose weights nobody proved.

    Judges, teachers, guards, encoders: no audit shows which model answered. A judge in a folder is
    an object of the chain like any other.
    """
    addresses: dict[str, None] = {}
    for node in _stages(report):
        settings = json.loads(detail(node, "settings") or "{}")
        proofs = _proofs_of(node)
        addresses |= dict.fromkeys(one for one in _addresses(settings) if one not in proofs)
    return list(addresses)


def served_models(report: AuditReport) -> list[str]:
    """Describe the models behind addresses that proved their weights to a stage before its work.

    The statement of the stage says so, and whose key vouched; an address that served two models is
    named twice.
    """
    models = [
        f"{address} (weights {weights[:_DIGITS]}, key {key[:16]})"
        for node in _stages(report)
        for address, (weights, key) in _proofs_of(node).items()
    ]
    return list(dict.fromkeys(models))


def introductions(nodes: Iterable[AuditNode]) -> str:
    """Cite what endpoints said of their models, and how they decided known cases."""
    return cited(
        (node, ", ".join(f"{name} {value}" for name, value in facts.items()))
        for node in nodes
        for facts in _endpoint_facts(node)
    )


def _stages(report: AuditReport) -> list[AuditNode]:
    return [node for node in report.nodes if node.kind == NodeKind.STAGE]


def _endpoint_facts(node: AuditNode) -> list[dict[str, str]]:
    """Return, of each role of a stage that an endpoint had, the facts by name."""
    facts = dict(node.details)
    roles = (one.removesuffix(ADDRESS_FACT) for one in facts if one.endswith(ADDRESS_FACT))
    return [
        {name: value for name, value in facts.items() if name.startswith(f"{role}/")}
        for role in roles
    ]


def _proofs_of(node: AuditNode) -> dict[str, tuple[str, str]]:
    """Return (weights, key) by address."""
    facts, proofs = dict(node.details), dict[str, tuple[str, str]]()
    for name, address in facts.items():
        role = name.removesuffix(ADDRESS_FACT)
        weights, key = facts.get(f"{role}/weights", ""), facts.get(f"{role}/signed_by", "")
        if role != name and weights:
            proofs[address] = weights, key
    return proofs


def _addresses(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        own = value.get("address")
        if isinstance(own, str) and own.startswith(_ENDPOINT):
            yield own
        for part in value.values():
            yield from _addresses(part)
    elif isinstance(value, list):
        for part in value:
            yield from _addresses(part)


def file_line(chain: Chain, uri: str, sha256: str) -> str:
    """Name a raw file with its digest, its licence and who answers for it."""
    raw = chain.raw.get(uri)
    terms = (
        (name, text)
        for name, text in (
            ("licence", licence_of(raw) if raw else ""),
            ("responsible", responsible_for(raw) if raw else ""),
        )
        if text
    )
    return "".join([f"`{uri}`, sha256 `{sha256}`", *(f", {name} {text}" for name, text in terms)])


def is_model(node: AuditNode) -> bool:
    return node.title.startswith(_MODELS)


def generated(node: AuditNode) -> list[str]:
    """Name the adapters of a stage's sources that have no path: programs that draw rows."""
    sources = json.loads(detail(node, "settings")).get("sources", [])
    return [source["adapter"] for source in sources if not source.get("path")]


def detail(node: AuditNode, name: str) -> str:
    return dict(node.details).get(name, "")


def inputs_of(node: AuditNode) -> str:
    return ", ".join(
        name.removeprefix("read ") for name, _ in node.details if name.startswith("read ")
    )
