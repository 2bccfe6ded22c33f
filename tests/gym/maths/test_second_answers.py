"""A second answer behind the first is not paid, and what only sounds like one is no hedge."""

# ruff: noqa: RUF001 - signs that people type
import pytest

from tasks.gym.table import score_batch

SECOND = {
    "en": [
        "The answer is 7, and also 16.",
        "The answer is 7 and also 16.",
        "The answer is 7 apples, and also 16.",
        "The answer is 7 kg, and also 16 kg.",
        "The answer is **7**, and also **16**.",
        "The answer is $7$, but $16$ is also valid.",
        "The answer is 7, as well as 16.",
        "Final answer: 7, alternatively 16",
    ],
    "zh": [
        "答案是7，也可以是16。",
        "答案是7，或者16。",
        "答案是7，另外16也对。",
        "答案是7，同时也是16。",
        "答案是7（也可能是16）。",
    ],
    "id": [
        "Jawabannya adalah 7, dan juga 16.",
        "Jawabannya adalah 7, tetapi bisa juga 16.",
        "Jawabannya 7, atau mungkin 16.",
        "Jawabannya adalah 7, 16 juga diterima.",
    ],
    "ms": [
        "Jawapannya ialah 7, dan juga 16.",
        "Jawapannya ialah 7, tetapi boleh juga 16.",
        "Jawapannya ialah 7. 16 juga betul.",
        "Jawapan: 7, mungkin juga 16.",
    ],
    "th": [
        "คำตอบคือ 7 และ 16 ด้วย",
        "คำตอบคือ 7 หรืออาจเป็น 16",
        "คำตอบคือ 7 แต่ 16 ก็ถูกเช่นกัน",
        "คำตอบคือ 7 หรือ 16 ก็ได้",
    ],
    "vi": [
        "Đáp án là 7, và cũng là 16.",
        "Đáp án là 7, nhưng 16 cũng đúng.",
        "Đáp án là 7, cũng có thể 16.",
        "Đáp án là 7 (cũng có thể là 16).",
    ],
    "pt": [
        "A resposta é 7, e também 16.",
        "A resposta é 7, mas 16 também é possível.",
        "A resposta é 7, ou talvez 16.",
        "A resposta é 7, e 16 também está correta.",
    ],
    "es": [
        "La respuesta es 7, y también 16.",
        "La respuesta es 7, pero 16 también es posible.",
        "La respuesta es 7, o quizás 16.",
        "Respuesta: 7 (o también 16).",
    ],
    "fr": ["La réponse est 7, et aussi 16."],
    "de": ["Die Antwort ist 7, aber auch 16."],
    "tl": ["Ang sagot ay 7, at 16 din."],
    "ja": ["答えは7で、16も可能です。"],
}
NONE = {
    "en": [
        "The answer is 7, and it is also divisible by 7.",
        "The answer is 7, and also divisible by 1.",
        "The answer is 7, and also prime.",
        "The answer is 7, that is, 14/2.",
        "The answer is 7, or 14/2.",
        "The answer is 7 apples, since 16 - 9 = 7.",
        "The answer is 7 apples and 16 are left over for the others.",
        "The answer is 7, so option 2 is right.",
        "The answer is 7 because 16 could be split as 9 and 7.",
        "The answer is 7, not 16.",
    ],
    "zh": [
        "答案是7，也就是14/2。",
        "答案是7，因为16-9=7。",
        "答案是7个苹果，也是一个质数。",
        "答案是7，也能被7整除。",
        "答案是7，另外9个苹果给了小明。",
    ],
    "id": [
        "Jawabannya adalah 7, yaitu 14/2.",
        "Jawabannya adalah 7 karena 16 - 9 = 7.",
        "Jawabannya adalah 7, dan juga habis dibagi 7.",
        "Jawabannya 7 atau 14/2.",
    ],
    "ms": [
        "Jawapannya ialah 7, iaitu 14/2.",
        "Jawapannya ialah 7, dan juga boleh dibahagi dengan 7.",
        "Jawapannya ialah 7, dan juga nombor perdana.",
        "Jawapannya ialah 7 atau 14/2.",
    ],
    "th": [
        "คำตอบคือ 7 ซึ่งก็คือ 14/2",
        "คำตอบคือ 7 เพราะ 16 - 9 = 7",
        "คำตอบคือ 7 และหารด้วย 7 ลงตัวด้วย",
        "คำตอบคือ 7 และเป็นจำนวนเฉพาะด้วย",
    ],
    "vi": [
        "Đáp án là 7, tức là 14/2.",
        "Đáp án là 7 vì 16 - 9 = 7.",
        "Đáp án là 7, và cũng chia hết cho 7.",
        "Đáp án là 7, hay 14/2.",
    ],
    "pt": [
        "A resposta é 7, ou seja, 14/2.",
        "A resposta é 7, pois 16 - 9 = 7.",
        "A resposta é 7, e também é divisível por 7.",
        "A resposta é 7, ou 14/2.",
    ],
    "es": [
        "La respuesta es 7, es decir, 14/2.",
        "La respuesta es 7, ya que 16 - 9 = 7.",
        "La respuesta es 7, y también es divisible por 7.",
        "La respuesta es 7, o 14/2.",
    ],
    "fr": ["La réponse est 7, car 16 - 9 = 7."],
    "de": ["Die Antwort ist 7, also 7 Äpfel."],
}


@pytest.mark.parametrize("language", sorted(SECOND))
def test_a_second_answer_behind_the_first_is_not_paid(problem, language: str) -> None:
    texts = SECOND[language]
    gold = problem("final_answer", {"value": "7"}).model_copy(update={"language": language})

    verdicts = score_batch([gold] * len(texts), texts)

    assert [] == [text for text, one in zip(texts, verdicts, strict=True) if one.score != 0.0]


@pytest.mark.parametrize("language", sorted(NONE))
def test_an_explanation_a_unit_or_the_same_value_is_no_second_answer(
    problem, language: str
) -> None:
    texts = NONE[language]
    gold = problem("final_answer", {"value": "7"}).model_copy(update={"language": language})

    verdicts = score_batch([gold] * len(texts), texts)

    assert [] == [text for text, one in zip(texts, verdicts, strict=True) if one.score != 1.0]


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("7, 16", "The answer is 7 or 16."),
        ("7, 16", "The answer is x = 7 or x = 16."),
        ("3/4", "The answer is 3/4, or 0.75."),
    ],
)
def test_two_answers_are_right_where_the_gold_has_them(problem, gold: str, text: str) -> None:
    (verdict,) = score_batch([problem("final_answer", {"value": gold})], [text])

    assert "correct" == verdict.reason
