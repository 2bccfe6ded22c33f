"""One answer in two spellings has one verdict, from every verifier that reads texts."""

# ruff: noqa: RUF001 - signs that people type
import json

import pytest

from data_schemas.rows import Domain
from tasks.gym.table import score_batch
from tests.records import problem_of

_OPTIONS = {"correct": ["B", "hoà bình"], "others": [["A", "臺灣"], ["C", "นํ้า"]]}


def _verdict(verifier: str, gold: object, response: str, language: str) -> float | None:
    problem = problem_of(
        "question", json.dumps(gold), domain=Domain.GENERAL, language=language, verifier=verifier
    )
    return score_batch([problem], [response])[0].score


@pytest.mark.parametrize(
    ("verifier", "gold", "response", "language"),
    [
        ("final_answer", {"value": r"\text{hòa}"}, r"\boxed{\text{hoà}}", "vi"),
        ("final_answer", {"value": r"\text{台北}"}, r"\boxed{\text{臺北}}", "zh-TW"),
        ("final_answer", {"value": "1299"}, "The answer is 1,\u200b299.", "en"),
        ("final_answer", {"value": "1299"}, "\\boxed{12\u00ad99}", "en"),
        ("reference_text", {"reference": "เเปลกที่นํ้า"}, "แปลกที่น้ำ", "th"),
        ("reference_text", {"reference": "it's 3½ ㎡"}, "It’s 3 1/2 m²", "en"),
        ("choice", _OPTIONS, "hòa bình", "vi"),
        ("extraction", {"fields": {"city": "台北"}}, '{"city": "臺北"}', "zh-TW"),
    ],
)
def test_two_spellings_of_an_answer_are_one(
    verifier: str, gold: object, response: str, language: str
) -> None:
    assert 1.0 == _verdict(verifier, gold, response, language)


@pytest.mark.parametrize(
    ("option", "response"),
    [("10²", "102"), ("102", "10²"), ("3½", "31/2"), ("x²+1", "x2+1"), ("เสื้อ", "เสื่อ")],
)
def test_an_option_of_another_value_is_not_chosen(option: str, response: str) -> None:
    gold = {"correct": ["B", option], "others": [["A", "7"]]}

    assert 0.0 == _verdict("choice", gold, response, "en")


@pytest.mark.parametrize(
    ("option", "response"), [("3½", "3 1/2"), ("5 m²", "5 m^2"), ("10²", "10^2"), ("10²", "10²")]
)
def test_an_option_of_the_same_value_is_chosen(option: str, response: str) -> None:
    gold = {"correct": ["B", option], "others": [["A", "7"]]}

    assert 1.0 == _verdict("choice", gold, response, "en")


def test_a_word_with_an_invisible_character_is_still_forbidden() -> None:
    gold = {
        "instruction_id_list": ["keywords:forbidden_words"],
        "kwargs": [{"forbidden_words": ["art"]}],
    }

    assert 0.0 == _verdict("instruction_rules", gold, "I like a\u200brt here.", "en")


@pytest.mark.parametrize("language", ["fil", "fil-PH", "tl", "tgl"])
def test_filipino_is_read_under_every_tag(language: str) -> None:
    gold = {"value": "5000"}

    assert 1.0 == _verdict("final_answer", gold, "Sagot: 5 libo", language)
    assert 0.0 == _verdict("final_answer", gold, "Ang sagot ay hindi 5000.", language)
