"""A gold that no response can meet is the producer's to correct."""

import json
from pathlib import Path

import pytest

from data_schemas.rows import Problem
from tasks.curation.cleaning.golds import gold_fault
from tasks.curation.cleaning.suitability import unsuitable_problem
from tasks.plugins import pin
from tests.records import problem_of
from tests.tables import for_each


def problem(answer: object, verifier: str = "final_answer") -> Problem:
    return problem_of(
        "How much?",
        answer if isinstance(answer, str) else json.dumps(answer),
        id="t/1",
        verifier=verifier,
    )


LATEX = (
    *(
        r"\frac{1}{2}",
        r"\text{odd}",
        r"\tfrac{1}{2}",
        r"3 \times 4",
        r"\theta",
        r"\tan x",
        r"2\tau",
    ),
    *(r"\binom{4}{2}", r"\beta", r"\boxed{7}", r"\bar{x}", r"\rho", r"\right)", r"\rangle", r"\nu"),
    *(r"x \neq 3", r"\nabla f", r"\vec{v}", r"\alpha", r"-\frac{7}{4}"),
)
ESCAPES = {
    "\\f": "\f",
    "\\t": "\t",
    "\\b": "\b",
    "\\r": "\r",
    "\\n": "\n",
    "\\v": "\v",
    "\\a": "\a",
}


@for_each("sound", LATEX)
def test_latex_that_was_read_as_escapes_is_named_and_sound_latex_is_not(sound: str):
    eaten = sound
    for written, read in ESCAPES.items():
        eaten = eaten.replace(written, read)
    assert eaten != sound
    fault = gold_fault(problem({"value": eaten}))

    assert fault is not None
    assert "bad_answer" == fault[0]
    assert gold_fault(problem({"value": sound})) is None


@for_each("value", ["rac{1}{2}", "ext{odd}", "imes 4", "heta", "inom{4}{2}"])
def test_latex_whose_escape_was_stripped_as_a_blank_is_named(value: str):
    assert "lost a backslash" in str(gold_fault(problem({"value": value})))


@for_each("value", ["NULL", "null", "NaN", "N/A", "#N/A", "#REF!", " n/a ", "<NA>"])
def test_words_by_which_exports_write_none_are_no_values(value: str):
    assert "how exports write none" in str(gold_fault(problem({"value": value}, "rule_answer")))


@for_each(
    "value",
    [
        "Two pens cost 4 dollars each. So we pay 8 in total.",
        "First 48 / 2 = 24, then 48 + 24 = 72.\n#### 72",
        "<think>2 + 2</think>4",
        " ".join(["seven"] * 21),
        "先算出每盒的价格再乘以盒数最后加上运费就得到总价。" * 3,
    ],
)
def test_a_whole_solution_is_no_value(value: str):
    assert "a text and no value" in str(gold_fault(problem({"value": value})))


@for_each(
    "value",
    [
        *("7", "-3/4", "Na", "no solution", "none", "undefined", "(2, 12) \\cup (12, 102)"),
        *("12:30 p.m.", "f(x) = ax + b, where a is any positive integer", "St. Louis"),
        *("the midpoints form a regular hexagon", "angle ABC", "text", "a rectangle", "tonight"),
        "We have $5+7$. The sum lies between $\\boxed{12\\text{ and }13}$, as the squares show us.",
    ],
)
def test_a_value_that_a_response_can_have_is_left_alone(value: str):
    assert gold_fault(problem({"value": value})) is None


@pytest.mark.parametrize(
    ("verifier", "answer"),
    [
        ("choice", {"correct": ["\frac{1}{2}"], "options": ["\frac{1}{2}", "3"]}),
        ("extraction", {"attributes": {"Colour": ["blu\ufffd"]}}),
        ("tool_calls", [{"name": "find", "arguments": {"q": "caf\x00"}}]),
    ],
)
def test_a_character_that_no_text_has_is_named_in_every_gold(verifier: str, answer: object):
    assert "bad_answer" in str(gold_fault(problem(answer, verifier)))


def test_the_output_of_a_program_may_have_any_character():
    assert gold_fault(problem({"tests": ["assert f() == '\f'"]}, "code_tests")) is None


OWN = "class Exact:\n    value_gold = {}\n    def __call__(self, problem, response): ...\n"


@pytest.mark.parametrize("declared", [True, False])
def test_a_verifier_of_ones_own_is_asked_whether_its_golds_are_values(
    declared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "values.py").write_text(OWN.format(declared))
    monkeypatch.chdir(tmp_path)
    verifier = pin("values.py:Exact")

    assert declared == bool(gold_fault(problem({"value": "N/A"}, verifier)))
    guess = problem({"value": "yes"}, verifier)
    assert declared == bool(unsuitable_problem(guess))
