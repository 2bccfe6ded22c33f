"""IFEval's published reading beside the one that is paid.

On 1,505 random texts all 20 kinds gave what lm-evaluation-harness 0.4.13.dev0 (4e7e0d47) gives with
NLTK 3.9.2: 33,110 comparisons, none differed. The rows below were among them.
"""

import pytest

from tasks.gym.instructions.official import OFFICIAL
from tasks.gym.instructions.rules import verify

_SECOND = {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "weekend"}


@pytest.mark.parametrize(
    ("name", "arguments", "text", "published", "paid"),
    [
        (
            "length_constraints:nth_paragraph_first_word",
            _SECOND,
            "Plans.\n\n\n\nWeekend trips.",
            0.0,
            1.0,
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            _SECOND,
            "Plans.\n\n**Weekend** trips.",
            0.0,
            1.0,
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            _SECOND,
            "Plans.\n\nWeekend, yes.",
            1.0,
            1.0,
        ),
        (
            "detectable_format:number_bullet_lists",
            {"num_bullets": 2},
            "---\n* one\n* two",
            0.0,
            1.0,
        ),
        (
            "detectable_format:number_highlighted_sections",
            {"num_highlights": 1},
            "2 * 3 * 4",
            1.0,
            0.0,
        ),
        ("detectable_format:json_format", {}, '{"a": NaN}', 1.0, 0.0),
        ("keywords:forbidden_words", {"forbidden_words": ["art"]}, "I like _art_.", 1.0, 0.0),
        (
            "length_constraints:number_words",
            {"relation": "at least", "num_words": 3},
            "\u0e44\u0e1b\u0e40\u0e17\u0e35\u0e48\u0e22\u0e27\u0e01\u0e31\u0e19",
            1.0,
            0.0,
        ),
        ("detectable_format:title", {}, "<< >><< >>x", 1.0, 0.0),
        (
            "detectable_format:constrained_response",
            {},
            "My answer is yes. My answer is no.",
            1.0,
            0.0,
        ),
        ("startend:quotation", {}, "\u201cRed shoes.\u201d", 0.0, 1.0),
        ("startend:quotation", {}, "\u201cRed shoes.", 0.0, 0.0),
        ("punctuation:no_comma", {}, "\u7ea2\u978b\uff0c\u84dd\u978b", 1.0, 0.0),
        ("punctuation:no_comma", {}, "red shoes", 1.0, 1.0),
        (
            "detectable_content:number_placeholders",
            {"num_placeholders": 1},
            "- [ ] buy shoes []",
            1.0,
            0.0,
        ),
        ("detectable_content:number_placeholders", {"num_placeholders": 1}, "[name]", 1.0, 1.0),
    ],
)
def test_a_published_score_and_a_reward_may_read_an_instruction_in_two_ways(
    problem, name: str, arguments: dict[str, object], text: str, published: float, paid: float
) -> None:
    gold = {"instruction_id_list": [name], "kwargs": [arguments]}

    scores = [
        verify(problem("instruction_rules", gold | more), text).score
        for more in ({"reading": "ifeval"}, {})
    ]

    assert [published, paid] == scores


def test_the_published_reading_covers_what_needs_no_model() -> None:
    assert 20 == len(OFFICIAL)
