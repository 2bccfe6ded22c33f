"""Instructions for the languages of eight markets: each followed, each broken."""

# ruff: noqa: RUF001 - the marks of other scripts are the point

from tasks.gym.instructions.rules import verify
from tasks.gym.instructions.southeast_asian import LANGUAGES, SEA
from tests.tables import for_each

THAI = "รองเท้าคู่นี้สำหรับเด็ก"
WORDS_OF_FOUR = {
    "en": "Red shoes don't hurt",
    "zh-TW": "紅鞋iPhone好",
    "id": "anak-anak suka sepatu merah",
    "ms": "kanak-kanak suka kasut merah",
    "pt": "O guarda-chuva é vermelho",
    "vi": "đôi giày màu đỏ",
    "fil": "Mga sapatos na pang-araw-araw",
}
SENTENCES = {
    "en": "Mr. Lee has them. They fit!",
    "zh-TW": "「好。」他說。\n很合腳",
    "id": "Ini Dr. Budi. Bagus!",
    "ms": "Ini Dr. Ali. Bagus!",
    "pt": "O Sr. Paz veio. Bom!",
    "vi": "Giày đẹp. Tốt!",
    "fil": "Ito si Gng. Cruz. Maganda!",
}
IN_LANGUAGE = {
    "en": "These shoes are for the kids and you will like them.",
    "zh-TW": "這雙鞋子是給小朋友穿的。",
    "id": "Sepatu ini bisa dipakai karena ukuran dan kualitas yang baik.",
    "ms": "Kasut ini boleh dipakai kerana saiz dan kualiti yang baik.",
    "pt": "Estes sapatos são para as crianças e você também vai gostar.",
    "th": THAI,
    "vi": "Những đôi giày này dành cho trẻ em và bạn sẽ thích chúng.",
    "fil": "Ang mga sapatos na ito ay para sa mga bata at magugustuhan mo.",
}
OTHER = IN_LANGUAGE | {"zh-TW": "这双鞋子是给小朋友穿的。"}
NOT_IN = {
    "en": "vi",
    "zh-TW": "zh-TW",
    "id": "ms",
    "ms": "id",
    "pt": "en",
    "th": "en",
    "vi": "th",
} | {"fil": "id"}
CASED = [tag for tag in LANGUAGES if tag not in ("zh-TW", "th")]


def how_many(name: str, number: int, relation: str = "exactly", **more: str) -> dict[str, object]:
    return {"relation": relation, name: number, **more}


