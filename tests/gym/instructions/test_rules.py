"""Shares of instructions, and what cannot be judged."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.verdicts import Verdict
from tasks.gym.instructions.rules import KINDS, read_kind, verify

VALUES: dict[str, object] = {
    "relation": "at least",
    "whole": 2,
    "letter": "a",
    "phrase": "a",
    "phrases": ["a"],
    "spellings": {"a": "à"},
    "language": "en",
    "script": "thai",
    "forbidden_char": "ç",
}
"""A value for every kind of argument, by its reader or its name."""


def gold(*parts: tuple[str, dict[str, object]]) -> dict[str, object]:
    names, arguments = zip(*parts, strict=True)
    return {"instruction_id_list": list(names), "kwargs": list(arguments)}


def test_the_score_is_the_share_followed_and_the_broken_ones_are_named(problem) -> None:
    three = gold(
        ("punctuation:no_comma", {}),
        ("detectable_format:title", {"unused": None}),
        ("keywords:existence", {"keywords": ["shoe"]}),
    )
    verdict = verify(problem("instruction_rules", three), "red, small shoes")

    assert (pytest.approx(1 / 3), "partial") == (verdict.score, verdict.reason)
    assert "broken: punctuation:no_comma, detectable_format:title" == verdict.detail


def test_thinking_does_not_count(problem) -> None:
    one = problem("instruction_rules", gold(("punctuation:no_comma", {})))

    assert 1.0 == verify(one, "<think>red, small</think>red shoes").score


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (("new:instruction", {}), "unknown_instruction"),
        (("keywords:existence", {}), "bad_gold"),
        (("keywords:existence", {"keywords": "shoe"}), "bad_gold"),
        (("detectable_content:number_placeholders", {"num_placeholders": "2"}), "bad_gold"),
        (("detectable_content:number_placeholders", {"num_placeholders": -1}), "bad_gold"),
        (("detectable_content:number_placeholders", {"num_placeholders": 1.5}), "bad_gold"),
        (("keywords:letter_frequency", {"letter": "ab"}), "bad_gold"),
        (("punctuation:no_comma", {"num_words": 3}), "bad_gold"),
        (("length_constraints:number_words", {"relation": "about", "num_words": 2}), "bad_gold"),
        (("language:response_language", {"language": "tlh"}), "unknown_language"),
        (("language:response_language", {"language": "fr"}), "language_undecided"),
    ],
)
def test_what_cannot_be_checked_is_an_abstention(problem, parts, reason: str) -> None:
    verdict = verify(problem("instruction_rules", gold(parts)), "xqz wvk")

    assert (None, reason) == (verdict.score, verdict.reason)


UNDECIDED: list[tuple[str, dict[str, object]]] = [
    ("language:response_language", {"language": "fr"}),
    ("sea:count:words", {"language": "th", "relation": "exactly", "num_words": 2}),
    ("ja:detectable_format:nominal_ending", {"count": 1}),
]


@pytest.mark.parametrize("part", UNDECIDED, ids=lambda part: part[0])
def test_an_undecided_instruction_does_not_excuse_a_broken_one(problem, part) -> None:
    comma, title = ("punctuation:no_comma", {}), ("detectable_format:title", {})
    text = {"language": "xqz wvk", "sea": "รถไฟฟ้า", "ja": "今日は良い日だね。"}[
        part[0].split(":")[0]
    ]

    alone = verify(problem("instruction_rules", gold(part)), text)
    followed = verify(problem("instruction_rules", gold(part, comma)), text)
    broken = verify(problem("instruction_rules", gold(part, comma, title)), text)

    assert alone.abstained
    assert followed.abstained
    assert (pytest.approx(1 / 3), "partial") == (broken.score, broken.reason)
    assert f"broken: detectable_format:title; undecided: {part[0]}" == broken.detail


def test_a_language_that_is_not_known_is_an_abstention_for_every_response(problem) -> None:
    parts = gold(("language:response_language", {"language": "tlh"}), ("punctuation:no_comma", {}))
    one = problem("instruction_rules", parts)

    assert "unknown_language" == verify(one, "red, shoes").reason == verify(one, "shoes").reason


def test_ids_and_arguments_must_pair_up(problem) -> None:
    uneven = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}

    assert "bad_gold" == verify(problem("instruction_rules", uneven), "text").reason


def test_arguments_are_read_whatever_the_response_is(problem) -> None:
    late = gold(("language:response_language", {"language": "en"}), ("keywords:existence", {}))

    assert "bad_gold" == verify(problem("instruction_rules", late), "xqz wvk").reason


ANY: dict[str, dict[str, object]] = {
    name: {
        argument: VALUES.get(argument, VALUES.get(reader.__name__, "th"))
        for argument, reader in kind.arguments.items()
    }
    for name, kind in KINDS.items()
}
FIXED = [
    ("punctuation:no_comma", {}),
    ("keywords:forbidden_words", {"forbidden_words": ["shoe"]}),
    ("ja:letters:no_katakana", {}),
    ("fr:special_character:no_accents", {}),
    ("es:special_character:enie", {"let_frequency": 0}),
    ("sea:count:characters", {"relation": "at most", "num_characters": 5}),
]


@pytest.mark.parametrize("part", FIXED, ids=lambda part: part[0])
@given(more=st.text(max_size=30))
def test_more_text_does_not_mend_what_must_not_be_there(problem, part, more: str) -> None:
    one = problem("instruction_rules", gold(part))

    assert 0.0 == verify(one, "A shoe, ñandú カ é" + more).score


@given(text=st.text(max_size=80))
def test_every_check_decides_or_abstains_on_any_text(problem, text: str) -> None:
    for name, arguments in ANY.items():
        one = problem("instruction_rules", gold((name, arguments)))
        verdict = verify(one, text)

        assert verdict == verify(one, text)
        assert verdict.score in (0.0, 1.0, None), name


@pytest.mark.slow
def test_long_hostile_texts_are_judged_at_once(problem) -> None:
    texts = [
        char * 20_000 for char in ("a.", "¿", "##a", "「", "*", "\n", "- ", "[", "เ", "。", "1.")
    ]
    golds = [problem("instruction_rules", gold(part)) for part in ANY.items()]

    verdicts = [verify(one, f"a{text}b") for one in golds for text in texts]

    assert all(isinstance(verdict, Verdict) for verdict in verdicts)


def rows(path: str) -> list[dict]:
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / path
    if not file.exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {path}")
    return [json.loads(line) for line in file.read_text().split("\n") if line]


@pytest.mark.parametrize(
    ("path", "prefix", "count"),
    [
        ("ifeval/input_data.jsonl", "", 541),
        ("m_ifeval/es_input.jsonl", "es:", 115),
        ("m_ifeval/fr_input.jsonl", "fr:", 235),
        ("m_ifeval/ja_input.jsonl", "ja:", 172),
    ],
)
def test_every_instruction_of_the_public_sets_is_known_and_its_arguments_are_read(
    path: str, prefix: str, count: int
) -> None:
    prompts = rows(path)
    asked: Counter[str] = Counter()
    for row in prompts:
        for name, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            read_kind(name, arguments)
            asked[name] += 1

    known = {
        name for name in KINDS if name.startswith(prefix) and name.count(":") == 1 + bool(prefix)
    }
    assert count == len(prompts)
    assert known == asked.keys()
