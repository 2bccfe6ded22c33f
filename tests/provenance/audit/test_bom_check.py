"""Every claim of a bill of materials is looked up."""

import copy
import json

import pytest

from data_schemas.statements import Statement
from tasks.provenance.audit.component_check import bom_problems
from tasks.provenance.release.software import file_component
from tasks.store.files import sha256_file
from tests.packages import ROOT
from tests.records import filled

STATEMENT = filled(Statement, stage="rl/one", code=("c1", "c2"), environment="e", lock="l")
BILL = {
    "metadata": {
        "component": {
            "bom-ref": "model",
            "hashes": [{"alg": "SHA-256", "content": "h1"}],
            "components": [{"bom-ref": "file:a", "hashes": [{"alg": "SHA-256", "content": "h2"}]}],
            "modelCard": {
                "quantitativeAnalysis": {
                    "performanceMetrics": [{"type": "accuracy", "slice": "all", "value": "0.5"}]
                }
            },
        }
    },
    "components": [{"bom-ref": "raw:x", "hashes": [{"alg": "SHA-256", "content": "h3"}]}],
    "formulation": [
        {
            "workflows": [
                {
                    "uid": "s1",
                    "name": "rl/one",
                    "properties": [
                        {"name": "eachprompt:settings", "value": "{}"},
                        {"name": "eachprompt:code", "value": "c1 c2"},
                        {"name": "eachprompt:packages", "value": "e"},
                        {"name": "eachprompt:lock", "value": "l"},
                    ],
                }
            ]
        }
    ],
}

LOCK = ROOT / "lock_cpu.txt"
SOFTWARE = file_component(LOCK.name, sha256_file(LOCK), LOCK.read_bytes())


def problems(bill: object) -> list[str]:
    facts = {"accuracy/all": 0.5}
    hashed = {"h1", "h2", "h3"}
    return list(bom_problems(json.dumps(bill).encode(), hashed, {"s1": STATEMENT}, facts))


def test_a_bill_whose_claims_are_all_found_has_no_problem():
    assert [] == problems(BILL)


def test_software_that_no_lock_of_the_chain_pins_is_named():
    locked = STATEMENT.model_copy(update={"lock": sha256_file(LOCK)})
    bill = copy.deepcopy(BILL)
    bill["formulation"][0]["workflows"][0]["properties"][3]["value"] = locked.lock

    def found() -> list[str]:
        facts, content = {"accuracy/all": 0.5}, json.dumps(bill).encode()
        return list(bom_problems(content, {"h1", "h2", "h3"}, {"s1": locked}, facts))

    bill["components"].append(copy.deepcopy(SOFTWARE))
    assert [] == found()
    bill["components"][-1]["components"][0]["version"] = "6.6.6"
    assert [f"lock_cpu.txt pins other software than lock:{locked.lock} lists"] == found()


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ("metadata component hashes 0 content", "other", "model has SHA-256 other"),
        ("metadata component hashes 0 alg", "MD5", "model has MD5 h1"),
        ("metadata component components 0 hashes 0 content", "other", "file:a has SHA-256 other"),
        ("components 0 hashes 0 content", "other", "raw:x has SHA-256 other"),
        (
            "metadata component modelCard quantitativeAnalysis performanceMetrics 0 value",
            "0.9",
            "accuracy on all is 0.9, the release has 0.5",
        ),
        ("formulation 0 workflows 0 uid", "s2", "the statement s2, which the chain lacks"),
        ("formulation 0 workflows 0 name", "rl/two", "rl/two is not as in its statement s1"),
        ("formulation 0 workflows 0 properties 0 value", "[]", "is not as in its statement s1"),
        ("formulation 0 workflows 0 properties 3 name", "x", "is not as in its statement s1"),
        ("formulation", [], "is no bill of materials of this version"),
    ],
)
def test_a_claim_without_evidence_is_named(place, value, problem):
    bill = copy.deepcopy(BILL)
    *way, last = [int(part) if part.isdecimal() else part for part in place.split()]
    inner = bill
    for part in way:
        inner = inner[part]
    inner[last] = value
    (found,) = problems(bill)

    assert problem in found
