"""The 25 instructions of IFEval: each followed, each broken."""

from tasks.gym.instructions.checks import CHECKS
from tasks.gym.instructions.rules import verify
from tests.tables import for_each

AT_LEAST_2 = {"relation": "at least", "frequency": 2, "keyword": "shoe"}
FEWER_THAN_2 = {"relation": "less than", "frequency": 2, "keyword": "shoe"}

FOLLOWED_AND_BROKEN: list[tuple[str, dict[str, object], str, str]] = [
    ("keywords:existence", {"keywords": ["Red", "shoe"]}, "red SHOES", "red bags"),
    ("keywords:forbidden_words", {"forbidden_words": ["bag"]}, "Baggage", "A bag."),
    ("keywords:frequency", AT_LEAST_2, "Shoes and shoes", "one shoe"),
    ("keywords:frequency", FEWER_THAN_2, "one shoe", "Shoes and shoes"),
    (
        "keywords:letter_frequency",
        {"letter": "e", "let_relation": "at least", "let_frequency": 3},
        "Eleven e",
        "one",
    ),
    (
        "language:response_language",
        {"language": "th"},
        "รองเท้าสีแดงขนาดเล็ก",
        "Small red shoes for the kids.",
    ),
    (
        "length_constraints:number_sentences",
        {"relation": "less than", "num_sentences": 3},
        "Dr. Lee paid 3.50 for it. Good!",
        "One. Two. Three.",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "A\n***\nB", "A\n\nB"),
    (
        "length_constraints:number_words",
        {"relation": "at least", "num_words": 3},
        "red, small shoes",
        "red shoes",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "shoes"},
        'Red.\n\n"Shoes," they said.',
        "Red.\n\nThe shoes.",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] [city]", "[name]"),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "Bye.\np. s. Hi",
        "Bye. PS Hi",
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S Hi", "P.S. Hi"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n - b", "* a\n* b\n* c"),
    ("detectable_format:constrained_response", {}, "My answer is yes.", "Yes."),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*red* and **small**",
        "*red* and **",
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\na\nSECTION 2\nb",
        "SECTION 1\na\nSECTION b",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    ("detectable_format:title", {}, "<<Red Shoes>>\nSmall.", "<<  >> Red"),
    ("combination:two_responses", {}, "Red\n******\nBlue", "Red\n******\nRed"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Sell shoes."}, "sell shoes. Ok", "Ok"),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, 'Hi. any questions?" ', "Any."),
    ("startend:quotation", {}, ' "Red shoes" ', '"Red shoes'),
    (
        "change_case:capital_word_frequency",
        {"capital_relation": "less than", "capital_frequency": 2},
        "A red shoe",
        "RED SHOE",
    ),
    (
        "change_case:english_capital",
        {},
        "THESE ARE THE SHOES THAT YOU WANT.",
        "These are the SHOES that you want.",
    ),
    (
        "change_case:english_lowercase",
        {},
        "these are the shoes that you want.",
        "these are the shoes that You want.",
    ),
    ("punctuation:no_comma", {}, "red small shoes", "red, small shoes"),
]


@for_each(("name", "arguments", "followed", "broken"), FOLLOWED_AND_BROKEN)
def test_each_instruction_can_be_followed_and_broken(
    problem, name: str, arguments: dict[str, object], followed: str, broken: str
) -> None:
    one = problem("instruction_rules", {"instruction_id_list": [name], "kwargs": [arguments]})

    assert (1.0, "correct") == (verify(one, followed).score, verify(one, followed).reason)
    assert (0.0, "wrong") == (verify(one, broken).score, verify(one, broken).reason)


def test_all_25_instructions_are_there_and_tested() -> None:
    assert 25 == len(CHECKS)
    assert CHECKS.keys() == {name for name, *_ in FOLLOWED_AND_BROKEN}


FIRST = "length_constraints:nth_paragraph_first_word"
WEEKEND = {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "weekend"}
BULLETS = "detectable_format:number_bullet_lists"
MARKED = "detectable_format:number_highlighted_sections"
CONSTRAINED = "detectable_format:constrained_response"
WORDS = {"relation": "less than", "num_words": 3}


