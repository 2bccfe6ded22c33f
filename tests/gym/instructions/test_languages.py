"""Language checks by script and by frequent words."""

# ruff: noqa: RUF001 - other scripts are the point
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tasks.gym.instructions.languages import APART, is_language
from tests.tables import for_each

SENTENCES = {
    "en": "These shoes are for the kids and you will like them.",
    "de": "Diese Schuhe sind für die Kinder und sie werden dir gefallen.",
    "fr": "Ces chaussures sont pour les enfants et elles vont vous plaire.",
    "es": "Estos zapatos son para los niños y te van a gustar mucho.",
    "pt": "Estes sapatos são para as crianças e você também vai gostar.",
    "it": "Queste scarpe sono per i bambini e ti piaceranno molto, anche se costano di più.",
    "fi": "Nämä kengät ovat lapsille ja ne ovat hyvin kevyet, mutta myös lämpimät.",
    "vi": "Những đôi giày này dành cho trẻ em và bạn sẽ thích chúng.",
    "id": "Sepatu ini untuk anak-anak dan Anda tidak akan menyesal karena bisa dipakai.",
    "sw": "Viatu hivi ni kwa ajili ya watoto na wewe pia utapenda sana.",
    "zh-TW": "這雙鞋子是給小朋友穿的。",
    "ja": "この靴は子供用です。",
    "ko": "이 신발은 어린이용입니다.",
    "th": "รองเท้าคู่นี้สำหรับเด็ก",
    "hi": "यह जूते बच्चों के लिए हैं और आप इन्हें पसंद करेंगे।",
    "mr": "हे बूट मुलांसाठी आहेत आणि ते तुम्हाला आवडतील.",
    "ne": "यो जुत्ता बच्चाहरूको लागि हो र तपाईंलाई मन पर्ने छ।",
    "ar": "هذا الحذاء من أجل الأطفال وهو في المتجر الآن",
    "fa": "این کفش برای کودکان است و شما آن را دوست خواهید داشت",
    "ur": "یہ جوتے بچوں کے لیے ہیں اور آپ کو پسند آئیں گے",
    "ru": "Эти туфли для детей, и они вам очень понравятся, если вы не против.",
    "bg": "Тези обувки са за деца и ще ви харесат, защото не са тежки.",
    "kn": "ಈ ಶೂಗಳು ಮಕ್ಕಳಿಗಾಗಿ",
    "pa": "ਇਹ ਜੁੱਤੇ ਬੱਚਿਆਂ ਲਈ ਹਨ",
    "gu": "આ જૂતા બાળકો માટે છે",
    "te": "ఈ బూట్లు పిల్లల కోసం",
    "ta": "இந்த காலணிகள் குழந்தைகளுக்கானவை",
    "bn": "এই জুতা শিশুদের জন্য",
}


@for_each("language", SENTENCES)
def test_a_sentence_is_in_its_language_and_in_no_other(language: str) -> None:
    assert is_language(SENTENCES[language], language) is True
    for other, sentence in SENTENCES.items():
        if other != language:
            assert is_language(sentence, language) is not True, other


def test_malay_and_indonesian_are_distinguished_only_by_words_that_differ() -> None:
    shared = "Ini untuk saya dan itu untuk mereka."
    malay = "Kasut ini boleh dipakai kerana saiz dan kualiti yang baik."

    assert (None, None) == (is_language(shared, "id"), is_language(shared, "ms"))
    assert is_language(shared, "en") is False
    assert (False, True) == (is_language(malay, "id"), is_language(malay, "ms"))
    assert is_language("Kita bisa pergi karena mereka mahu.", "id") is None


def test_words_that_differ_belong_to_one_standard() -> None:
    indonesian, malay = (set(APART[language].split()) for language in ("id", "ms"))

    assert not indonesian & malay


