"""The bill of materials of a small chain written by hand: raw rows, a base, SFT, RL."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef
from data_schemas.reports import EvaluationReport, GateDecision, ReleaseManifest
from data_schemas.statements import Input, Output, Statement
from tasks.provenance.lineage.origins import listed_raw_files
from tasks.provenance.lineage.statements import chain, save_statement
from tasks.provenance.release.bom import bill_of_materials
from tasks.provenance.release.card import model_card
from tasks.provenance.release.evidence import unlicensed
from tasks.provenance.release.release import release_manifest
from tasks.store.local import NewObject, new_object
from tests.records import filled, suite_score
from tests.test_layout import ROOT

NO_TERMS: Mapping[str, Mapping[str, str]] = {}
BASE = "file:///shipped/base"


class Chain:
    """ingest/base and ingest -> sft -> rl, with objects of a few bytes."""

    def __init__(self, store: Path, terms: Mapping[str, Mapping[str, str]] = NO_TERMS) -> None:
        self.store = store
        shipped = Input(role="origin", uri=BASE, digest="b" * 64, statement="")
        self.base, base = self.made("ingest/base", "model", [shipped])
        raw = [
            {"adapter": adapter, "uri": f"/data/{adapter}.jsonl", "sha256": digit * 64}
            | {"bytes": 3, "limit": 0, "source": 0, **terms.get(adapter, {})}
            for adapter, digit in (("gsm8k", "1"), ("prompt_jsonl", "2"))
        ]
        self.raw, read = self.made("ingest", "raw", [], json.dumps(raw))
        self.sft, tuned = self.made("sft/reasoning", "model", [base, read])
        self.model, last = self.made("rl/one", "model", [tuned, read])
        self.ref = CheckpointRef(
            uri=self.model.uri, digest=self.model.digest, statement=last.statement
        )

    def made(
        self, stage: str, role: str, inputs: list[Input], raw: str = ""
    ) -> tuple[NewObject, Input]:
        with new_object(self.store) as (folder, committed):
            (folder / "weights.safetensors").write_text(stage)
            config = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"]}
            (folder / "config.json").write_text(json.dumps(config))
            if raw:
                (folder / "raw_files.json").write_text(raw)
        statement = filled(
            Statement,
            stage=stage,
            settings='{"steps":3}',
            lock="f" * 64,
            inputs=tuple(inputs),
            outputs=(Output(role=role, uri=committed.uri, digest=committed.digest),),
        )
        name = save_statement(str(self.store), statement)
        read = Input(role=role, uri=committed.uri, digest=committed.digest, statement=name)
        return committed, read


def evaluation(digest: str) -> EvaluationReport:
    score = suite_score(
        1 / 3, suite="domain:maths", problems=10, low=0.25, high=0.5, score=0.4, pass_at_k=0.6
    )
    return filled(
        EvaluationReport, model="rl/one", checkpoint=digest, suites=(score,), mean_entropy_nats=0.1
    )


@pytest.fixture
def made(tmp_path) -> Chain:
    return Chain(tmp_path)


def statements_of(made: Chain) -> dict[str, Statement]:
    return chain(str(made.store), [made.ref.statement])


def manifest_of(made: Chain) -> ReleaseManifest:
    decision = GateDecision(released=True, reasons=(), comparisons=())
    return release_manifest("tiny", made.ref, statements_of(made), str(made.store), decision)


def bill_of(made: Chain) -> dict:
    return bill_of_materials(
        manifest_of(made),
        evaluation(made.ref.digest),
        statements_of(made),
        str(made.store),
        Path(made.model.uri),
        ["It is small."],
    )


def card_of(made: Chain) -> str:
    statements = statements_of(made)
    raw = listed_raw_files(str(made.store), statements.values())
    return model_card(manifest_of(made), [evaluation(made.ref.digest)], statements, raw=raw)


@pytest.fixture
def bill(made) -> dict:
    return bill_of(made)


def test_the_model_is_named_by_the_digest_of_its_checkpoint(made, bill):
    model = bill["metadata"]["component"]

    assert ("machine-learning-model", "tiny", made.model.digest[:12]) == (
        model["type"],
        model["name"],
        model["version"],
    )
    assert [{"alg": "SHA-256", "content": made.model.digest}] == model["hashes"]
    assert ["config.json", "weights.safetensors"] == [one["name"] for one in model["components"]]
    assert {
        "approach": {"type": "reinforcement-learning"},
        "task": "text-generation",
        "architectureFamily": "qwen3_moe",
        "modelArchitecture": "Qwen3MoeForCausalLM",
        "inputs": [{"format": "text"}],
        "outputs": [{"format": "text"}],
        "datasets": [
            {"ref": "raw:gsm8k.jsonl@11111111"},
            {"ref": "raw:prompt_jsonl.jsonl@22222222"},
        ],
    } == model["modelCard"]["modelParameters"]


def test_parents_base_and_data_are_components_with_licences_where_known(made, bill):
    found = {one["bom-ref"]: one for one in bill["components"]}

    assert {
        f"object:{made.base.digest}": "machine-learning-model",
        f"object:{made.sft.digest}": "machine-learning-model",
        f"object:{made.raw.digest}": "data",
        "raw:base@bbbbbbbb": "machine-learning-model",
        "raw:gsm8k.jsonl@11111111": "data",
        "raw:prompt_jsonl.jsonl@22222222": "data",
        f"lock:{64 * 'f'}": "file",
    } == {ref: one["type"] for ref, one in found.items()}
    assert "MIT" == found["raw:gsm8k.jsonl@11111111"]["licenses"][0]["license"]["id"]
    assert "licenses" not in found["raw:prompt_jsonl.jsonl@22222222"]


TERMS = {
    "prompt_jsonl": {"licence": "cc-by-4.0", "responsible": "shop team"},
    "gsm8k": {"licence": "as agreed with the seller"},
}


def test_terms_of_ones_own_tables_are_in_bill_card_and_what_the_gate_reads(tmp_path):
    made = Chain(tmp_path, TERMS)
    bill, card = bill_of(made), card_of(made)
    found = {one["bom-ref"]: one for one in bill["components"]}
    own, others = found["raw:prompt_jsonl.jsonl@22222222"], found["raw:gsm8k.jsonl@11111111"]

    # A name of SPDX in its own spelling; words stay words.
    assert [{"license": {"id": "CC-BY-4.0", "acknowledgement": "declared"}}] == own["licenses"]
    assert {"name": "shop team"} == own["supplier"]
    assert "as agreed with the seller" == others["licenses"][0]["license"]["name"]
    assert f"| `{'2' * 64}` | `cc-by-4.0` | `shop team` |" in card
    assert ("base@bbbbbbbb",) == unlicensed(str(tmp_path), statements_of(made))


def test_a_raw_file_or_a_base_without_a_licence_is_named(made):
    assert ("base@bbbbbbbb", "prompt_jsonl.jsonl@22222222") == unlicensed(
        str(made.store), statements_of(made)
    )


def test_dependencies_and_steps_are_those_of_the_chain(made, bill):
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    steps = {one["name"]: one for one in bill["formulation"][0]["workflows"]}
    base, raw, sft = (f"object:{one.digest}" for one in (made.base, made.raw, made.sft))

    assert {
        "model": sorted([sft, raw]),
        sft: sorted([base, raw]),
        raw: ["raw:gsm8k.jsonl@11111111", "raw:prompt_jsonl.jsonl@22222222"],
        base: ["raw:base@bbbbbbbb"],
    } == needs
    assert ["ingest/base", "ingest", "sft/reasoning", "rl/one"] == sorted(
        steps, key=["ingest/base", "ingest", "sft/reasoning", "rl/one"].index
    )
    assert made.ref.statement == steps["rl/one"]["uid"]
    assert {"name": "eachprompt:settings", "value": '{"steps":3}'} in steps["rl/one"]["properties"]


def test_evaluation_and_limits_are_in_the_model_card(bill):
    card = bill["metadata"]["component"]["modelCard"]

    assert [
        {
            "type": "accuracy",
            "value": "0.3333333333333333",
            "slice": "domain:maths",
            "confidenceInterval": {"lowerBound": "0.25", "upperBound": "0.5"},
        }
    ] == card["quantitativeAnalysis"]["performanceMetrics"]
    assert {
        "technicalLimitations": ["It is small.", "Of 2 raw files no licence is recorded."]
    } == card["considerations"]


WORK = {"copy", "clone", "lint", "scan", "merge", "build", "test", "deliver", "deploy", "release"}
WORK |= {"clean", "other"}
APPROACHES = {"supervised", "unsupervised", "reinforcement-learning"}
APPROACHES |= {"semi-supervised", "self-supervised"}


def within(part, name: str) -> list:
    """All values of a key, at any depth."""
    found = [one for item in part for one in within(item, name)] if isinstance(part, list) else []
    if isinstance(part, dict):
        found += [part[name]] if name in part else []
        found += [one for item in part.values() for one in within(item, name)]
    return found


def broken_rules(bill: dict) -> list[str]:
    """Rules in the text of CycloneDX 1.7 that a bill breaks; its JSON schema checks few of them."""
    names = within(bill, "bom-ref")
    model = bill["metadata"]["component"]
    components = [model, *bill["components"]]
    known = {one["bom-ref"] for one in components}
    steps = [step for formula in bill["formulation"] for step in formula["workflows"]]
    nodes = [one["ref"] for one in bill["dependencies"]]
    card = model["modelCard"]["modelParameters"]
    files = [*within(components, "components"), components]
    rules = {
        "bom-ref: must be unique within the BOM": len(names) == len({*names}),
        "bom-ref: should not start with urn:cdx:": not any(
            one.startswith("urn:cdx:") for one in names
        ),
        "dependency: references a component": {*nodes} <= known,
        "dependency: dependsOn names components, each once": all(
            {*one["dependsOn"]} <= known and len(one["dependsOn"]) == len({*one["dependsOn"]})
            for one in bill["dependencies"]
        ),
        "dependency: one element for each ref": len(nodes) == len({*nodes}),
        "dependency: what has none must be an empty element": {
            one["bom-ref"] for one in components if one["bom-ref"].startswith(("model", "object:"))
        }
        <= {*nodes},
        "workflow: bom-ref, uid and taskTypes are required": all(
            step["bom-ref"] and step["uid"] and {*step["taskTypes"]} <= WORK for step in steps
        ),
        "workflow: a resource is a reference or data": {*within(steps, "ref")} <= known,
        "modelCard: only of a machine-learning-model": all(
            ("modelCard" not in one) or one["type"] == "machine-learning-model"
            for one in components
        ),
        "modelCard: datasets reference components of type data": all(
            "data" == next(one["type"] for one in components if one["bom-ref"] == ref["ref"])
            for ref in card["datasets"]
        ),
        "modelCard: approach": card["approach"]["type"] in APPROACHES,
        "component: data only of type data": all(
            "data" not in one or one["type"] == "data" for one in components
        ),
        "component: name and type are required": all(
            one["name"] and one["type"] for group in files for one in group
        ),
        "license: id or name": all(
            ("id" in one) != ("name" in one) for one in within(bill, "license")
        ),
        "hash: hexadecimal of the length of its algorithm": all(
            one["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", one["content"])
            for group in within(bill, "hashes")
            for one in group
        ),
        "purl: type, name and version": all(
            re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[^@ +]+", one) for one in within(bill, "purl")
        ),
        "serialNumber: an RFC 4122 UUID": bool(
            re.fullmatch(
                r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"]
            )
        ),
        "version: from 1 on": bill["version"] >= 1,
    }
    return [rule for rule, holds in rules.items() if not holds]


def test_a_bill_has_what_the_text_of_cyclonedx_requires(bill):
    assert [] == broken_rules(bill)


@pytest.mark.parametrize(
    ("place", "value", "broken"),
    [
        (("components", 0, "bom-ref"), "model", "bom-ref: must be unique within the BOM"),
        (("dependencies", 0, "dependsOn"), ["gone"], "dependency: dependsOn names components,"),
        (("dependencies", 0, "ref"), "gone", "dependency: references a component"),
        (("formulation", 0, "workflows", 0, "taskTypes"), ["train"], "workflow: bom-ref, uid and "),
        (("components", 0, "hashes", 0, "content"), "12", "hash: hexadecimal of the length of its"),
    ],
)
def test_a_bill_that_breaks_a_rule_of_the_text_is_found(bill, place, value, broken):
    *way, last = place
    part = bill
    for step in way:
        part = part[step]
    part[last] = value

    assert any(rule.startswith(broken) for rule in broken_rules(bill))


@pytest.mark.tools
def test_the_bill_is_valid_by_the_strict_schema_of_cyclonedx(bill, tmp_path):
    path = tmp_path / "bill.json"
    path.write_text(json.dumps(bill))
    script = Path(__file__).with_name("public_schema.py")
    command = [ROOT / ".venv-tools" / "bin" / "python", script, path]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)

    assert "valid\n" == done.stdout
