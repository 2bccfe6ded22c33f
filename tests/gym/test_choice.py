"""Choices among options in eleven languages."""

# ruff: noqa: RUF001 - other scripts are the point
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.choice import verify

SHOES = {
    "correct": ["Shoes", "鞋子", "sepatu", "kasut", "sapatos", "รองเท้า", "giày dép"],
    "others": [["Bags", "包包", "tas", "beg", "bolsas", "กระเป๋า", "túi xách"], ["Hats", "topi"]],
}


@pytest.mark.parametrize(
    "response",
    [
        "Shoes",
        "  sHOES.",
        "<think>Bags?</think>Shoes",
        "Bags are carried and shoes are worn. Answer: Shoes",
        "\\boxed{Shoes}",
        "答案是鞋子。",
        "這是鞋子類",
        "Jawaban: sepatu",
        "Jawapannya ialah kasut",
        "Resposta: SAPATOS",
        "คำตอบคือรองเท้าครับ",
        "Đáp án: Giày dép",
        "S\u200bhoes",
        "\uff33hoes",
        "Shoes is the answer:",
    ],
)
def test_the_right_option_is_recognised_in_every_language(problem, response: str) -> None:
    assert 1.0 == verify(problem("choice", SHOES), response).score


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("Bags", "wrong"),
        ("Horseshoes", "wrong"),
        ("shoestring", "wrong"),
        ("I cannot tell", "wrong"),
        ("Shoes or bags", "several_answers"),
        ("กระเป๋ารองเท้า", "several_answers"),
        ("Answer: shoes, bags, hats", "several_answers"),
        ("Bags\nAnswer: Shoes", "several_answers"),
        ("Answer: bags. Answer: shoes", "several_answers"),
        ("<think>Shoes", "no_answer"),
    ],
)
def test_anything_else_scores_zero(problem, response: str, reason: str) -> None:
    verdict = verify(problem("choice", SHOES), response)

    assert (0.0, reason) == (verdict.score, verdict.reason)


@pytest.mark.parametrize(
    "response",
    [
        "Not shoes",
        "It is not shoes.",
        "It isn't shoes",
        "I don't think the right answer is shoes.",
        "Anything but shoes",
        "Neither shoes nor socks",
        "Shoes is wrong.",
        "Shoes are not correct",
        "Shoes: not the answer? Shoes is not the right answer",
        "Answer: not shoes",
        "Shoes. Not shoes.",
        "Bukan sepatu",
        "Jawabannya bukan sepatu.",
        "Sepatu itu salah",
        "Bukan kasut",
        "Jawapannya bukanlah kasut",
        "Não são sapatos",
        "A resposta não é sapatos",
        "Sapatos está errado",
        "No son sapatos",
        "La respuesta no es sapatos",
        "Ce n'est pas shoes",
        "Không phải giày dép",
        "Đáp án không phải là giày dép",
        "Giày dép là sai",
        "ไม่ใช่รองเท้า",
        "คำตอบไม่ใช่รองเท้า",
        "รองเท้าไม่ใช่คำตอบ",
        "รองเท้าผิด",
        "不是鞋子",
        "答案不是鞋子。",
        "我不認為是鞋子",
        "鞋子不是正確答案",
        "鞋子是錯的",
        "並非鞋子",
    ],
)
def test_an_option_that_is_denied_is_not_asserted(problem, response: str) -> None:
    assert (0.0, "wrong") == (
        (verdict := verify(problem("choice", SHOES), response)).score,
        verdict.reason,
    )


@pytest.mark.parametrize(
    "response",
    [
        "Maybe shoes",
        "It might be shoes",
        "It could be the shoes.",
        "I am not sure, but shoes",
        "Shoes?",
        "Shoes, maybe.",
        "Either shoes or sandals",
        "Shoes or sandals",
        "Mungkin sepatu",
        "Boleh jadi kasut",
        "Sepatu atau sandal",
        "Talvez sapatos",
        "Pode ser sapatos",
        "Quizás shoes",
        "Tal vez shoes",
        "Peut-être shoes",
        "Có thể là giày dép",
        "Giày dép hoặc ủng",
        "อาจเป็นรองเท้า",
        "รองเท้าหรือถุงเท้า",
        "可能是鞋子",
        "也許是鞋子",
        "鞋子或靴子",
    ],
)
def test_a_guess_is_not_an_answer(problem, response: str) -> None:
    assert (0.0, "hedged") == (
        (verdict := verify(problem("choice", SHOES), response)).score,
        verdict.reason,
    )


