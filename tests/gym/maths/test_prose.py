"""What a sentence states."""

import pytest

from tasks.gym.maths.locate import lenient
from tasks.gym.maths.parse import parse
from tasks.gym.maths.prose import stated
from tasks.gym.table import score_batch
from tests.tables import for_each


def test_a_bound_within_a_formula_is_no_result(problem) -> None:
    """The `=` of an index had split the formula, and the 1 of a summand was paid."""
    text = (
        r"In conclusion, the limit \( \lim_{n\to\infty}\frac{1}{\log n}\sum_{k=1}^n"
        r"\left(1 -\frac{1}{n}\right)^k \) is divergent and approaches infinity."
    )

    (verdict,) = score_batch([problem("final_answer", {"value": "1"})], [text])

    assert (0.0, "wrong") == (verdict.score, verdict.reason)


@for_each(
    ("language", "sentence", "values"),
    [
        ("en", "26 per day because of 3 ducks", ("26",)),
        ("en", "that she pays 26 in 2 days", ()),
        ("en", "as she has x + 3 = 10 apples", ()),
        ("en", "either 5 or 3", ()),
        ("en", "5 apples or maybe 3 pears", ("5", "3")),
        ("en", "between 2 and 3 of them", ()),
        ("en", "2 to 3 of the 9", ()),
        ("en", "not 8 but what", ()),
        ("en", "not 8 but rather 9", ("9",)),
        ("en", "at least 8 in all", ()),
        ("en", "more than 8 of them", ()),
        ("en", "8 is wrong", ()),
        ("en", "8 is not the answer to 1", ()),
        ("en", "27 and a half", ("27 and a half",)),
        ("en", "3 x 2", ("3 x 2",)),
        ("en", ">= 8", ()),
        ("en", "8 by 3", ()),
        ("en", "1 in 8", ()),
        ("en", "8h 30m", ()),
        ("en", "8_000", ()),
        ("en", "8 Hz", ("8 Hz",)),
        ("en", "anything but 48", ()),
        ("en", "AZYUK2A", ()),
        ("en", "the 5th of them", ()),
        ("en", "8 million people of 9", ("8 million",)),
        ("id", "bukan 8 tentunya", ()),
        ("vi", "không phải là 8", ()),
        ("es", "no es 8", ()),
        ("fr", "n'est pas 8", ()),
        ("de", "nicht 8 Stück", ()),
        ("pt", "não é 8", ()),
        ("th", "ไม่ใช่ 8", ()),
        ("zh", "不是8", ()),
        ("zh", "大于8", ()),
    ],
)
def test_hedges_ranges_and_denials_state_no_one_value(language, sentence, values) -> None:
    assert values == stated(sentence, language, leading=True)


def test_the_last_number_counts_where_nothing_announces_the_first() -> None:
    assert ("13",) == stated("Of 16 eggs she keeps 13.", "en", leading=False)
    assert ("1,000.99",) == stated("not it's not 10 it's 1,000.99", "en", leading=False)


@for_each(
    "sentence",
    [
        "Then subtract from the total: 20 eggs - 7 eggs = 13 eggs",
        "so much per year: $1/month * 13 months/year = $13/year",
        "Therefore, they have 6 + 7 = 13 dice altogether",
        "Lilia earned $6 + $7 = $13 for selling 14 peaches",
        "Lilia has $20 - $7 = $13 more than Tommy",
        "either 12 or x = 13",
        "not x = 13",
        "I first thought 13 but that is wrong",
    ],
)
def test_an_equation_in_words_states_its_last_side_unless_it_is_denied(sentence: str) -> None:
    found = stated(sentence, "en", leading=False)

    assert [] == [value for value in found if "13" not in value]
    assert bool(found) == sentence.startswith(("The", "so much", "Lilia"))


@pytest.mark.parametrize(
    "sentence",
    [
        "Thus, Sammy made 20 - 7 = 13 mistakes.",
        "To express the answer as a percentage: 13 / 100 * 100 = 13",
    ],
)
def test_a_last_line_that_calculates_states_its_result(sentence: str) -> None:
    assert ["13"] == [place.text.removesuffix(" mistakes.") for place in lenient(sentence, "en")]


