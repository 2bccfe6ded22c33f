"""The Japanese instructions of M-IFEval: each followed, each broken."""

# ruff: noqa: RUF001 - the Japanese marks are the point

from tasks.gym.instructions.japanese import JAPANESE
from tasks.gym.instructions.rules import verify
from tests.tables import for_each

EXAMPLES: list[tuple[str, dict[str, object], str, str]] = [
    ("keywords:existence", {"keywords": ["夢", "現実"]}, "夢と現実。", "夢。"),
    ("keywords:forbidden_words", {"forbidden_words": ["海"]}, "山だ。", "海だ。"),
    (
        "keywords:frequency",
        {"relation": "以上", "keyword": "音", "frequency": 2},
        "音と音楽",
        "音",
    ),
    (
        "keywords:letter_frequency",
        {"let_relation": "未満", "letter": "か", "let_frequency": 2},
        "かさ",
        "かさとカメラ",
    ),
    ("language:response_language", {"language": "th"}, "รองเท้าสีแดง", "これは靴です。"),
    (
        "length_constraints:number_sentences",
        {"relation": "以上", "num_sentences": 2},
        "はい。「行く。」と言った！",
        "「行く。来る。」と言った。",
    ),
    (
        "length_constraints:number_letters",
        {"relation": "以上", "num_letters": 4},
        "これは靴",
        "これ  \n  は",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "一\n***\n二", "一\n\n二"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "愛"},
        "はい。\n\n「愛は強い。」",
        "愛。\n\n強い。",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[名前][場所]", "[名前]"),
    (
        "detectable_content:postscript",
        {"postscript_marker": "追伸"},
        "では。\n追伸：明日",
        "では。",
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.P.S."},
        "では。\nP. P. S. 明日",
        "では。P.S. 明日",
    ),
    (
        "detectable_format:constrained_response",
        {},
        "「はい、そうです。」",
        "はい、そうです。いいえ、違います。",
    ),
    ("detectable_format:json_format", {}, '```json\n{"靴": 1}\n```', "靴: 1"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "章", "num_sections": 2},
        "第1章\nあ\n第２章\nい",
        "第1章\nあ\n2章\nい",
    ),
    (
        "detectable_format:nominal_ending",
        {"count": 2},
        "美しい海。静かなこと！",
        "美しい海。静かです。「山。」",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "・あ\n・い", "・あ\n* い"),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "《豆》と《米》",
        "《豆》と《 》",
    ),
    ("detectable_format:number_numbered_lists", {"num_items": 2}, "1. あ\n2. い", "1. あ\n2、い"),
    ("detectable_format:title", {}, "『愛』\nはい", "『 』\n「愛」"),
    ("combination:two_responses", {}, "一\n******\n二", "一\n******\n一"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "靴とは。"}, "靴とは。物だ。", "物だ。"),
    ("letters:furigana", {}, "靴（くつ）と鞄（かばん）", "靴（くつ）と鞄"),
    ("letters:hiragana_only", {}, "くつー、1。", "くつと靴"),
    ("letters:katakana_only", {}, "クツ・カバン", "クツと"),
    ("letters:no_hiragana", {}, "靴ト鞄", "靴と鞄"),
    ("letters:no_katakana", {}, "靴とかばん", "靴とバッグ"),
    ("letters:kanji", {"relation": "未満", "kanji_limit": 2}, "靴とかばん", "靴と鞄"),
    ("letters:kansuuji", {}, "三つ", "３つ"),
    ("punctuation:no_comma", {}, "はい。いいえ。", "はい、いいえ。"),
    ("punctuation:no_period", {}, "はい！", "はい。"),
    (
        "startend:end_checker",
        {"end_phrase": "何かありますか。"},
        "では「何かありますか。」",
        "では",
    ),
    ("startend:quotation", {}, "「はい。」", "「はい。」と"),
    (
        "startend:sentence_unified_end",
        {"ending": "です"},
        "靴です。\n「はい。」も靴です！",
        "靴です。靴だ。",
    ),
]


@for_each(("name", "arguments", "followed", "broken"), EXAMPLES)
def test_each_instruction_can_be_followed_and_broken(
    problem, name: str, arguments: dict[str, object], followed: str, broken: str
) -> None:
    gold = {"instruction_id_list": [f"ja:{name}"], "kwargs": [arguments]}
    one = problem("instruction_rules", gold)

    assert (1.0, "correct") == (verify(one, followed).score, verify(one, followed).reason)
    assert (0.0, "wrong") == (verify(one, broken).score, verify(one, broken).reason)


def test_every_instruction_is_tested() -> None:
    assert JAPANESE.keys() == {f"ja:{name}" for name, *_ in EXAMPLES}


@for_each(
    ("text", "expected"),
    [
        ("美しい海。", 1.0),
        ("静かなカフェ！", 1.0),
        ("大切なこと。", 1.0),
        ("きれいなさくら。静かな海。", 1.0),
        ("本を読む。", 0.0),
        ("よく考える。", 0.0),
        ("海へ行きたい。", 0.0),
        ("海です。", 0.0),
        ("美しい海", 0.0),
        ("「海。」", 0.0),
        ("きれいなさくら。", None),
        ("甘いぶどう。", None),
        ("深い思い。", None),
    ],
)
def test_a_sentence_that_may_end_in_a_noun_is_not_guessed_at(
    problem, text: str, expected: float | None
) -> None:
    gold = {
        "instruction_id_list": ["ja:detectable_format:nominal_ending"],
        "kwargs": [{"count": 1}],
    }
    verdict = verify(problem("instruction_rules", gold), text)

    assert expected == verdict.score
    assert (expected is None) == ("count_undecided" == verdict.reason)
