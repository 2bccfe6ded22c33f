import random

import pytest

from tasks.lab.recipes.spell import offers
from tasks.lab.recipes.spell.offers import OfferList, Task

LISTS = (
    OfferList("A", (("Nara", 7), ("Kibo", 4))),
    OfferList("B", (("Zeta", 9), ("Tovi", 2))),
)


@pytest.mark.parametrize(
    ("text", "solution", "operations", "steps"),
    [
        ("Nara", "7", 1, "Nara7"),
        ("Kibo + Zeta + Tovi", "15", 3, "Kibo4 Zeta9 Tovi2; 4+9=13; 13+2=15"),
        ("Cheapest of A", "Kibo", 1, "Nara7 Kibo4; Kibo4"),
        ("Dearest of A, B", "Zeta", 2, "Nara7 Kibo4 Zeta9 Tovi2; Zeta9"),
        ("Cheapest: Nara, Kibo, Tovi", "Tovi", 3, "Nara7 Kibo4 Tovi2; Tovi2"),
    ],
)
def test_a_question_has_the_answer_of_its_lists(text, solution, operations, steps):
    found = offers.answer(text, LISTS)

    assert (solution, operations, steps) == (found.answer, found.operations, found.steps)


@pytest.mark.parametrize(
    "text",
    [
        "Luma",
        "Luma + Nara",
        "Cheapest of C",
        "Cheapest of A, A",
        "Dearest: Nara, Luma",
        "Dearest: Kibo, Kibo",
        "What is the cheapest?",
        "",
    ],
)
def test_what_is_no_question_about_the_lists_has_no_answer(text):
    assert offers.answer(text, LISTS) is None


@pytest.mark.parametrize("task", Task)
def test_drawn_questions_are_worked_out_and_as_long_as_asked(task):
    rng = random.Random(0)
    for operations in (2, 3, 4):
        cluster = offers.draw_cluster(rng)
        question = offers.draw_question(rng, task, cluster, operations)

        assert question == offers.answer(question.text, cluster)
        assert operations == question.operations
        assert cluster == tuple(OfferList.read(one.text) for one in cluster)


def test_brands_and_prices_of_a_cluster_are_all_different():
    pairs = [pair for one in offers.draw_cluster(random.Random(1)) for pair in one.offers]

    assert len(pairs) == len({brand for brand, _ in pairs}) == len({price for _, price in pairs})
