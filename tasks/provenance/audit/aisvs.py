"""OWASP AISVS 1.0 for a chain: which criteria it meets, by which statements, and which not.

Chapters C1 (training data), C3.1, C3.2 and C3.5 (models, their validation, fine-tuning) and C6
(supply chain): those that a pipeline of training can answer. Of C3, deployment (3.3) and
environments (3.4) are the operator's. The words are ours; the numbers and levels are those of the
standard (https://github.com/OWASP/AISVS, folder 1.0, July 2026).
"""

import json
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from data_schemas.pass_rates import ANNOTATOR
from data_schemas.settings import Licences
from data_schemas.sources import RawFile
from tasks.formats.licences import lacks_licence, responsible_for
from tasks.provenance.audit.chain import (
    BLANK,
    Chain,
    Fields,
    bases,
    cited,
    detail,
    endpoints,
    facts_of,
    file_line,
    files_of,
    generated,
    introductions,
    is_model,
    served_models,
)


class Fulfilment(StrEnum):
    """How far a chain meets a criterion."""

    MET = "Met"
    PARTLY = "Partly met"
    NOT_MET = "Not met"
    PERSON = "For a person to judge"
    NOTHING_TO_DO = "Not applicable"


Finding = tuple[Fulfilment, str]
"""With the reason, or the statements it is known from."""


class Requirement(NamedTuple):
    """One line of the standard, in short."""

    number: str
    level: int
    words: str
    check: Callable[[Chain], Finding]


def aisvs(chain: Chain) -> Fields:
    """Fill in the criteria; the first field counts them."""
    findings = [(one, *one.check(chain)) for one in CRITERIA]
    counts = [
        f"{number} {fulfilment.lower()}"
        for fulfilment in Fulfilment
        if (number := sum(result is fulfilment for _, result, _ in findings))
    ]
    fields = [("Criteria", f"{len(CRITERIA)}: {', '.join(counts)}.")]
    fields += [
        (f"{one.number} (level {one.level}) {one.words}", f"**{fulfilment}.**{_behind(text)}")
        for one, fulfilment, text in findings
    ]
    return fields


def _behind(text: str) -> str:
    """A list begins its own block: behind words of the same line, its first item is no item."""
    return f"\n\n{text}" if text.startswith("- ") else f" {text}"


def _person(text: str) -> Callable[[Chain], Finding]:
    return lambda _: (Fulfilment.PERSON, text)


def _partly(text: str) -> Callable[[Chain], Finding]:
    return lambda _: (Fulfilment.PARTLY, text)


def _not_met(text: str) -> Callable[[Chain], Finding]:
    return lambda _: (Fulfilment.NOT_MET, text)


def _if_proved(text: str) -> Callable[[Chain], Finding]:
    def check(chain: Chain) -> Finding:
        if chain.report.proved:
            return Fulfilment.MET, text
        return Fulfilment.NOT_MET, "This audit found something; its verdict stands at the top."

    return check


def _sources(chain: Chain) -> Finding:
    rows = [one for one in files_of(chain) if not is_model(one[0])]
    listed = cited((node, file_line(chain, uri, sha256)) for node, uri, sha256 in rows)
    drawn = cited(
        (node, f"rows that a program draws: {adapter}")
        for node in chain.stages_of("ingest")
        if not is_model(node)
        for adapter in generated(node)
    )
    lists = [text for text in (listed, drawn) if text != BLANK]
    unlicensed = sum(map(lacks_licence, chain.raw.values()))
    nobody = sum(not responsible_for(one) for one in chain.raw.values())
    text = (
        f"Origin, digest and processing are signed. Of {len(chain.raw)} raw files {unlicensed} "
        f"have no licence and {nobody} no responsible party (`licence` and `responsible` of a "
        "source or a mapping); the method of collection and limits of use beyond the licence are "
        "not recorded."
    )
    return Fulfilment.PARTLY, "\n\n".join([text, *lists])


def _annotators(chain: Chain) -> Finding:
    sources = sorted({one.adapter for one in chain.raw.values() if _has_annotator(one)})
    if not sources:
        return Fulfilment.PERSON, "Labels come from outside; no source says who gave them."
    return Fulfilment.PARTLY, (
        f"Who labelled a row is kept as facet `{ANNOTATOR}` of {', '.join(sources)}; who may "
        "label is decided outside."
    )


def _has_annotator(raw: RawFile) -> bool:
    return raw.mapping is not None and ANNOTATOR in raw.mapping.facets


def _bill(chain: Chain) -> Finding:
    text = "CycloneDX, beside the weights, with licence and supplier of each raw file."
    if missing := sum(map(lacks_licence, chain.raw.values())):
        return Fulfilment.PARTLY, f"{text} {missing} of {len(chain.raw)} have no licence."
    return Fulfilment.MET, text