EXAMPLES: list[tuple[str, dict[str, object], str, str]] = [
    *(
        ("count:words", how_many("num_words", 4, language=tag), text, f"{text} {text}")
        for tag, text in WORDS_OF_FOUR.items()
    ),
    ("count:words", how_many("num_words", 2, "at least", language="th"), f"{THAI} {THAI}", "ดี"),
    *(
        ("count:sentences", how_many("num_sentences", 2, language=tag), text, f"{text}\n\n{text}")
        for tag, text in SENTENCES.items()
    ),
    ("count:sentences", how_many("num_sentences", 2, language="th"), "ดี\n\nมาก", "ดี"),
    ("count:paragraphs", how_many("num_paragraphs", 2), "a\nb\n \nc", "a\nb"),
    ("count:characters", how_many("num_characters", 3), "ที่นี่ ๆ", "ที่นี่ ดี ๆ"),
    ("count:characters", how_many("num_characters", 9), "tiếng Việt", "tiếng Anh"),
    ("count:thai_characters", how_many("num_characters", 2), "ที่นี่ok!๑", "ที่นี่ดี"),
    ("count:chinese_characters", how_many("num_characters", 2), "紅鞋，ok", "紅色鞋"),
    (
        "keywords:existence",
        {"keywords": ["รองเท้า", "鞋", "sepatu"]},
        f"{THAI}紅鞋 Sepatu",
        "sepatunya",
    ),
    ("keywords:existence", {"keywords": ["iPhone"]}, "買ＩＰＨＯＮＥ手機", "iPhones"),
    ("keywords:forbidden_words", {"forbidden_words": ["giá"]}, "giám đốc", "Gia\u0301 rẻ"),
    ("keywords:existence", {"keywords": ["kasut merah"]}, "Kasut\nmerah.", "Kasut, merah."),
    ("keywords:forbidden_words", {"forbidden_words": ["red bag"]}, "red, bag", "A red\nbag"),
    ("keywords:forbidden_words", {"forbidden_words": ["เท้า"]}, "มือ", "รองเท้า"),
    (
        "keywords:frequency",
        {"keyword": "murah", "relation": "at most", "frequency": 1},
        "Murah dan termurah",
        "murah, murah",
    ),
    *(
        ("language:response_language", {"language": tag}, IN_LANGUAGE[tag], OTHER[NOT_IN[tag]])
        for tag in LANGUAGES
    ),
    ("language:script_only", {"script": "thai"}, f"{THAI} 12!", f"{THAI} ok"),
    ("language:script_only", {"script": "han"}, "紅鞋。", "紅鞋の"),
    ("language:script_only", {"script": "latin"}, "Giày đẹp", "Giày 鞋"),
    ("language:traditional_only", {}, "這雙鞋子。", "這双鞋子。"),
    *(
        ("case:all_capital", {"language": tag}, IN_LANGUAGE[tag].upper(), IN_LANGUAGE[tag])
        for tag in CASED
    ),
    *(
        ("case:all_lowercase", {"language": tag}, IN_LANGUAGE[tag].lower(), IN_LANGUAGE[tag])
        for tag in CASED
    ),
    ("format:bullets", how_many("num_bullets", 2), "- ดี\n • 好", "- ดี\n-好\n---"),
    ("format:numbered_list", how_many("num_items", 3), "1. a\n๒) ข\n三、好", "1. a\n2024 b"),
    (
        "format:title",
        {"opening": "《", "closing": "》"},
        "《紅鞋》\n很好。",
        "很好。\n《紅鞋》",
    ),
    ("format:quotation", {}, "「很好。」", "「很好。"),
    ("format:start_phrase", {"start_phrase": "xin chào"}, "Xin cha\u0300o bạn", "Chào bạn"),
    ("format:start_phrase", {"start_phrase": "xin chào"}, "**Xin chào** bạn", "- Xin chào"),
    ("format:end_phrase", {"end_phrase": "ค่ะ"}, "สวัสดีค่ะ\n", "สวัสดีค่ะ!"),
    ("format:no_comma", {}, "紅 白", "紅、白"),
    ("format:thai_digits", {}, "๑๒ บาท", "๑2 บาท"),
    ("format:full_width_punctuation", {}, "紅鞋，3.5 元。", "紅鞋,好。"),
]


@for_each(("name", "arguments", "followed", "broken"), EXAMPLES)
def test_each_instruction_can_be_followed_and_broken(
    problem, name: str, arguments: dict[str, object], followed: str, broken: str
) -> None:
    gold = {"instruction_id_list": [f"sea:{name}"], "kwargs": [arguments]}
    one = problem("instruction_rules", gold)

    assert (1.0, "correct") == (verify(one, followed).score, verify(one, followed).reason)
    assert (0.0, "wrong") == (verify(one, broken).score, verify(one, broken).reason)


def test_every_instruction_and_every_language_is_tested() -> None:
    assert SEA.keys() == {f"sea:{name}" for name, *_ in EXAMPLES}
    for name in ("count:words", "count:sentences", "language:response_language"):
        assert set(LANGUAGES) == {a["language"] for kind, a, *_ in EXAMPLES if kind == name}


@for_each(
    ("name", "arguments", "text", "reason"),
    [
        (
            "count:words",
            how_many("num_words", 5, "at least", language="th"),
            THAI,
            "count_undecided",
        ),
        ("count:words", how_many("num_words", 5, language="th"), THAI, "count_undecided"),
        (
            "count:sentences",
            how_many("num_sentences", 2, "less than", language="th"),
            "ดีมาก ชอบ",
            "count_undecided",
        ),
        (
            "language:response_language",
            {"language": "ms"},
            "Ini untuk saya dan itu untuk mereka.",
            "language_undecided",
        ),
        ("language:response_language", {"language": "zh-TW"}, "好人", "language_undecided"),
        ("language:traditional_only", {}, "好人", "language_undecided"),
        ("language:response_language", {"language": "fr"}, "Bonjour", "bad_gold"),
        ("case:all_capital", {"language": "th"}, THAI, "bad_gold"),
        ("language:script_only", {"script": "kana"}, "かな", "bad_gold"),
        ("format:bullets", {"num_bullets": 2}, "- a\n- b", "bad_gold"),
        ("format:quotation", {"marks": '"'}, '"a"', "bad_gold"),
    ],
)
def test_what_cannot_be_known_is_not_guessed(problem, name, arguments, text, reason) -> None:
    gold = {"instruction_id_list": [f"sea:{name}"], "kwargs": [arguments]}
    verdict = verify(problem("instruction_rules", gold), text)

    assert (None, reason) == (verdict.score, verdict.reason)