@for_each(
    ("text", "tag", "expected"),
    [
        ("這雙鞋子很好", "zh-TW", True),
        ("這雙鞋子很好", "zh-Hant-HK", True),
        ("這雙鞋子很好", "zh-CN", False),
        ("这双鞋子很好", "zh-TW", False),
        ("这双鞋子很好", "zh-Hans", True),
        ("这双鞋子很好", "zh", True),
        ("好人", "zh-TW", None),
        ("這雙鞋子为这双", "zh-TW", None),
        ("この靴", "zh-TW", False),
    ],
)
def test_traditional_and_simplified_chinese_differ_by_their_characters(
    text: str, tag: str, expected: bool | None
) -> None:
    assert expected is is_language(text, tag)


def test_words_that_two_languages_share_decide_for_neither() -> None:
    assert is_language("la", "es") is None
    assert is_language("a", "en") is None


def test_letters_that_only_one_language_has_count_like_its_words() -> None:
    assert is_language("Giày đẹp", "vi") is True
    assert is_language("¿Pequeño?", "es") is True
    assert is_language("Promoções imperdíveis, opções", "pt") is True


def test_a_few_words_do_not_make_a_long_text_a_language() -> None:
    assert is_language("Meureutoh " * 20 + "that", "en") is None
    assert is_language("Meureutoh " * 29 + "that", "en") is False


def test_a_long_text_is_always_identified() -> None:
    english, french = SENTENCES["en"] * 2, SENTENCES["fr"] * 2

    assert is_language("xqz wvk " * 15, "id") is False
    assert is_language("la " * 30, "es") is False
    assert not (is_language(english + french, "en") and is_language(english + french, "fr"))


@pytest.mark.parametrize("text", ["", "123 !", "🙂", "ab กข"])
def test_a_text_without_a_script_is_in_no_language(text: str) -> None:
    assert is_language(text, "th") is not True
    assert is_language(text, "ko") is False


def test_an_unknown_language_or_unknown_words_cannot_be_identified() -> None:
    assert is_language("These are the shoes.", "tlh") is None
    assert is_language("xqz wvk", "en") is None


@pytest.mark.parametrize(
    ("path", "language", "least_yes"),
    [
        ("xcopa/vi_test.jsonl", "vi", 0.99),
        ("xcopa/zh_test.jsonl", "zh", 1.0),
        ("xcopa/id_test.jsonl", "id", 0.5),
    ],
)
def test_public_sentences_are_rarely_identified_as_another_language(
    path: str, language: str, least_yes: float
) -> None:
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / path
    if not file.exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {path}")
    rows = [json.loads(line) for line in file.read_text().split("\n") if line]
    texts = [f"{row['premise']} {row['choice1']} {row['choice2']}" for row in rows]

    own = Counter(is_language(text, language) for text in texts)
    wrong = [
        (text, other)
        for text in texts
        for other in ("en", "zh", "id", "ms", "pt", "th", "vi", "es", "fr")
        if other != language and is_language(text, other)
    ]

    assert own[True] >= least_yes * len(texts)
    assert own[False] <= 0.005 * len(texts)
    assert len(wrong) <= 0.01 * len(texts)


@for_each(
    ("title", "language"),
    [
        ("Nike Air Max 90 男款運動鞋", "zh-TW"),
        ("Nike Air Max 90 男款运动鞋", "zh-Hans"),
        ("Nike Air Max 90 メンズ スニーカー", "ja"),
        ("Ang sapatos na ito ay maganda at mura para sa mga bata", "fil"),
        ("Ang sapatos na ito ay maganda at mura para sa mga bata", "fil-PH"),
    ],
)
def test_a_title_with_brands_is_in_the_language_of_its_other_words(
    title: str, language: str
) -> None:
    assert is_language(title, language) is True
    assert not is_language(title, "en")


def test_beside_names_alone_a_few_words_of_another_script_decide_nothing() -> None:
    assert is_language("Apple iPhone 15 Pro Max 256GB 手機殼", "zh-TW") is None
    assert is_language("The word 手機殼 means a case of a phone", "zh-TW") is False
