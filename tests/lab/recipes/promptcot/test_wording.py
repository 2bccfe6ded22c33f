import random
import re
from itertools import islice

import pytest

from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import draw_items
from tasks.lab.recipes.promptcot.wording import Concepts, Sum, WordingTerm, parse, teach_plan
from tests.tables import for_each

BASKET = Sum((WordingTerm(7, "pan", 41), WordingTerm(0, "kite", 350)), 0)


@pytest.mark.parametrize("problems", [True, False])
def test_the_parser_computes_the_answer_and_the_level_of_every_drawn_problem(problems):
    items = islice(draw_items(random.Random(7), Domain.MATHS, problems=problems), 500)
    expected = [(item.solution, item.level) for item in items]

    items = islice(draw_items(random.Random(7), Domain.MATHS, problems=problems), 500)
    found = [parse(item.prompt) for item in items]

    assert expected == [(str(one.answer), one.concepts.level) for one in found if one]


def test_what_is_in_the_wording_but_was_never_drawn_is_read_too():
    expected = Sum(
        (WordingTerm(3, "pan", 12), WordingTerm(2, "kite", 150), WordingTerm(0, "boot", 7)), 0
    )

    assert expected == parse("3 pans at 12 and 2 kites at 150 and a boot at 7. Cost?")
    assert 343 == expected.answer
    assert Concepts(("multiply", "add"), ("pan", "kite", "boot"), 5) == expected.concepts
    change = Sum((WordingTerm(0, "pan", 37),), 50)
    assert change == parse("A pan costs 37. Pay 50. Change?")
    assert 13 == change.answer


@for_each(
    "problem",
    [
        "",
        "3 pans at 4",
        "3 pans at 4. Total",
        "3 pans at 4. Total? 12",
        "1 pans at 4. Total?",
        "3 pan at 4. Total?",
        "3 widgets at 4. Total?",
        "0 pans at 4. Total?",
        "3 pans at 04. Total?",
        "3 pans at 4 and. Total?",
        "3 pans at 4 and a pan at 5. Total?",
        "pan 3. Total?",
        "pan 3, 2 kites at 4. Total?",
        "pan 3, pan 4. Total?",
        "A pan costs 60. Pay 50. Change?",
        "A pan costs 50. Pay 50. Change?",
        "A pan costs 30. Pay 50. Total?",
        "3 pans at 4. Total?\n2 pans at 4. Total?",
    ],
)
def test_what_is_not_in_the_wording_or_has_no_answer_is_no_problem(problem):
    assert parse(problem) is None


def test_no_plan_has_the_result_of_a_step():
    assert BASKET == parse("7 pans at 41 and a kite at 350. Total?")
    rng = random.Random(3)
    plans = {teach_plan(rng, BASKET) for _ in range(50)}

    assert {
        "7 pans at 41; one kite at 350; total",
        "pans, price fair; one kite, price high; total",
        "pans; one kite; total",
    } == plans
    written = {number for plan in plans for number in re.findall(r"\d+", plan)}
    assert {"7", "41", "350"} == written
