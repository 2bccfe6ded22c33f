"""Planted leaks, and what curation and similarities find of known ones."""

import os
from pathlib import Path

import pytest

from tasks.errors import DataError
from tests.bench.curation.leaks import (
    PLANTED,
    num_found,
    num_near,
    questions,
    renamed,
    renumbered,
    reworded,
)

TEXT = "Ann has 2 bags. Then Ben buys 1,000 for $3. How many bags has Ben?"


@pytest.fixture
def data() -> Path:
    folder = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere"))
    if not (folder / "mgsm").is_dir() or not (folder / "gsm8k").is_dir():
        pytest.skip("EACHPROMPT_DATA names no folder with gsm8k and mgsm")
    return folder


def test_a_leak_is_planted_with_other_numbers_names_or_words():
    assert renumbered(TEXT) == "Ann has 3 bags. Then Ben buys 1002 for $6. How many bags has Ben?"
    assert renamed(TEXT) == "Ann has 2 bags. Then Neb buys 1,000 for $3. How many bags has Neb?"
    assert reworded(TEXT) == (
        "what number of bags owns Ben? Then Ben purchases 1,000 for $3. Ann owns 2 bags."
    )


def test_a_missing_file_names_what_to_set(tmp_path: Path):
    with pytest.raises(DataError, match="Set DATA"):
        questions(tmp_path / "none.jsonl")


def test_all_of_mgsm_english_is_found_in_gsm8k_and_nothing_of_its_translation(data: Path):
    suite = questions(data / "gsm8k" / "test.jsonl")

    assert 250 == num_found(questions(data / "mgsm" / "en.jsonl"), "en", suite)
    assert 0 == num_found(questions(data / "mgsm" / "zh.jsonl"), "zh", suite)
    assert 2 == num_found(questions(data / "gsm8k" / "train.jsonl")[:1000], "en", suite)


def test_changed_numbers_and_names_are_mostly_found_and_reworded_questions_partly(data: Path):
    suite = questions(data / "gsm8k" / "test.jsonl")

    found = {
        name: num_found([plant(text) for text in suite[:250]], "en", suite)
        for name, plant in PLANTED.items()
    }

    assert found == {
        "other numbers": 184,
        "other names": 231,
        "other numbers and names": 158,
        "reworded": 179,
        "reworded, other numbers": 94,
    }


def test_masked_numbers_find_changed_ones_in_english_and_chinese_and_little_else(data: Path):
    suite = questions(data / "gsm8k" / "test.jsonl")
    chinese = questions(data / "mgsm" / "zh.jsonl")
    other = [renumbered(text) for text in chinese]

    found = {
        name: num_found([plant(text) for text in suite[:250]], "en", suite, any_numbers=True)
        for name, plant in PLANTED.items()
    }

    assert found == {
        "other numbers": 250,
        "other names": 231,
        "other numbers and names": 231,
        "reworded": 179,
        "reworded, other numbers": 179,
    }
    assert 46 == num_found(other, "zh", chinese, "zh")
    assert 221 == num_found(other, "zh", chinese, "zh", any_numbers=True)  # others are short
    clean = questions(data / "gsm8k" / "train.jsonl")[:1000]
    assert 3 >= num_found(clean, "en", suite, any_numbers=True)


def test_wordings_find_what_is_reworded_and_next_to_no_clean_question(data: Path):
    suite = questions(data / "gsm8k" / "test.jsonl")

    found = {
        name: num_near([plant(text) for text in suite[:250]], suite)
        for name, plant in PLANTED.items()
    }

    assert found == {
        "other numbers": 250,
        "other names": 250,
        "other numbers and names": 244,
        "reworded": 248,
        "reworded, other numbers": 236,
    }
    assert 9 == num_near(questions(data / "gsm8k" / "train.jsonl"), suite)
    assert 0 == num_near(questions(data / "mgsm" / "zh.jsonl"), suite)