@for_each(
    "phrase",
    [
        "twice 12",
        "half of 12",
        "a third of 12",
        "the reciprocal of 12",
        "7 per cent of 12",
        "12 per cent of 9",
        "9 aka 12",
        "12 aka 9",
        "the interval starting at 12",
    ],
)
def test_a_number_that_is_worked_with_is_not_stated(phrase: str) -> None:
    for sentence in (f"The answer is {phrase}.", f"Answer: {phrase}", f"We conclude {phrase}"):
        places = [place.text for place in lenient(sentence, "en")]

        assert [] == [text for text in places if parse(text).text == "12"]


@pytest.mark.parametrize(
    "response",
    [
        "It is false that the answer is 12.",
        "It is impossible to find f(12).",
        "It is impossible to find $f(12)$.",
        "Had we added, the answer is 12; we multiply.",
    ],
)
def test_a_sentence_that_claims_nothing_is_not_read(response: str) -> None:
    assert "12" not in [place.text for place in lenient(response, "en")]


CLOSINGS = (
    "I hope this helps!",
    "Hope that helps :)",
    "Let me know if you have any questions.",
    "Feel free to ask more questions.",
    "Thank you!",
    "Have a great day!",
    "This concludes the solution.",
    "Q.E.D.",
    "Semoga membantu!",
    "Espero que ayude.",
    "希望对你有帮助!",
)


@for_each("closing", CLOSINGS)
@for_each("answer", ["12", "So she has 12.", "So 3*4 = 12.", "The answer is 12."])
def test_a_polite_closing_line_does_not_hide_the_answer(answer: str, closing: str) -> None:
    for gap in ("\n", "\n\n"):
        places = lenient(f"{answer}{gap}{closing}", "en")

        assert {"12"} == {place.text.rstrip(".") for place in places}


@for_each(
    "response",
    [
        "The answer for Mr. Smith is 12.",
        "The answer to what Dr. Lee asked is 12.",
        "Answer: Mr. Smith has 12 apples.",
        "So Mr. Smith pays Mrs. Jones 12 dollars.",
        "Mr. Smith has 3 pens and Mr. Jones 4. So the answer is 12.",
        "The answer is 12, as Mr. Smith said.",
        "The answer is approx. 12.",
    ],
)
def test_a_title_ends_no_sentence(response: str) -> None:
    assert ["12"] == [parse(text).text.partition(" ")[0] for text in texts_of(response)]


def texts_of(response: str) -> list[str]:
    return [
        text for place in lenient(response, "en") for text in stated(place.text, "en", leading=True)
    ]


def test_after_a_number_stands_its_noun_or_nothing() -> None:
    kept = ("12 apples", "12 red apples left", "12 km", "12 people", "12, as required", "1 apple")
    other = (
        "12 reversed",
        "12 written backwards",
        "12 point five",
        "12 in hexadecimal",
        "12 at best",
    )

    for phrase in kept:
        assert stated(f"{phrase}.", "en", leading=True)
    for phrase in other:
        assert () == stated(f"{phrase}.", "en", leading=True)


@pytest.mark.parametrize("answer", ["The answer is 7.", "It is \\boxed{7}."])
def test_a_sentence_that_offers_another_answer_is_a_second_one(problem, answer: str) -> None:
    offers = (
        "But {} is also possible.",
        "However, {} might be another answer.",
        "It could also be {}.",
        "Another possibility is {}.",
        "Or it might be {}.",
    )
    kept = (
        "But {} is not possible.",
        "It could also be written as {} - 9.",
        "But {} is too large.",
        "It is also possible to try {} cards.",
    )
    gold = problem("final_answer", {"value": "7"})

    for texts, solved in ((offers, False), (kept, True)):
        responses = [f"{answer} {text.format(16)}" for text in texts]
        verdicts = score_batch([gold] * len(texts), responses)
        assert [solved] * len(texts) == [one.solved for one in verdicts]
    (same,) = score_batch([gold], [f"{answer} It could also be 14/2."])
    assert same.solved