@for_each(
    ("name", "arguments", "text", "score"),
    [
        (FIRST, WEEKEND, "Plans differ.\n\n\n\nWeekend trips are shorter.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\r\n\r\nWeekend trips are shorter.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\n \t\nWeekend trips are shorter.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\n\n**Weekend** trips are shorter.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\n\nWeekend: trips are shorter.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\n\n- “Weekend” trips are shorter.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\n\n(`Weekend`) trips are shorter.", 1.0),
        (FIRST, WEEKEND | {"first_word": "don't"}, "Plans differ.\n\nDon't go.", 1.0),
        (FIRST, WEEKEND, "Plans differ.\n\nWeekends are shorter.", 0.0),
        (FIRST, WEEKEND, "Plans differ.\nWeekend trips are shorter.", 0.0),
        (BULLETS, {"num_bullets": 2}, "Intro.\n\n---\n\n* one\n* two", 1.0),
        (BULLETS, {"num_bullets": 2}, "* * *\n- one\n- two\n-5 degrees is cold.", 1.0),
        (BULLETS, {"num_bullets": 3}, "* one\n* two\n-5 degrees is cold.", 0.0),
        (BULLETS, {"num_bullets": 2}, "*one*\n*two*", 0.0),
        ("detectable_content:number_placeholders", {"num_placeholders": 1}, "[a](b.html)", 0.0),
        (MARKED, {"num_highlights": 1}, "2 * 3 * 4 = 24", 0.0),
        (MARKED, {"num_highlights": 1}, r"Write \*so\* with stars.", 0.0),
        (MARKED, {"num_highlights": 1}, "2*3*4 = 24", 0.0),
        (MARKED, {"num_highlights": 2}, "*one* and **two words**", 1.0),
        (MARKED, {"num_highlights": 2}, "only **two words**", 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["art"]}, "I like _art_ here.", 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["art"]}, "I like party hats.", 1.0),
        ("keywords:forbidden_words", {"forbidden_words": ["艺术"]}, "这是艺术作品", 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["ศิลปะ"]}, "นี่คือศิลปะไทย", 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["nghe\u0302"]}, "ngh\u00ea", 0.0),
        ("keywords:existence", {"keywords": ["nghe\u0302"]}, "ngh\u00ea", 1.0),
        ("keywords:forbidden_words", {"forbidden_words": ["can't"]}, "I can\u2019t.", 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["can't"]}, "I can; it is his.", 1.0),
        ("keywords:forbidden_words", {"forbidden_words": ["red bag"]}, "A red\nbag.", 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["red bag"]}, "A red, bag.", 1.0),
        ("keywords:existence", {"keywords": ["don't"]}, "I don\u2019t.", 1.0),
        ("keywords:existence", {"keywords": ["red bag"]}, "A red\nbag.", 1.0),
        ("keywords:existence", {"keywords": ["red bag"]}, "A red, bag.", 0.0),
        (CONSTRAINED, {}, "So: My answer is no. My answer is no.", 1.0),
        (CONSTRAINED, {}, "My answer is yes. My answer is no.", 0.0),
        ("detectable_format:title", {}, "# <<Red>>\nShoes", 1.0),
        ("detectable_format:title", {}, "<<Red\nShoes>>", 0.0),
        ("detectable_format:title", {}, ">> Red <<", 0.0),
        ("startend:end_checker", {"end_phrase": "The end."}, "So. **The end.**", 1.0),
        ("startend:end_checker", {"end_phrase": "the end"}, "So it is *the end*.", 1.0),
        ("startend:end_checker", {"end_phrase": "The end."}, "So. **The end.** Yes", 0.0),
        ("startend:end_checker", {"end_phrase": "The end **"}, "So. The end", 0.0),
        ("punctuation:no_comma", {}, "\u7ea2\u978b\u3001\u84dd\u978b", 0.0),
        ("detectable_format:json_format", {}, '{"a": NaN}', 0.0),
        ("detectable_format:json_format", {}, '{"a": null}', 1.0),
        ("length_constraints:number_words", WORDS, "tie\u0302\u0301ng Vie\u0323\u0302t", 1.0),
    ],
)
def test_a_check_reads_what_its_instruction_says(problem, name, arguments, text, score) -> None:
    one = problem("instruction_rules", {"instruction_id_list": [name], "kwargs": [arguments]})

    assert score == verify(one, text).score
