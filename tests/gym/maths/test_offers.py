"""A sentence behind an answer that offers another value is a second answer, in every language."""

import time

import pytest

from tasks.gym.maths.offers import offered
from tests.tables import for_each

OFFERS = {
    "en": [
        "But 16 is also possible.",
        "However, 16 could also be right.",
        "It might be 16 instead.",
        "You could also answer 16.",
        "Others say 16.",
        "If not, then 16.",
        "Unless it is 16.",
        "There is also 16.",
        "Both 7 and 16 are possible.",
        "Either 7 or 16 is fine.",
        "I would also accept 16.",
        "One might argue for 16.",
        "Also consider 16.",
        "My second guess is 16.",
        "If that is wrong, then 16.",
        "A different reading gives 16.",
        "In another interpretation, 16.",
        "I also like 16.",
        "Otherwise 16.",
        "Depending on the reading, 16.",
        "Possible answers: 7, 16.",
        "Not sure, could be 16.",
        "However, 16 also satisfies it.",
        "We cannot rule out 16.",
        "Though 16 cannot be excluded.",
        "Some might get 16.",
        "Nor is 16 wrong.",
        "16 is not wrong either.",
    ],
    "id": [
        "Tetapi 16 juga mungkin.",
        "Bisa juga 16.",
        "Jawaban lain adalah 16.",
        "16 juga memenuhi.",
        "Kita tidak bisa mengesampingkan 16.",
    ],
    "ms": [
        "Tetapi 16 juga mungkin.",
        "Boleh juga 16.",
        "Jawapan lain ialah 16.",
        "16 juga memenuhi syarat.",
        "16 tidak salah juga.",
    ],
    "th": ["แต่ 16 ก็เป็นไปได้", "16 ก็ถูกเช่นกัน", "คำตอบอื่นคือ 16", "แต่ 16 ก็ไม่ผิด", "16 ก็สอดคล้องกับเงื่อนไข"],
    "vi": [
        "Nhưng 16 cũng có thể.",
        "Cũng có thể là 16.",
        "Đáp án khác là 16.",
        "16 cũng thỏa mãn điều kiện.",
        "Ta không thể loại trừ 16.",
    ],
    "pt": [
        "Mas 16 também é possível.",
        "Também pode ser 16.",
        "Outra resposta é 16.",
        "Mas 16 também satisfaz.",
        "Não se pode descartar 16.",
    ],
    "zh-TW": [
        "但16也可能。",
        "也可能是16。",
        "另一個答案是16。",
        "但16也滿足條件。",
        "不能排除16。",
    ],
    "es": ["Pero 16 también es posible.", "También puede ser 16."],
    "ja": ["ただし16も可能です。", "16かもしれません。"],
    "ko": ["하지만 16도 가능합니다."],
    "fil": [
        "Pero 16 ay posible rin.",
        "Maaari ring 16.",
        "Pero 16 ay tumutugon din.",
        "Hindi rin mali ang 16.",
    ],
}
TALES = {
    "en": [
        "It is 16 steps away.",
        "He also has 16 pens.",
        "So 16 is even.",
        "It could not be 16.",
        "We can rule out 16.",
        "16 is wrong.",
        "Some might get 16, but that is wrong.",
        "16 cannot be a solution.",
        "16 is not possible.",
        "So 16 does not satisfy it.",
    ],
    "id": [
        "Jadi Budi masih punya 16 apel.",
        "Ia juga membeli 16 pensil.",
        "16 salah.",
        "16 tidak memenuhi syarat.",
    ],
    "th": ["เขามีส้ม 16 ผลด้วย", "16 ไม่สอดคล้องกับเงื่อนไข"],
    "vi": ["Lan cũng có 16 quyển vở.", "Ta loại trừ 16.", "16 không thỏa mãn điều kiện."],
    "pt": ["Ele também tem 16 canetas.", "Mas 16 não satisfaz.", "16 está errado."],
    "zh-TW": ["他還有16個蘋果。", "16不滿足條件。", "可以排除16。"],
    "ja": ["16ではない。"],
}


@for_each(
    ("language", "sentence"), [(one, text) for one, texts in OFFERS.items() for text in texts]
)
def test_words_that_only_offer_make_a_number_another_answer(language: str, sentence: str) -> None:
    text = f"So it is 7. {sentence}"

    assert ["16"] == list(offered(text, 8, language))


@for_each(("language", "sentence"), [(one, text) for one, texts in TALES.items() for text in texts])
def test_a_sentence_with_any_other_word_tells_something_else(language: str, sentence: str) -> None:
    assert [] == list(offered(f"So it is 7. {sentence}", 8, language))


@for_each(
    "clause",
    [", or maybe 16.", ", though 16 works too.", " (or 16).", " -- or 16.", ", alternatively 16."],
)
def test_a_clause_behind_a_box_offers_another_answer(clause: str) -> None:
    assert ["16"] == list(offered(f"So $7${clause}", 6, "en", in_clauses=True))
    assert [] == list(offered(f"So $7${clause}", 6, "en"))


@pytest.mark.parametrize("unit", [". also 16", ". it is also ", ". 7 or 16 ", ".   $ "])
def test_a_long_text_of_offers_takes_linear_time(unit: str) -> None:
    def cpu_s(size: int) -> float:
        start = time.process_time()
        list(offered(unit * (size // len(unit)), 0, "en"))
        return time.process_time() - start

    assert cpu_s(40_000) < 1.0


def test_a_text_of_decimals_takes_no_cpu_second() -> None:
    start = time.process_time()

    assert [] == list(offered("0.33" * 25_000, 0, "en", in_clauses=True))
    assert time.process_time() - start < 1