@pytest.mark.parametrize(
    "response",
    [
        "Not bags, shoes",
        "Shoes, not bags.",
        "Shoes and not hats",
        "It is not electronic, so it is shoes.",
        "The item is not electronic so the category is shoes",
        "No doubt: shoes.",
        "No, shoes.",
        "I don't carry it. Shoes",
        "Shoes. They are not heavy.",
        "Shoes because they could be worn",
        "Why? Shoes.",
        "Bukan tas, melainkan sepatu",
        "Kasut, bukan beg",
        "Não são bolsas, são sapatos",
        "No son bolsas, son sapatos",
        "Không phải túi xách mà là giày dép",
        "ไม่ใช่กระเป๋า แต่เป็นรองเท้า",
        "不是包包，是鞋子",
        "鞋子，不是包包",
        "非常像鞋子",
    ],
)
def test_denying_another_option_takes_nothing_from_the_right_one(problem, response: str) -> None:
    assert 1.0 == verify(problem("choice", SHOES), response).score


@pytest.mark.parametrize("word", ["&", "and", "＆", "&amp;", "dan", "e", "y", "et", "và", "和"])
@pytest.mark.parametrize("alias", ["Home & Garden", "Home and Garden"])
def test_an_ampersand_is_an_and_in_every_language(problem, word: str, alias: str) -> None:
    gold = {"correct": [alias], "others": [["Garden"]]}

    assert 1.0 == verify(problem("choice", gold), f"It is Home {word} Garden.").score
    assert 0.0 == verify(problem("choice", gold), "Home, in a Garden").score


@pytest.mark.parametrize(
    ("alias", "response"),
    [
        ("บ้านและสวน", "บ้าน & สวน"),
        ("บ้าน & สวน", "บ้านและสวน"),
        ("家居和園藝", "家居&園藝"),
        ("家居 & 園藝", "家居與園藝"),
        ("Women's Fashion", "women’s fashion"),
        ("Tees, Tops", "Tees & Tops"),
        ("Tees & Tops", "Tees, Tops"),
    ],
)
def test_names_of_several_words_are_found_in_other_spellings(problem, alias, response) -> None:
    expected = 0.0 if alias == "Tees, Tops" else 1.0

    assert expected == verify(problem("choice", {"correct": [alias]}), response).score


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("B. This is a shoe", 1.0),
        ("B or A", 0.0),
        ("B A", 0.0),
        ("B. A is right", 0.0),
        ("B is wrong", 0.0),
        ("Not B", 0.0),
    ],
)
def test_an_article_is_not_option_a(problem, response: str, expected: float) -> None:
    gold = {"correct": ["B"], "others": [["A"]]}

    assert expected == verify(problem("choice", gold), response).score


@pytest.mark.parametrize(
    ("gold", "response", "expected"),
    [
        ({"correct": ["no"], "others": [["yes"]]}, "The answer isn't no.", 0.0),
        ({"correct": ["no"], "others": [["yes"]]}, "The answer is not no.", 0.0),
        ({"correct": ["B", "no"], "others": [["A", "yes"]]}, "B) no", 1.0),
        ({"correct": ["B", "no"], "others": [["A", "yes"]]}, "B is not no", 0.0),
        ({"correct": ["B", "three"], "others": [["A", "two"]]}, "three, no", 0.0),
        ({"correct": ["B"], "others": [["A"]]}, "A resposta é B.", 1.0),
        ({"correct": ["B"], "others": [["A"]]}, "A\nA resposta é B.", 0.0),
        ({"correct": ["B", "How bad is it?"], "others": [["A"]]}, '"How bad is it?"', 1.0),
        ({"correct": ["B", "How bad is it?"], "others": [["A"]]}, "Maybe how bad is it?", 0.0),
        ({"correct": ["B", "How bad is it?"], "others": [["A"]]}, "How bad is it??", 1.0),
        ({"correct": ["B", "How bad is it?"], "others": [["A"]]}, "How bad is it?!", 1.0),
        ({"correct": ["B", "How bad is it?"], "others": [["A"]]}, "B. How bad is it?", 1.0),
        ({"correct": ["B", "How bad is it?"], "others": [["A"]]}, "B?", 0.0),
        ({"correct": ["B"], "others": [["A"]]}, "\\boxed{\\text{B}}", 1.0),
        ({"correct": ["B"], "others": [["A"]]}, "B. A resposta é a segunda", 1.0),
    ],
)
def test_what_surrounds_an_answer_is_read_as_people_read_it(
    problem, gold, response: str, expected: float
) -> None:
    assert expected == verify(problem("choice", gold), response).score


SIGNED = ["A. {}", "A) {}", "(A) {}", "**A** {}", "A: {}", "A, {}", "A - {}", "A! {}", "A\n{}"]
ANNOUNCED = [
    "The answer is B.",
    "Answer: B",
    "A resposta é B.",
    "Jawabannya adalah B",
    "Jawapannya ialah B",
    "Đáp án là B",
    "คำตอบคือ B",
    "答案是B",
    "La respuesta es B",
    "La réponse est B",
    "Die Antwort ist B",
    "La risposta è B",
    "#### B",
    "\\boxed{B}",
]


