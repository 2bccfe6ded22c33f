"""Tags of languages in the spelling of our tables."""

import pytest

from tasks.algorithms.language_tags import primary


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("zh-TW", "zh"),
        ("zh_Hant_TW", "zh"),
        ("cmn-Hant", "zh"),
        ("fil", "tl"),
        ("fil-PH", "tl"),
        ("tgl", "tl"),
        ("in", "id"),
        ("zsm", "ms"),
        ("EN", "en"),
        ("eng-US", "en"),
        ("pt_BR", "pt"),
        ("und", "und"),
        ("", ""),
    ],
)
def test_a_tag_of_any_spelling_names_its_language(tag: str, language: str) -> None:
    assert language == primary(tag)
