"""Texts that do no task: what they earn, and that every verifier names its own."""

import json
import random
from collections.abc import Sequence

import pytest

from data_schemas.rows import Domain, Problem
from tasks.curation.marketplace.drawing import draw_items
from tasks.gym.degenerate import (
    OF_VERIFIER,
    TEXTS,
    echo_scores,
    free_scores,
    frequent_option,
    spread,
)
from tasks.gym.instructions.rules import echo_share
from tasks.gym.instructions.rules import verify as follow
from tasks.gym.table import VERIFIERS
from tests.records import problem_of


def sample(domain: Domain, count: int) -> list[tuple[Problem, str]]:
    """Problems of the sample world with their solutions."""
    items = draw_items(random.Random(7), domain, problems=True)
    return [
        (
            problem_of(
                item.prompt,
                json.dumps(item.answer),
                id=f"test/{place}",
                domain=domain,
                language=item.language,
                verifier=item.verifier,
                source_row=str(place),
            ),
            item.solution,
        )
        for place, item in zip(range(count), items, strict=False)
    ]


@pytest.mark.parametrize("name", sorted(VERIFIERS))
def test_every_verifier_comes_with_its_degenerate_texts(name: str) -> None:
    assert len(OF_VERIFIER[name]) >= 2
    assert [] == [text for text in OF_VERIFIER[name] if text not in TEXTS]


def test_the_floor_of_the_instruction_family_is_a_frame_around_the_name_of_the_item() -> None:
    (best,) = free_scores(problem for problem, _ in sample(Domain.INSTRUCTION, 60))

    assert "item" in best.text
    assert 0.3 < best.score < 0.6


def test_the_floor_of_the_maths_of_the_sample_world_is_one_calculation_with_all_numbers() -> None:
    (best,) = free_scores(problem for problem, _ in sample(Domain.MATHS, 60))

    assert "first times second plus third number" == best.text
    assert 0.2 < best.score < 0.6


def asked(prompt: str, answer: object, verifier: str, language: str = "en") -> Problem:
    return problem_of(
        prompt,
        json.dumps(answer),
        id=prompt,
        domain=Domain.CHOICE if verifier == "choice" else Domain.MATHS,
        language=language,
        verifier=verifier,
        source_row=prompt,
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sum of the numbers", "1310"),
        ("product of the numbers", "36372"),
        ("first minus last number", "1295"),
        ("first divided by last number", "324.75"),
        ("product of the last two numbers", "28"),
        ("number of numbers", "3"),
        ("its item", "Blue Kettle"),
    ],
)
def test_numbers_and_names_of_a_prompt_are_copied_and_calculated_with(name: str, text: str) -> None:
    problem = asked('A "Blue Kettle" is 1,299. Pay for 7-4 days.', {"value": "1"}, "final_answer")

    assert text == TEXTS[name](problem)


def test_a_prompt_without_numbers_has_zero() -> None:
    problem = asked("How many?", {"value": "1"}, "final_answer")

    assert {"0"} == {TEXTS[name](problem) for name in TEXTS if name.endswith(" last number")}


def test_the_most_frequent_option_is_counted_by_language() -> None:
    golds = [("en", "Shoes"), ("en", "Shoes"), ("en", "Bags"), ("th", "กระเป๋า")]
    problems = [
        asked(f"{place}", {"correct": [gold]}, "choice", language)
        for place, (language, gold) in enumerate(golds)
    ]
    text = frequent_option(problems)

    assert ["Shoes", "กระเป๋า"] == [text(problems[2]), text(problems[3])]
    assert "Shoes" == text(asked("x", {"correct": ["y"]}, "choice", "vi"))
    assert "A" == frequent_option([])(problems[0])


def test_what_several_texts_write_for_a_problem_is_scored_once() -> None:
    problems = [
        asked("7", {"value": "7"}, "final_answer"),
        asked("8", {"value": "8"}, "final_answer"),
    ]
    pairs: list[tuple[str, str]] = []

    def score(members: Sequence[Problem], texts: Sequence[str]) -> list[float]:
        pairs.extend((one.id, text) for one, text in zip(members, texts, strict=True))
        return [float(one.id == text) for one, text in zip(members, texts, strict=True)]

    (best,) = echo_scores(problems, score, lambda problem: "all")

    assert 1.0 == best.score
    assert len(pairs) == len(set(pairs))


def test_an_empty_call_is_the_floor_of_tool_use_in_the_form_that_is_paid() -> None:
    (best,) = free_scores(problem for problem, _ in sample(Domain.TOOL_USE, 40))

    assert "hermes call of the first tool without arguments" == best.text
    assert 0.0 < best.score < 0.2


def test_a_solution_of_the_instruction_family_is_no_echo() -> None:
    assert [1.0] * 300 == [
        follow(problem, solution).score for problem, solution in sample(Domain.INSTRUCTION, 300)
    ]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("ad for a red shoe. say cheap. no commas.", "echo"),
        ('"Ad for a red shoe. Say cheap. No commas."', "echo"),
        ("cheap good nice best great big small", "off_task"),
        ("A cheap blue shoe", "off_task"),
        ("A cheap red shoe", "correct"),
    ],
)
def test_an_ad_names_the_product_and_is_no_echo(response: str, reason: str) -> None:
    gold = {
        "instruction_id_list": ["keywords:existence", "punctuation:no_comma"],
        "kwargs": [{"keywords": ["cheap"]}, {}],
        "about": ["red shoe"],
    }
    problem = problem_of(
        "Ad for a red shoe. Say cheap. No commas.",
        json.dumps(gold),
        domain=Domain.INSTRUCTION,
        verifier="instruction_rules",
    )

    assert reason == follow(problem, response).reason


def test_the_share_of_an_echo_counts_pairs_of_words() -> None:
    assert 1.0 == echo_share("Write an ad for a red shoe.", "an ad for")
    assert 0.75 == echo_share("Write an ad for a red shoe.", "Write an ad for sale")
    assert 0.0 == echo_share("Write an ad for a red shoe.", "shoe")


def test_problems_are_spread_evenly() -> None:
    members = [problem for problem, _ in sample(Domain.MATHS, 10)]

    assert members[::2] == spread(members, 5)
    assert members == spread(members, 20)
