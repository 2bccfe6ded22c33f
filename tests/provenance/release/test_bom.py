"""The bill of materials of a small chain written by hand: raw rows, a base, SFT, RL."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef
from data_schemas.reports import EvaluationReport, GateDecision, ReleaseManifest, SuiteScore
from data_schemas.statements import Input, Output, Statement
from tasks.provenance.lineage.origins import listed_raw_files
from tasks.provenance.lineage.statements import chain, save_statement
from tasks.provenance.release.bom import bill_of_materials
from tasks.provenance.release.card import model_card
from tasks.provenance.release.evidence import unlicensed
from tasks.provenance.release.release import release_manifest
from tasks.store.local import NewObject, new_object
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
        statement = Statement(
            stage=stage,
            settings='{"steps":3}',
            code=("c" * 64,),
            environment="e" * 64,
            lock="f" * 64,
            inputs=tuple(inputs),
            outputs=(Output(role=role, uri=committed.uri, digest=committed.digest),),
            facts={},
        )
        name = save_statement(str(self.store), statement)
        read = Input(role=role, uri=committed.uri, digest=committed.digest, statement=name)
        return committed, read


def evaluation(digest: str) -> EvaluationReport:
    score = SuiteScore(
        suite="domain:maths",
        problems=10,
        samples=4,
        accuracy=1 / 3,
        low=0.25,
        high=0.5,
        score=0.4,
        pass_at_k=0.6,
        abstained=0,
    )
    return EvaluationReport(
        model="rl/one",
        checkpoint=digest,
        suites=(score,),
        truncated_share=0.0,
        mean_response_tokens=1.0,
        mean_entropy_nats=0.1,
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


@pytest.mark.tools
def test_the_bill_is_valid_by_the_strict_schema_of_cyclonedx(bill, tmp_path):
    path = tmp_path / "bill.json"
    path.write_text(json.dumps(bill))
    script = Path(__file__).with_name("public_schema.py")
    command = [ROOT / ".venv-tools" / "bin" / "python", script, path]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)

    assert "valid\n" == done.stdout
