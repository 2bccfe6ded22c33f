"""The response that a gold answer names earns full marks."""

import json

from data_schemas.rows import Domain, Problem
from data_schemas.verdicts import abstain, scored
from tasks.gym.references import Trial, likely_cause, references, try_references
from tasks.gym.scoring.canaries import CANARIES
from tasks.gym.table import score_batch
from tests.records import problem_of
from tests.tables import for_each

CALL = {"name": "f", "parameters": {"a": 1, "b": "x y"}}


def task(verifier: str, gold: object) -> Problem:
    return problem_of("?", json.dumps(gold), domain=Domain.OPEN_TEXT, verifier=verifier)


GOLDS = [
    *((one.verifier, one.gold) for one in CANARIES if references(task(one.verifier, one.gold))),
    ("final_answer", {"value": "12", "unit": "km"}),
    ("rule_answer", {"value": "\\boxed{\\frac{3}{4}}"}),
    ("refusal", {"refuse": False}),
    ("tool_calls", {"calls": []}),
    *(
        ("tool_calls", {"calls": [CALL], "form": form})
        for form in ("lines", "toolrl", "hermes", "qwen3_xml", "llama3_json", "pythonic")
    ),
    ("tool_calls", {"calls": [CALL], "form": "toolrl", "answer": True}),
    ("tool_calls", {"calls": [], "form": "toolrl", "answer": True}),
    ("bfcl_calls", {"calls": []}),
    ("bfcl_calls", {"calls": [{"name": "f", "parameters": {"a": [{"k": [1, 2]}], "b": [[1]]}}]}),
]


@for_each(("verifier", "gold"), GOLDS)
def test_what_a_gold_names_earns_full_marks(verifier: str, gold: object):
    (trial,) = try_references([task(verifier, gold)], [()], score_batch)

    assert trial.solves, trial


@for_each(
    ("verifier", "gold"),
    [
        ("generative_judge", {"mode": "reference", "reference": "a"}),
        ("instruction_rules", {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}),
        ("code_tests", {"mode": "asserts", "tests": ["assert f() == 1"]}),
        ("choice", {"right": ["a"]}),
        ("choice", ["a"]),
    ],
)
def test_a_gold_without_a_reference_answer_is_not_tried(verifier: str, gold: object):
    (trial,) = try_references([task(verifier, gold)], [()], score_batch)

    assert trial.verdict is None


def test_the_cause_follows_from_the_verdict():
    problem = task("choice", {"correct": ["a"]})

    assert "1.0" in likely_cause(Trial(problem, "a", scored(0.5, "half")))
    assert "no gold of choice" in likely_cause(Trial(problem, "a", scored(0.0, "wrong")))
    assert "cannot read" in likely_cause(Trial(problem, "a", abstain("bad_gold")))
