"""Writing systems: which letters belong to a language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.curation.cleaning.writing_systems import foreign_share, language_of


def test_latin_letters_belong_everywhere_and_thai_letters_only_to_thai():
    assert 0.0 == foreign_share("iPhone 15 เคสใส", "th")
    assert 0.0 == foreign_share("Giày thể thao nữ, cỡ số 38", "vi")
    assert 0.5 == foreign_share("ab กข", "en")
    assert 1.0 == foreign_share("кот", "id")


def test_han_letters_belong_to_chinese_and_japanese():
    assert 0.0 == foreign_share("紅色背包", "zh-TW")
    assert 0.0 == foreign_share("赤いバッグ", "ja")
    assert 1.0 == foreign_share("紅色背包", "pt")


def test_a_language_nobody_listed_and_a_text_without_letters_are_not_judged():
    assert 0.0 == foreign_share("कुत्ता", "hi")
    assert 0.0 == foreign_share("3 + 4 = 7", "th")


def test_the_language_is_guessed_by_script_alone():
    assert "zh" == language_of("请问北京的天气 in Celsius")
    assert "th" == language_of("รองเท้า Nike")
    assert "ja" == language_of("東京の天気")
    assert "en" == language_of("Café au lait")
    assert "en" == language_of("")


@given(st.text("ab9 -\u00e9\u03b1\u0431\u0e01\u0e49\u7d05\u3042\ud55c\u00b5\uff21", max_size=20))
def test_the_foreign_share_is_that_of_all_letters(text: str):
    letters = [sign for sign in text if sign.isalpha()]
    for language in ("en", "th", "zh", "ja", "ko"):
        foreign = [sign for sign in letters if foreign_share(sign, language)]

        assert len(foreign) / max(1, len(letters)) == foreign_share(text, language)


@pytest.mark.parametrize(
    ("title", "language"),
    [
        ("Nike Air Max 90 男款運動鞋", "zh"),
        ("Apple iPhone 15 Pro Max 256GB 手機殼", "zh"),
        ("Nike Air Force 1 Low รองเท้า", "th"),
        ("Shiseido 資生堂 Ultimate Power Infusing Concentrate Serum", "en"),
        ("I like 東京 ramen from the shop at the station", "en"),
    ],
)
def test_brands_do_not_decide_the_language_of_a_title(title: str, language: str) -> None:
    assert language == language_of(title)
