"""Every case can be solved in every language, and a typical mistake is one."""

import json
import random

import pytest

from tasks.curation.marketplace.ecommerce.cases import TASKS, draw_case
from tasks.curation.marketplace.words import LANGUAGES
from tasks.gym.table import VERIFIERS
from tests.records import problem_of

CASES = 40


def verdict(item, response):
    problem = problem_of(
        item.prompt,
        json.dumps(item.answer),
        id="p",
        domain=item.domain,
        language=item.language,
        verifier=item.verifier,
    )
    return VERIFIERS[item.verifier](problem, response)


@pytest.mark.parametrize("task", TASKS)
def test_the_solution_of_a_case_is_right_and_its_blunder_wrong_in_every_language(task):
    rng = random.Random(task)

    for _ in range(CASES):
        items = draw_case(task, rng)

        assert [language.tag for language in LANGUAGES] == [item.language for item in items]
        for item in items:
            assert verdict(item, item.careful).solved, (item.prompt, item.solution)
            assert not verdict(item, item.hasty).solved, (item.prompt, item.blunder)
            assert "{" not in item.prompt.split("\n", 1)[0]


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_draws_the_same_cases(task):
    assert draw_case(task, random.Random(1)) == draw_case(task, random.Random(1))


def test_a_faulty_product_is_refunded_for_longer_than_a_wrong_size_is_exchanged():
    english = [draw_case("after_sales", random.Random(seed))[0] for seed in range(200)]
    outcomes = {
        (
            item.prompt.partition("\n")[2].split(", ")[2].split(".")[0],
            days <= 7,
            days <= 30,
        ): item.solution
        for item in english
        for days in [int(item.prompt.split("delivered ")[1].split()[0])]
    }

    assert outcomes == {
        ("faulty", True, True): "refund",
        ("faulty", False, True): "refund",
        ("faulty", False, False): "rejection",
        ("wrong size", True, True): "exchange",
        ("wrong size", False, True): "rejection",
        ("wrong size", False, False): "rejection",
        ("no longer wanted", True, True): "rejection",
        ("no longer wanted", False, True): "rejection",
        ("no longer wanted", False, False): "rejection",
    }