def _complete_bill(chain: Chain) -> Finding:
    releases = chain.stages_of("release")
    asked = [json.loads(detail(node, "settings")).get("licences", "") for node in releases]
    if releases and all(one == Licences.REQUIRED for one in asked):
        return Fulfilment.MET, cited((node, "release.licences: required") for node in releases)
    return Fulfilment.NOT_MET, "A missing licence refuses where release.licences is required."


def _personal(chain: Chain) -> Finding:
    curations = chain.stages_of("curate")
    policies = {json.loads(detail(node, "settings")).get("personal", "") for node in curations}
    counts = [value for node in curations for name, value in node.details if name == "personal"]
    text = f"curation.personal: {', '.join(sorted(policies))}. Names of people are not looked for."
    text += f"\n\n{facts_of(curations, ('personal',))}"
    if "count" in policies and any(count != "0" for count in counts):
        return Fulfilment.NOT_MET, text
    return Fulfilment.PARTLY, text


def _poisoning(chain: Chain) -> Finding:
    nights = facts_of(chain.stages_of("examine_rows"))
    text = (
        "Demonstrations are verified against gold answers, repeats and overlaps dropped. A night "
    )
    text += "holds files whose answers contradict known ones or that are of another kind."
    return Fulfilment.PARTLY, text if nights == BLANK else f"{text}\n\n{nights}"


def _generated_labels(chain: Chain) -> Finding:
    writers = chain.stages_of("distil", "promptcot")
    if not writers:
        return Fulfilment.NOTHING_TO_DO, "No stage of this chain lets a model write labels."
    text = "What models wrote is verified where there is a gold answer, and has no confidence."
    return Fulfilment.PARTLY, f"{text}\n\n{facts_of(writers)}"


def _slices(chain: Chain) -> Finding:
    text = "The gate compares every language, source, level and domain with the model before: none "
    text += "may lose for certain. Bias towards people is not measured."
    return Fulfilment.PARTLY, f"{text}\n\n{facts_of(chain.stages_of('release'), ('accuracy/',))}"


def _harmful(chain: Chain) -> Finding:
    guards = [
        (node, guard.get("model") or guard["address"])
        for node in chain.stages_of("curate")
        if (guard := json.loads(detail(node, "settings")).get("guard", {})).get("address")
    ]
    if not guards:
        return Fulfilment.NOT_MET, "No guard is set (curation.guard); nothing looked for it."
    return Fulfilment.MET, cited((node, f"what `{name}` calls harmful") for node, name in guards)


def _registry(chain: Chain) -> Finding:
    if chain.report.has_catalogue:
        return Fulfilment.MET, "MLflow's registered versions were compared with the statements."
    return Fulfilment.PARTLY, "Statements list every model; MLflow was not reached by this audit."


def _signed(chain: Chain) -> Finding:
    report = chain.report
    if report.unsigned:
        return Fulfilment.NOT_MET, f"{report.unsigned} statements are not signed."
    signers = ", ".join(f"`{one.fingerprint}`" for one in report.signers)
    if not report.has_key:
        return Fulfilment.PARTLY, f"Signed by {signers}; the auditor named no key (--key)."
    return Fulfilment.MET, f"Signed by {signers}, keys that the auditor named."


def _tests(chain: Chain) -> Finding:
    text = "The gate rules on held-out suites, on harmful and harmless requests where the set has "
    text += "them, and on cut responses."
    return Fulfilment.PARTLY, f"{text}\n\n{facts_of(chain.stages_of('release'))}"


def _provider(chain: Chain) -> Finding:
    names, asked = endpoints(chain.report), introductions(chain.stages)
    if names:
        text = f"Which model answered at {', '.join(names)} is not proved."
        return Fulfilment.NOT_MET, f"{text} What it said and how it decided known cases:\n\n{asked}"
    if not served_models(chain.report):
        return Fulfilment.NOTHING_TO_DO, "No stage used a model of a provider."
    return Fulfilment.MET, f"Every endpoint proved its weights before its use:\n\n{asked}"


def _trainers(chain: Chain) -> Finding:
    names = endpoints(chain.report)
    read = cited(
        (node, f"`{name.removeprefix('read ')}` sha256 `{value}`")
        for node in chain.stages_of("rl")
        for name, value in node.details
        if name.startswith("read ")
    )
    if names:
        text = f"Models behind {', '.join(names)} are not verified; what was read is:"
        return Fulfilment.PARTLY, f"{text}\n\n{read}"
    served = [f"- {one}" for one in served_models(chain.report)]
    return _if_proved("\n".join([read, *served]))(chain)


