"""The bill of materials of a release: a CycloneDX 1.7 ML-BOM in JSON.

It is written from the statements of the chain, the manifest and the evaluations; every digest in it
is one that an audit computes again (`tasks.provenance.audit.component_check`). The release folder
holds it, so it has no digest of that folder. Nothing in it depends on the time: the same release
has the same bill.

Differs from cyclonedx-python-lib, which has no classes for model cards: the JSON is written here.
`make test-tools` validates it against that library's strict schema.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from data_schemas.reports import EvaluationReport, ReleaseManifest
from data_schemas.sources import RawFile
from data_schemas.statements import Input, Output, Statement
from tasks.formats.licences import licence_of, responsible_for, spdx_name
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.builder import lock_file
from tasks.provenance.release.software import SCHEMA, file_component
from tasks.store.manifest import MANIFEST, manifest_files

Json = dict[str, Any]
Chain = Mapping[str, Statement]
MODEL = "model"
"""bom-ref of the released model."""
_TASKS = {"merge": "merge", "evaluate": "test", "compare": "test"}
"""First word of a stage's name -> task type of CycloneDX; all others build."""
_MODELS = {"model", "origin", "screen"}
"""Roles of inputs and outputs that are models; all others are data."""


def bill_of_materials(
    manifest: ReleaseManifest,
    candidate: EvaluationReport,
    chain: Chain,
    store: str,
    folder: Path,
    limits: Sequence[str],
) -> Json:
    """Write the bill of a release.

    Args:
        manifest: of the release.
        candidate: its evaluation.
        chain: statements by digest, producers first.
        store: location of the chain's objects.
        folder: verified files of the candidate.
        limits: of the model, as its card lists them.
    """
    raw = list(_raw_files(manifest, chain, store))
    card = _model_card(candidate, chain, folder)
    unknown = sum("licenses" not in one for one in raw)
    note = [f"Of {unknown} raw files no licence is recorded."] if unknown else []
    card["considerations"]["technicalLimitations"] = [*limits, *note]
    card["modelParameters"]["datasets"] = [
        {"ref": one["bom-ref"]} for one in raw if one["type"] == "data"
    ]
    model = {
        "type": "machine-learning-model",
        "bom-ref": MODEL,
        "name": manifest.name,
        "version": manifest.version,
        "hashes": _hashes(manifest.checkpoint),
        "components": list(_files(folder)),
        "modelCard": card,
    }
    identity = f"{manifest.name} {manifest.checkpoint} {','.join(manifest.statements)}"
    return SCHEMA | {
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, identity)}",
        "version": 1,
        "metadata": {"component": model},
        "components": [*_artifacts(manifest, chain), *raw, *software(chain)],
        "dependencies": _dependencies(manifest, chain, store),
        "formulation": [{"workflows": [_workflow(manifest, *item) for item in chain.items()]}],
    }


def software(chain: Chain) -> list[Json]:
    """List the lock files that the steps of a chain ran on, with what they pin."""
    components = []
    for digest in sorted({one.lock for one in chain.values() if one.lock}):
        path = lock_file(digest)
        content = path.read_bytes() if path else None
        components.append(file_component(path.name if path else "lock file", digest, content))
    return components


def _model_card(candidate: EvaluationReport, chain: Chain, folder: Path) -> Json:
    config = json.loads((folder / "config.json").read_bytes())
    stages = {statement.stage.split("/")[0] for statement in chain.values()}
    kind = {
        "architectureFamily": config.get("model_type", ""),
        "modelArchitecture": ", ".join(config.get("architectures") or ()),
    }
    return {
        "modelParameters": {
            "approach": {"type": "reinforcement-learning" if "rl" in stages else "supervised"},
            "task": "text-generation",
            **{name: value for name, value in kind.items() if value},
            "inputs": [{"format": "text"}],
            "outputs": [{"format": "text"}],
        },
        "quantitativeAnalysis": {
            "performanceMetrics": [
                {
                    "type": "accuracy",
                    "value": repr(suite.accuracy),
                    "slice": suite.suite,
                    "confidenceInterval": {
                        "lowerBound": repr(suite.low),
                        "upperBound": repr(suite.high),
                    },
                }
                for suite in candidate.suites
            ]
        },
        "considerations": {},
    }


