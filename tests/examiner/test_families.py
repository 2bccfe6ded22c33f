"""Classes of answers: what they make is what they say, and the same for the same seed."""

import json
import random
from itertools import islice
from pathlib import Path

from tasks.store.files import canonical_json
from tests.examiner import fields, programs
from tests.examiner.case import Answer, AnswerClass, Question
from tests.examiner.families import FAMILIES, cases, drawn
from tests.examiner.maths.exact import read
from tests.examiner.maths.golds import understand
from tests.examiner.maths.right import SLOT
from tests.examiner.maths.table import RIGHT, WRONG
from tests.records import problem_of
from tests.tables import for_each

CLASSES = {(family.name, kind.name): kind for family in FAMILIES for kind in family.classes}


def with_request(gold: str, language: str = "en", solution: str = "") -> Question:
    problem = problem_of("How many?", canonical_json({"value": gold}).decode(), language=language)
    return Question(problem, understand(gold, "How many?"), solution)


def made(kind: AnswerClass, question: Question, draws: int = 40) -> set[str]:
    """Everything that a class makes of a question in some draws."""
    found = [kind.make(question, random.Random(seed)) for seed in range(draws)]
    return {a.response if isinstance(a, Answer) else a for a in found if a is not None}


def test_no_two_classes_of_a_family_share_a_name() -> None:
    assert sum(len(family.classes) for family in FAMILIES) == len(CLASSES)


@for_each("key", CLASSES)
def test_a_class_says_in_one_line_what_it_does(key: tuple[str, str]) -> None:
    kind = CLASSES[key]

    assert [True, True, False] == [bool(kind.about), bool(kind.example), "\n" in kind.about]


@for_each(
    ("name", "gold", "expected"),
    [
        ("fraction_slash", r"\frac{1}{2}", {r"\boxed{1/2}", r"\boxed{1 / 2}"}),
        ("decimal", r"\frac{1}{4}", {r"\boxed{0.25}"}),
        ("common_factor", "6x+4", {r"\boxed{2(2+3x)}"}),
        ("root_below", r"\frac{\sqrt{3}}{3}", {r"\boxed{\frac{1}{\sqrt{3}}}"}),
        ("power_of_ten", "7200", {r"\boxed{7.2 \cdot 10^{3}}", r"\boxed{7.2 \times 10^{3}}"}),
        ("typed_signs", "-5", {"\\boxed{\u22125}"}),
        (
            "list_order",
            "81, 256",
            {rf"\boxed{{{v}}}" for v in ("81, 256", "256, 81", "256,81", r"256 \text{ and } 81")},
        ),
    ],
)
def test_an_equivalent_is_the_value_in_other_signs(
    name: str, gold: str, expected: set[str]
) -> None:
    (kind,) = [kind for kind in RIGHT if kind.name == name]

    assert {f"Therefore, the answer is ${box}$." for box in expected} == made(
        kind, with_request(gold)
    )


@for_each(
    ("name", "gold"),
    [
        ("decimal", r"\frac{1}{3}"),
        ("thousands", "720"),
        ("root_below", r"\sqrt{3}+1"),
        ("term_order", "7"),
        ("digit", r"\tan x"),
        ("order", "(2,2)"),
        ("swapped_digits", "55"),
        ("superscript", "51"),
        ("factorial", "2"),
        ("power", "1"),
        ("sign", "0"),
        ("reciprocal", "-1"),
    ],
)
def test_where_a_verdict_would_be_open_to_debate_nothing_is_made(name: str, gold: str) -> None:
    (kind,) = [kind for kind in (*RIGHT, *WRONG) if kind.name == name]

    assert set() == made(kind, with_request(gold))


@for_each("gold", ["27", "-4", "2.50", r"3+2\sqrt{2}", "p - q", "x^2+3x", "0", "2^5"])
def test_a_changed_value_is_read_as_another_one(gold: str) -> None:
    changing = ("digit", "swapped_digits", "operator", "sum_as_product", "letter", "sign")
    changing += ("off_by_one", "ten_times", "reciprocal", "flat_exponent", "root_lost")
    boxes = [
        answer.partition("\\boxed{")[2].rpartition("}$")[0]
        for kind in WRONG
        if kind.name in changing
        for answer in made(kind, with_request(gold))
    ]

    assert boxes
    assert [] == [box for box in boxes if read(box) == read(gold)]


def test_a_solution_is_ended_by_the_gold_or_by_another_value() -> None:
    question = with_request("72", solution=f"48 + 24 are\n\\boxed{{{SLOT}}}")
    kinds = {kind.name: kind for kind in (*RIGHT, *WRONG)}

    assert {"48 + 24 are\n\\boxed{72}"} == made(kinds["solution"], question)
    assert {f"48 + 24 are\n\\boxed{{{n}}}" for n in (71, 73, 74, 82)} == made(
        kinds["wrong_solution"], question
    )


def test_a_key_stands_twice_with_another_value() -> None:
    question = Question(with_request("1").problem, {"Size": "XL"})
    (kind,) = [kind for kind in fields.WRONG if kind.name == "duplicate_key"]

    for text in made(kind, question):
        values = [value for _, value in json.loads(text, object_pairs_hook=list)]
        assert 2 == len(set(values)), text
        assert "XL" in values


def test_a_program_is_wrong_for_the_arguments_of_one_test_only() -> None:
    tests = ["assert f(1) == 2", "assert f([2], 3) == [5]"]
    facts = programs.reference("def f(*a):\n    return 2 if a == (1,) else [5]", "f", tests)
    question = Question(with_request("1").problem, facts)
    (kind,) = [kind for kind in programs.WRONG if kind.name == "one_test_wrong"]
    (text,) = made(kind, question)
    space: dict = {}
    exec(text.removeprefix("```python\n").removesuffix("\n```"), space)

    assert (2, [5, 1]) == (space["f"](1), space["f"]([2], 3))


def test_the_same_seed_draws_the_same_cases_and_another_one_does_not() -> None:
    family = FAMILIES[-1]
    questions = [with_request(str(gold)) for gold in range(3, 60)]

    def some(seed: int) -> list[str]:
        return [case.response for case in islice(drawn(family, questions, seed), 300)]

    assert some(1) == some(1) != some(2)
    assert 300 == len(set(some(1)))


def test_a_folder_without_data_sets_has_no_cases(tmp_path: Path) -> None:
    assert [] == list(cases(tmp_path, 100, seed=0))