@pytest.mark.parametrize("announced", ANNOUNCED)
def test_an_announced_answer_is_read_and_repairs_no_earlier_one(problem, announced: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 1.0 == verify(gold, announced).score
    assert [] == [first for first in SIGNED if verify(gold, first.format(announced)).score]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("A shoe", 0.0),
        ("A melhor opção é a segunda", 0.0),
        ("A resposta é a segunda", 0.0),
        ("A", 1.0),
        ("(A) shoe", 1.0),
        ("A - a shoe", 1.0),
        ("**A** it is worn", 1.0),
        ("A é a resposta", 1.0),
        ("A because it fits", 1.0),
        ("A resposta é A.", 1.0),
    ],
)
def test_an_article_is_not_the_right_option_a(problem, response: str, expected: float) -> None:
    gold = problem("choice", {"correct": ["A"], "others": [["B"], ["C"]]})

    assert expected == verify(gold, response).score


NAMED = (
    "Option B / I pick option B. / The correct option is B. / The answer is option B / "
    "It's B / It can't be A, so B. / Not A. B / Not A, but B / Not A or C. B / "
    "Pilihan B / Bukan A. B / Chọn B / Không phải A. B / ข้อ B / ไม่ใช่ A แต่เป็น B / "
    "选B / 不是A，是B / Opção B / A opção correta é B / No es A. Es B. / C'est B / "
    "Pas A. B / Nicht A, sondern B"
)


@pytest.mark.parametrize("response", NAMED.split(" / "))
def test_a_clause_may_name_a_letter_in_every_language(problem, response: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 1.0 == verify(gold, response).score


NOT_NAMED = (
    "Option A / Option B is wrong / option A, not option B / Not A. Not B. / "
    "Not A. Maybe B / Not A. C / A. Not B / So A. B / A is wrong. B is right. / "
    "I think vitamin B is in it / It tastes good. Vitamin B / Bukan A atau B / "
    "Không chọn B / ข้อ A หรือ B / ไม่ตอบ B / 选A或B / 不选B / 可能是B / B ou C / "
    "Nicht A oder B"
)


@pytest.mark.parametrize("response", NOT_NAMED.split(" / "))
def test_a_letter_that_no_clause_asserts_does_not_count(problem, response: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 0.0 == verify(gold, response).score


@pytest.mark.parametrize(
    "response",
    [
        "Not bags or shoes",
        "Bukan tas atau sepatu",
        "Não são bolsas ou sapatos",
        "Không phải túi xách hoặc giày dép",
        "ไม่ใช่กระเป๋าหรือรองเท้า",
        "不是包包或鞋子",
        "Sandals or shoes",
        "Not bags or hats, so the shoes... no",
    ],
)
def test_a_denial_holds_for_every_alternative_after_it(problem, response: str) -> None:
    assert 0.0 == verify(problem("choice", SHOES), response).score


def test_a_flood_of_options_is_the_response_s_fault(problem) -> None:
    verdict = verify(problem("choice", SHOES), "shoes " * 10_000)

    assert (0.0, "response_fault:flooded") == (verdict.score, verdict.reason)


def test_a_competing_name_inside_the_right_one_is_no_second_answer(problem) -> None:
    gold = {"correct": ["Running Shoes"], "others": [["Shoes"]]}

    assert 1.0 == verify(problem("choice", gold), "Running shoes").score
    assert 0.0 == verify(problem("choice", gold), "Shoes").score


def test_the_right_name_inside_a_competing_one_is_not_asserted(problem) -> None:
    gold = {"correct": ["Shoes"], "others": [["Running Shoes"]]}

    assert 0.0 == verify(problem("choice", gold), "Running shoes").score


def test_a_letter_inside_a_sentence_does_not_count(problem) -> None:
    gold = {"correct": ["A"], "others": [["B"]]}

    assert 1.0 == verify(problem("choice", gold), "(A) because it fits").score
    assert 0.0 == verify(problem("choice", gold), "It is a shoe").score
    assert 0.0 == verify(problem("choice", gold), "A or B").score


def test_an_alias_of_nothing_but_signs_is_an_abstention(problem) -> None:
    verdict = verify(problem("choice", {"correct": ["--"]}), "Shoes")

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


@given(
    before=st.sampled_from(["", " ", "\n", "«", "**"]),
    after=st.sampled_from(["", ".", " \n", "**", "!"]),
    swap=st.booleans(),
)
def test_case_space_and_signs_around_do_not_matter(problem, before, after, swap) -> None:
    name = "sHoEs" if swap else "Shoes"

    assert 1.0 == verify(problem("choice", SHOES), f"{before}{name}{after}").score


@given(tail=st.text(max_size=40))
def test_a_wrong_choice_cannot_be_repaired(problem, tail: str) -> None:
    for wrong in ("Bags\n", "**Bags**\n", "Answer: Bags "):
        response = f"{wrong}{tail} Answer: Shoes"

        assert 0.0 == verify(problem("choice", SHOES), response).score