def _files(folder: Path) -> Iterator[Json]:
    """The files of the checkpoint."""
    path = folder / MANIFEST
    for name, sha256 in manifest_files(path.read_bytes(), str(path)).items():
        yield {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": _hashes(sha256)}


def _artifacts(manifest: ReleaseManifest, chain: Chain) -> list[Json]:
    """Every object of the chain but the model itself."""
    artifacts = {
        _ref(manifest, item): {
            "type": _type(item),
            "bom-ref": _ref(manifest, item),
            "name": f"{statement.stage}: {item.role}",
            "version": item.digest[:12],
            "hashes": _hashes(item.digest),
            **(_personal(statement) if item.role == "curated" else {}),
        }
        for statement in chain.values()
        for item in statement.outputs
        if item.digest != manifest.checkpoint
    }
    return list(artifacts.values())


def _personal(statement: Statement) -> Json:
    """Say that a curated set holds personal data, as its statement counts it."""
    count = statement.facts.get("personal", 0)
    if not count:
        return {}
    policy = json.loads(statement.settings)["personal"]
    text = f"{count} items with contact, card or identity numbers or addresses; policy: {policy}"
    return {"data": [{"type": "dataset", "sensitiveData": [text]}]}


def _raw_files(manifest: ReleaseManifest, chain: Chain, store: str) -> Iterator[Json]:
    listed = origins.listed_raw_files(store, chain.values())
    sources = {
        origins.public_name(item.uri, item.digest): item
        for statement in chain.values()
        for item in statement.inputs
        if origins.is_source(item)
    }
    for name, sha256 in manifest.raw_files.items():
        yield {
            "type": _type(sources[name]) if name in sources else "data",
            "bom-ref": f"raw:{name}",
            "name": PurePosixPath(name).name,
            "hashes": _hashes(sha256),
            **(_terms(listed[name]) if name in listed else {}),
        }


def _terms(raw: RawFile) -> Json:
    """Say under which licence a raw file is, and who answers for it."""
    licence, responsible = licence_of(raw), responsible_for(raw)
    if not licence and not responsible:
        return {}
    spdx = spdx_name(licence)
    name = {"id": spdx} if spdx else {"name": licence}
    terms = {"licenses": [{"license": {**name, "acknowledgement": "declared"}}]}
    return {
        **(terms if licence else {}),
        **({"supplier": {"name": responsible}} if responsible else {}),
        "properties": [{"name": "eachprompt:adapter", "value": raw.adapter}],
    }


def _dependencies(manifest: ReleaseManifest, chain: Chain, store: str) -> list[Json]:
    needs: dict[str, set[str]] = defaultdict(set)
    for statement in chain.values():
        for item in statement.outputs:
            uri = origins.object_uri(store, item.uri, item.digest)
            raw = [
                f"raw:{origins.public_name(origins.raw_name(item.digest, one), one.sha256)}"
                for one in origins.read_raw_files(uri)
            ]
            needs[_ref(manifest, item)] |= {
                *(_ref(manifest, one) for one in statement.inputs),
                *raw,
            }
    return [{"ref": ref, "dependsOn": sorted(on)} for ref, on in needs.items()]


def _workflow(manifest: ReleaseManifest, digest: str, statement: Statement) -> Json:
    task = _TASKS.get(statement.stage.split("/")[0], "build")
    inputs = [{"resource": {"ref": _ref(manifest, item)}} for item in statement.inputs]
    outputs = [
        {"type": "artifact", "resource": {"ref": _ref(manifest, item)}}
        for item in statement.outputs
    ]
    facts = {
        "settings": origins.public_settings(statement),
        "code": " ".join(statement.code),
        "packages": statement.environment,
        "lock": statement.lock,
        "container": statement.container,
    }
    return {
        "bom-ref": f"statement:{digest}",
        "uid": digest,
        "name": statement.stage,
        "taskTypes": [task],
        **({"inputs": inputs} if inputs else {}),
        **({"outputs": outputs} if outputs else {}),
        "properties": [
            {"name": f"eachprompt:{name}", "value": value} for name, value in facts.items() if value
        ],
    }


def _ref(manifest: ReleaseManifest, item: Input | Output) -> str:
    if item.digest == manifest.checkpoint:
        return MODEL
    if isinstance(item, Input) and origins.is_source(item):
        return f"raw:{origins.public_name(item.uri, item.digest)}"
    return f"object:{item.digest}"


def _type(item: Input | Output) -> str:
    return "machine-learning-model" if item.role in _MODELS else "data"


def _hashes(sha256: str) -> list[Json]:
    return [{"alg": "SHA-256", "content": sha256}]
