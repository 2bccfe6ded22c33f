"""Baselines learn from the problems to train on, and answer what is held out."""

import json
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.rows import Domain, Problem
from tasks.evaluation.baselines import measure
from tests.records import problem_of


def choice(number: int, prompt: str, answer: str, source: str = "shop") -> Problem:
    others = [[one] for one in ("shoes", "toys", "bags") if one != answer]
    gold = json.dumps({"correct": [answer], "others": others})
    return problem(f"{source}/{number}", prompt, "choice", gold, Domain.CHOICE, source)


def sums(number: int, prompt: str, value: str) -> Problem:
    gold = json.dumps({"value": value})
    return problem(f"sums/{number}", prompt, "final_answer", gold, Domain.MATHS, "sums")


def problem(
    name: str, prompt: str, verifier: str, answer: str, domain: Domain, source: str
) -> Problem:
    return problem_of(prompt, answer, id=name, domain=domain, verifier=verifier, source=source)


TRAINING = [
    choice(1, "Acme red?", "shoes"),
    choice(2, "Acme blue?", "shoes"),
    choice(3, "Bolt red?", "toys"),
    choice(4, "Bolt blue?", "toys"),
    choice(5, "Acme green?", "shoes"),
    sums(1, "Buy 2 at 3 each.", "6"),
    sums(2, "Buy 5 at 4 each.", "20"),
    sums(3, "Buy 2 at 2 each.", "4"),
    problem("code/1", "f?", "code_tests", '{"tests": ["x"]}', Domain.CODE, "code"),
]


@pytest.fixture
def training(tmp_path: Path) -> Path:
    write_table(tmp_path / "problems.parquet", Problem, TRAINING)
    return tmp_path / "problems.parquet"


def test_a_brand_that_sells_one_category_is_looked_up_and_prices_are_multiplied(training: Path):
    held_out = [
        choice(6, "Bolt green?", "toys"),  # green was shoes once, Bolt toys twice
        choice(7, "Acme red?", "shoes"),
        choice(8, "Cord?", "bags"),
        choice(9, "Bolt blue?", "toys"),
        sums(4, "Buy 7 at 8 each.", "56"),
        sums(5, "Buy 9 at 3 each, and 1 free.", "27"),
        problem("code/2", "g?", "code_tests", '{"tests": ["x"]}', Domain.CODE, "code"),
    ]

    accuracy = {one.name: one.accuracy for one in measure(training, held_out)}

    # shoes are three of five: one of four held-out choices
    assert 0.25 == accuracy["majority"]["domain:choice"]
    # of the word Cord nothing is known: the most frequent answer, which is wrong
    assert 0.75 == accuracy["lookup"]["domain:choice"]
    assert 1.0 == accuracy["arithmetic"]["domain:maths"]
    assert "domain:choice" not in accuracy["arithmetic"]
    assert all("domain:code" not in one for one in accuracy.values())
    # what a baseline cannot answer counts as not solved
    assert 2 / 7 == accuracy["arithmetic"]["all"]


def test_a_source_that_is_only_held_out_is_answered_by_what_its_domain_teaches(training: Path):
    (majority, lookup) = measure(training, [choice(1, "Acme white?", "shoes", "benchmark")])

    assert 1.0 == majority.accuracy["source:benchmark"] == lookup.accuracy["source:benchmark"]


def test_without_a_training_problem_of_its_kind_nothing_is_answered(training: Path):
    text = '{"reference": "a"}'
    other = problem("text/1", "?", "reference_text", text, Domain.OPEN_TEXT, "texts")

    assert () == measure(training, [other])
