"""Lengths of texts, worked by hand."""

# ruff: noqa: RUF001 - other scripts are the point
import pytest

from tasks.gym.instructions.measures import (
    characters,
    east_asian_sentences,
    ends_with,
    occurrences,
    sentence_bounds,
    sentences,
    word_bounds,
)


def test_sentences_end_where_people_end_them() -> None:
    text = (
        'Mr. A. Lee paid $3.50, i.e. a lot. "Really?" Yes! Wait... What\n\nA title\n\nกขค。 はい。'
    )
    expected = ["Mr. A. Lee paid $3.50, i.e. a lot.", '"Really?"', "Yes!", "Wait...", "What"]

    assert [*expected, "A title", "กขค。", "はい。"] == sentences(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My answer is no. Then again, maybe.", 2),
        ("See No. 5 and fig. 2.", 1),
        ("Voilà ce qu'elle est. Puis elle part.", 2),
        ("Amo el mar. Es azul.", 2),
        ("Shoes, bags, etc. and more.", 1),
        ("Born on Mar. 5 in the U.S. Army.", 1),
    ],
)
def test_an_abbreviation_that_is_also_a_word_ends_a_sentence_before_a_capital(
    text: str, expected: int
) -> None:
    assert expected == len(sentences(text))


def test_chinese_and_japanese_sentences_end_at_lines_and_not_in_quotes() -> None:
    assert ["他說「好 走吧 」", "標題", "靴です"] == east_asian_sentences(
        "他說「好。走吧！」\n標題\n靴です。？"
    )


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("รองเท้า|สี|แดง|ขนาด|เล็ก|สำหรับ|เด็ก", 7),
        ("ฉัน|รัก|ประเทศ|ไทย|และ|คน|ไทย| |ตลอด|ไป", 9),
        ("ก็|ที่|ไม่|ใช่|ของ|เธอ", 6),
        ("ราคา| |๒๕๐| |บาท| |ส่ง|ฟรี|ทุก|วัน", 7),
        ("กรุงเทพมหานคร|เป็น|เมือง|หลวง|ของ|ประเทศ|ไทย", 7),
        ("รถ|ของ|คน|จน|ณ| |ตลาด|นัด", 7),
        ("สมาร์ทโฟน|iPhone| |15| |รุ่น|ใหม่", 5),
        ("มาก|ๆ| |เลย|ค่ะ", 4),
    ],
)
def test_the_number_of_thai_words_is_within_its_bounds(text: str, truth: int) -> None:
    low, high = word_bounds(text.replace("|", ""), "th")

    assert low <= truth <= high <= 2 * truth + 1


def test_thai_sentences_are_at_least_paragraphs_and_at_most_pieces() -> None:
    assert (2, 4) == sentence_bounds("ดีมาก ชอบ\nซื้ออีก\n\nขอบคุณ", "th")


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Don't buy well-made shoes — 2 pairs!", 6),
        ("id", "Anak-anak, ayo!", 2),
        ("vi", "Tiê\u0301ng Việt đẹp", 3),
        ("zh", "我愛iPhone 15手機！", 6),
    ],
)
def test_words_are_counted_by_the_rule_of_the_language(language, text, expected) -> None:
    assert (expected, expected) == word_bounds(text, language)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ที่นี่", 2), ("น้ำ ใจ", 4), ("é e\u0301", 2), ("a\u200bb\n", 2), ("紅鞋。", 3)],
)
def test_a_character_is_what_a_reader_counts(text: str, expected: int) -> None:
    assert expected == characters(text)


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("shoes, SHOE shoe's", "shoe", 2),
        ("anak-anak", "anak", 2),
        ("รองเท้าแตะ", "เท้า", 1),
        ("買iphone手機", "iPhone", 1),
        ("C++ and C++11", "C++", 2),
        ("ＡＢＣ", "abc", 1),
    ],
)
def test_words_end_at_letters_only_where_spaces_part_words(text, word, expected) -> None:
    assert expected == occurrences(text, word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. **Plan:** do this\n2. **Act:** do that.", ["**Plan:** do this", "**Act:** do that."]),
        ("Steps:\n1) Wash\n10) Dry", ["Steps:", "Wash", "Dry"]),
        ("### 1.2. Wash\nii. Dry it.", ["Wash", "Dry it."]),
        ("**1.** Wash", ["Wash"]),
        ("Wash it. 2. Dry it.", ["Wash it.", "Dry it."]),
        ("In 1990. 1991 was good.", ["In 1990.", "1991 was good."]),
        ("42.", ["42."]),
        ("It costs 3.50. See 1.2.3 and v2.0.", ["It costs 3.50.", "See 1.2.3 and v2.0."]),
    ],
)
def test_numbers_of_lists_and_decimals_are_no_sentences(text: str, expected: list[str]) -> None:
    assert expected == sentences(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait... what? Wait... What?", 3),
        ("Attends… Bon.", 2),
        ("attends… bon.", 1),
        ("first one. second one? third!", 3),
        ('"Really?" she asked. "Yes!"', 2),
        ("« Vraiment ? » demanda-t-il. Oui.", 2),
    ],
)
def test_dots_of_omission_and_quoted_marks_end_a_sentence_before_a_capital_only(
    text: str, expected: int
) -> None:
    assert expected == len(sentences(text))


@pytest.mark.parametrize(
    "text",
    [
        "Los EE. UU. y el Ud. de la pág. 5, p. ej. ayer. Sí.",
        "Cf. art. 5 et p. ex. la loi de MM. Roy et Cie. de Paris. Oui.",
        "O Exmo. Sr. Silva, da Ltda. ao lado, etc. e tal. Sim.",
        "Toko di Jl. Sudirman No. 5, milik Tn. Budi, dll. juga ada. Ya.",
        "Syarikat Pn. Siti Sdn. Bhd. itu besar. Ya.",
        "Ở TP. Hồ Chí Minh, PGS. An nói v.v. và cười. Đúng.",
        "Prof. Lee et al. met Gen. Roe vs. Capt. Poe. Yes.",
    ],
)
def test_abbreviations_of_the_markets_languages_end_no_sentence(text: str) -> None:
    assert 2 == len(sentences(text))


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("Bye. “The End.”", "the end", True),
        ("Bye. The end", "The end.", False),
        ("Bye. The end!", "The end", False),
        ("Bye. The end, friends", "The end", False),
        ("「終わり。」", "終わり。", True),
        ("以上です。", "以上です", True),
        ("จบแล้ว.", "จบแล้ว", True),
        ("Hasta luego ?", "hasta luego?", True),
        ('say "', '"', False),
    ],
)
def test_no_word_may_follow_an_end_phrase(text: str, phrase: str, expected: bool) -> None:
    assert expected is ends_with(text, phrase)