def _overoptimised(_: Chain) -> Finding:
    text = (
        "The gate asks for a gain on held-out problems, not on rewards; curation names texts that "
        "earn a reward without the task; mismatch of engines is a gate. Monitors are scored and "
        "give no gradient: one that falls by more than release.monitors_may_fall refuses."
    )
    return Fulfilment.PARTLY, text


def _checkpoints(chain: Chain) -> Finding:
    digests = cited(
        (node, f"sha256 `{value}`")
        for node in chain.stages_of("sft", "merge", "rl")
        for name, value in node.details
        if name.startswith("made ")
    )
    return _if_proved(digests)(chain)


def _bases(chain: Chain) -> Finding:
    return _if_proved(bases(chain))(chain)


def _code_in_models(chain: Chain) -> Finding:
    text = "Only safetensors are opened; a folder without them and a model's own code are refused, "
    text += "and pickled files beside them are left out of the store's copy"
    facts = facts_of([node for node in chain.stages if is_model(node)], ("left_out",))
    return Fulfilment.MET, f"{text}." if facts == BLANK else f"{text}:\n\n{facts}"


def _gate(chain: Chain) -> Finding:
    return Fulfilment.MET, cited(
        (node, f"rules of every release: `{detail(node, 'settings')}`")
        for node in chain.stages_of("release")
    )


_OWNER = "The pipeline trains on what a mapping or adapter names; whether all of it is needed is "
CRITERIA = (
    Requirement("1.1.1", 1, "Only the fields that the purpose needs", _person(f"{_OWNER}yours.")),
    Requirement("1.1.2", 2, "Inventory of sources", _sources),
    Requirement(
        "1.1.3",
        2,
        "Integrity in storage and transfer",
        _if_proved("Every object from the raw files on was hashed again by this audit."),
    ),
    Requirement(
        "1.1.4",
        2,
        "Integrity is monitored",
        _partly("Every read compares the digest; how often the audit runs is the operator's."),
    ),
    Requirement("1.1.5", 3, "Data sets are watermarked", _not_met("Nothing is watermarked.")),
    Requirement("1.2.1", 1, "Who may label", _annotators),
    Requirement(
        "1.2.2",
        2,
        "Labels are protected by cryptography",
        _if_proved("Labels are cells of raw files and of decisions, hashed and signed."),
    ),
    Requirement("1.2.3", 2, "Personal data in labels", _personal),
    Requirement("1.3.1", 2, "Poisoned data are looked for", _poisoning),
    Requirement("1.3.2", 2, "Labels that a model wrote", _generated_labels),
    Requirement("1.3.3", 2, "Patterns of bias", _slices),
    Requirement("1.3.4", 2, "Disallowed content is removed", _harmful),
    Requirement("1.3.5", 3, "Clean-label poisoning", _not_met("There is no defence against it.")),
    Requirement("3.1.1", 1, "Registry of models with their origin", _registry),
    Requirement("3.1.2", 2, "Signed model artifacts", _signed),
    Requirement(
        "3.1.3",
        2,
        "Signatures verified on admission and load",
        _partly(
            "`publish`, `chat`, bases and teachers verify; a server of yours does with `eachprompt "
            "audit --folder` in front of it."
        ),
    ),
    Requirement("3.2.1", 1, "Tests before deployment", _tests),
    Requirement(
        "3.2.2",
        2,
        "Quantised models are tested again",
        lambda _: (Fulfilment.NOTHING_TO_DO, "No stage quantises; whoever does has to test."),
    ),
    Requirement("3.2.3", 3, "Changes of a provider's model", _provider),
    Requirement("3.5.1", 2, "Models of the reward are versioned and verified", _trainers),
    Requirement("3.5.2", 3, "Reward hacking is looked for", _overoptimised),
    Requirement(
        "3.5.3",
        3,
        "Each stage verifies what it reads",
        _if_proved("A stage hashes what it reads, and its statement names the digests."),
    ),
    Requirement("3.5.4", 3, "Checkpoints are artifacts of their own", _checkpoints),
    Requirement("6.1.1", 1, "Models are scanned for code", _code_in_models),
    Requirement(
        "6.1.2", 1, "Approved sources only", _person("Settings name sources; you approve.")
    ),
    Requirement("6.1.3", 2, "Integrity of models of others", _bases),
    Requirement("6.1.4", 2, "Acceptance tests before promotion", _gate),
    Requirement(
        "6.2.1",
        1,
        "Machine-readable bill of materials",
        _bill,
    ),
    Requirement(
        "6.2.2",
        2,
        "The bill is signed",
        _if_proved("It lies in the released folder, whose digest the release's statement signs."),
    ),
    Requirement(
        "6.2.3",
        2,
        "An incomplete bill fails the build",
        _complete_bill,
    ),
)
