"""Choices among options in eleven languages."""

# ruff: noqa: RUF001 - other scripts are the point
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.choice import verify
from tests.tables import for_each
from tests.timing import timed

SHOES = {
    "correct": ["Shoes", "鞋子", "sepatu", "kasut", "sapatos", "รองเท้า", "giày dép"],
    "others": [["Bags", "包包", "tas", "beg", "bolsas", "กระเป๋า", "túi xách"], ["Hats", "topi"]],
}


@for_each(
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


@for_each(
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


@for_each(
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


@for_each(
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


@for_each(
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


@for_each("word", ["&", "and", "＆", "&amp;", "dan", "e", "y", "et", "và", "和"])
@for_each("alias", ["Home & Garden", "Home and Garden"])
def test_an_ampersand_is_an_and_in_every_language(problem, word: str, alias: str) -> None:
    gold = {"correct": [alias], "others": [["Garden"]]}

    assert 1.0 == verify(problem("choice", gold), f"It is Home {word} Garden.").score
    assert 0.0 == verify(problem("choice", gold), "Home, in a Garden").score


@for_each(
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


@for_each(
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


@for_each(
    ("gold", "response", "expected"),
    [
        ({"correct": ["no"], "others": [["yes"]]}, "The answer isn't no.", 0.0),
        ({"correct": ["no"], "others": [["yes"]]}, "The answer is not no.", 0.0),
        ({"correct": ["no"], "others": [["yes"]]}, "Yes - no doubt.", 0.0),
        ({"correct": ["yes"], "others": [["no"]]}, "Yes - no doubt.", 1.0),
        ({"correct": ["yes"], "others": [["no"]]}, "Yes - no.", 0.0),
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


@for_each("announced", ANNOUNCED)
def test_an_announced_answer_is_read_and_repairs_no_earlier_one(problem, announced: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 1.0 == verify(gold, announced).score
    assert [] == [first for first in SIGNED if verify(gold, first.format(announced)).score]


@for_each(
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


@for_each("response", NAMED.split(" / "))
def test_a_clause_may_name_a_letter_in_every_language(problem, response: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 1.0 == verify(gold, response).score


NOT_NAMED = (
    "Option A / Option B is wrong / option A, not option B / Not A. Not B. / "
    "Not A. Maybe B / Not A. C / A. Not B / So A. B / "
    "I think vitamin B is in it / It tastes good. Vitamin B / Bukan A atau B / "
    "Không chọn B / ข้อ A หรือ B / ไม่ตอบ B / 选A或B / 不选B / 可能是B / B ou C / "
    "Nicht A oder B"
)


@for_each("response", NOT_NAMED.split(" / "))
def test_a_letter_that_no_clause_asserts_does_not_count(problem, response: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 0.0 == verify(gold, response).score


@for_each(
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


LETTERS = {"correct": ["B"], "others": [["A"], ["C"], ["D"]]}


@for_each(
    "response",
    [
        "The answer is B. A, C and D are incorrect.",
        "The answer is B. A, C, and D are incorrect.",
        "The answer is B. Options A, C and D are wrong because they are not worn.",
        "The answer is B. A is wrong because it is a bag. C is incorrect, and D is not correct.",
        "**Answer: B**\n\nA is incorrect. C is incorrect. D is incorrect.",
        "The correct answer is B, so A and C are ruled out. D is wrong.",
        "The answer is B rather than C.",
        "The answer is B. We can eliminate A and C, and D is false.",
        "Answer: B. It is not A or D.",
        "A resposta é B. A opção A está errada, e C é incorreta.",
        "Jawaban: B. A salah, C salah, D salah.",
        "Đáp án là B. A sai, C sai.",
        "答案是B。A不正确，C不正确，D错误。",
    ],
)
def test_an_answer_that_says_why_the_others_are_wrong_is_right(problem, response: str) -> None:
    assert 1.0 == verify(problem("choice", LETTERS), response).score


@for_each(
    "response",
    [
        "The answer is A. B, C and D are incorrect.",
        "A is wrong? The answer is A. No, B.",
        "The answer is B. Actually A. C and D are incorrect.",
        "The answer is B. No: A. C and D are incorrect.",
        "The answer is B. A, no, C is wrong.",
        "The answer is B. A is not wrong. C and D are incorrect.",
        "The answer is B. A, C and D are correct.",
        "The answer is B, A and C.",
        "The answer is B. C fits, A and D are incorrect.",
        "The answer is A or B. C and D are incorrect.",
        "The answer is B. B is wrong.",
        "A. The answer is B. A is wrong.",
        "The answer is C. C is wrong. The answer is B.",
    ],
)
def test_a_second_answer_is_not_explained_away(problem, response: str) -> None:
    assert 0.0 == verify(problem("choice", LETTERS), response).score


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


IN_REASONING = (
    "So the best choice is B. / Option B is correct. / B is the correct answer. / "
    "We select option B. / "
    "The most suitable option is B / Choice B fits best. / {'answer': 'B'} / Correct choice: B / "
    "故选：B / 故选B。 / 【答案】B / 【答案】B\n【解析】由上可得。 / 因此，答案选B。 / "
    "所以正确答案是B。 / "
    "选项B是正确的。 / B是正确的选项。 / 本题选B。 / 正确选项为B。 / La respuesta correcta es B. / "
    "Die richtige Antwort ist B. / La bonne réponse est B. / A resposta correta é B. / "
    "Jawaban yang benar adalah B."
)


@for_each("conclusion", IN_REASONING.split(" / "))
def test_only_the_last_announcement_of_a_reasoning_text_counts(problem, conclusion: str) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})
    other = problem("choice", {"correct": ["C"], "others": [["A"], ["B"]]})
    reasoning = (
        "Let A and C be the ends of the segment.\nA. 5 apples\nB. 6 apples\nC. 7 apples\n"
        "If option A is correct, then A + C = 5, which fails. Is C the answer? No."
    )

    assert 1.0 == verify(gold, f"{reasoning}\n\n{conclusion}").score
    assert 0.0 == verify(other, f"{reasoning}\n\n{conclusion}").score


def test_all_announcements_must_agree(problem) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})

    assert 1.0 == verify(gold, "Option B is correct.\n**Answer:** B").score
    assert 0.0 == verify(gold, "Option A is correct.\n**Answer:** B").score
    assert 0.0 == verify(gold, "The answer is B. 故选：A").score
    assert 0.0 == verify(gold, "The answer is not B. 【答案】B").score


ANNOUNCEMENTS = {
    "en": (
        "The correct answer is {x}.",
        "The answer is {x}.",
        "{x} is the right choice.",
        "Option {x} is correct.",
        "I would go with {x}.",
        "The best option is ({x}).",
        "The most appropriate answer is {x}",
        "My final choice is {x}.",
        "Final answer: {x}",
        "Therefore {x} is the answer.",
        "Thus {x} is the best answer.",
        "Hence option ({x}) is the correct choice.",
        "The correct option would be {x}.",
        "The correct letter is {x}.",
        "Correct answer: {x}",
        "Correct option: {x}",
        "The right answer is option {x}.",
        "The appropriate choice is {x}.",
        "So the correct one is {x}.",
        "Choose {x}.",
        "Select {x}.",
        "The solution is {x}.",
        "I'd pick {x}.",
    ),
    "zh": (
        "正确答案是{x}。",
        "答案为{x}。",
        "故选{x}。",
        "选项{x}正确。",
        "所以应选{x}。",
        "因此选择{x}。",
        "最佳选项是{x}。",
        "【答案】{x}",
        "【正确答案】{x}",
        "正确的是{x}。",
        "{x}是正确答案。",
        "{x}项正确。",
        "选{x}项。",
        "所以本题答案为{x}。",
        "我选{x}。",
        "我的答案是{x}。",
        "综上，选{x}。",
        "正确選項為{x}。",
        "答案應為{x}。",
        "故本题选{x}",
        "应该选择选项{x}。",
    ),
    "id": (
        "Jawaban yang benar adalah {x}.",
        "Jawabannya adalah {x}.",
        "Jawaban: {x}",
        "Jadi jawabannya {x}.",
        "Pilihan yang tepat adalah {x}.",
        "Pilihan {x} benar.",
        "Opsi {x} adalah jawaban yang benar.",
        "{x} adalah jawaban yang tepat.",
        "Saya memilih {x}.",
        "Jawaban akhir: {x}",
        "Jawaban yang paling tepat adalah {x}.",
        "Kunci jawaban: {x}",
        "Jadi, pilihan yang benar ialah {x}.",
        "Pilihan terbaik adalah {x}.",
        "Jawabannya ialah opsi {x}.",
    ),
    "ms": (
        "Jawapan yang betul ialah {x}.",
        "Jawapannya ialah {x}.",
        "Jawapan: {x}",
        "Jadi jawapannya {x}.",
        "Pilihan yang tepat ialah {x}.",
        "Pilihan {x} adalah betul.",
        "{x} ialah jawapan yang betul.",
        "Saya memilih {x}.",
        "Jawapan akhir: {x}",
        "Pilihan terbaik ialah {x}.",
    ),
    "pt": (
        "A resposta correta é {x}.",
        "A resposta é {x}.",
        "Resposta: {x}",
        "A alternativa correta é {x}.",
        "A opção correta é a {x}.",
        "{x} é a resposta correta.",
        "Portanto, a resposta é a letra {x}.",
        "Resposta final: {x}",
        "A melhor opção é {x}.",
        "A alternativa {x} está correta.",
        "Escolho a opção {x}.",
        "Letra {x} é a correta.",
        "Gabarito: {x}",
    ),
    "es": (
        "La respuesta correcta es {x}.",
        "La respuesta es {x}.",
        "Respuesta: {x}",
        "La opción correcta es la {x}.",
        "{x} es la respuesta correcta.",
        "Por lo tanto, la respuesta es la opción {x}.",
        "Respuesta final: {x}",
        "La mejor opción es {x}.",
        "La opción {x} es correcta.",
        "Elijo la opción {x}.",
        "La alternativa correcta es {x}.",
    ),
    "fr": (
        "La bonne réponse est {x}.",
        "La réponse est {x}.",
        "Réponse : {x}",
        "La réponse correcte est la {x}.",
        "{x} est la bonne réponse.",
        "Donc, la réponse est l'option {x}.",
        "Réponse finale : {x}",
        "La meilleure option est {x}.",
        "L'option {x} est correcte.",
        "Je choisis {x}.",
        "Le bon choix est {x}.",
    ),
    "de": (
        "Die richtige Antwort ist {x}.",
        "Die Antwort ist {x}.",
        "Antwort: {x}",
        "Die korrekte Antwort lautet {x}.",
        "{x} ist die richtige Antwort.",
        "Also ist {x} die richtige Antwort.",
        "Richtige Antwort: {x}",
        "Die beste Option ist {x}.",
        "Option {x} ist richtig.",
        "Ich wähle {x}.",
        "Die richtige Option ist {x}.",
        "Endgültige Antwort: {x}",
    ),
    "it": (
        "La risposta corretta è {x}.",
        "La risposta è {x}.",
        "Risposta: {x}",
        "L'opzione corretta è la {x}.",
        "{x} è la risposta corretta.",
        "Quindi, la risposta giusta è {x}.",
        "Risposta finale: {x}",
        "La migliore opzione è {x}.",
        "L'opzione {x} è corretta.",
        "Scelgo {x}.",
        "La scelta giusta è {x}.",
    ),
    "vi": (
        "Đáp án đúng là {x}.",
        "Đáp án là {x}.",
        "Đáp án: {x}",
        "Câu trả lời đúng là {x}.",
        "{x} là đáp án đúng.",
        "Vậy chọn {x}.",
        "Đáp án cuối cùng: {x}",
        "Lựa chọn đúng là {x}.",
        "Lựa chọn tốt nhất là {x}.",
        "Phương án {x} là đúng.",
        "Chọn {x}.",
        "Phương án đúng là {x}.",
        "Chọn đáp án {x}.",
    ),
    "th": (
        "คำตอบที่ถูกต้องคือ {x}",
        "คำตอบคือ {x}",
        "คำตอบ: {x}",
        "ตอบ {x}",
        "ข้อที่ถูกต้องคือ {x}",
        "{x} คือคำตอบที่ถูกต้อง",
        "ดังนั้นคำตอบคือข้อ {x}",
        "ตัวเลือกที่ถูกต้องคือ {x}",
        "ข้อ {x} ถูกต้อง",
        "ฉันเลือก {x}",
        "ตัวเลือกที่ดีที่สุดคือ {x}",
        "เฉลย: {x}",
    ),
}
REASONING = {
    "en": "Let's look at each. A seems plausible at first, but B has more support. C and D are "
    "weaker.",
    "zh": "先看每个选项。A看起来可能，但是B更有根据。C和D较弱。",
    "id": "Mari kita lihat satu per satu. A tampak masuk akal, tetapi B lebih kuat. C dan D "
    "lebih lemah.",
    "ms": "Mari kita lihat satu demi satu. A nampak munasabah, tetapi B lebih kuat. C dan D "
    "lebih lemah.",
    "pt": "Vejamos cada uma. A parece plausível, mas B tem mais apoio. C e D são mais fracas.",
    "es": "Veamos cada una. A parece plausible, pero B tiene más apoyo. C y D son más débiles.",
    "fr": "Regardons chacune. A semble plausible, mais B est mieux fondée. C et D sont plus "
    "faibles.",
    "de": "Sehen wir uns jede an. A wirkt plausibel, aber B ist besser belegt. C und D sind "
    "schwächer.",
    "it": "Vediamo ciascuna. A sembra plausibile, ma B ha più sostegno. C e D sono più deboli.",
    "vi": "Xét từng phương án. A có vẻ hợp lý, nhưng B có cơ sở hơn. C và D yếu hơn.",
    "th": "ลองดูทีละข้อ A ดูเป็นไปได้ แต่ B มีเหตุผลมากกว่า C และ D อ่อนกว่า",
}


@for_each("language", ANNOUNCEMENTS)
def test_announcements_of_eleven_languages_are_read_after_reasoning(problem, language: str) -> None:
    for form in ANNOUNCEMENTS[language]:
        for right in "AC":
            gold = {"correct": [right], "others": [[one] for one in "ABCD" if one != right]}
            for stated in (right, f"**{right}**", f"({right})"):
                text = form.format(x=stated)
                long = f"{REASONING[language]}\n\n{text}"

                assert [1.0, 1.0] == [
                    verify(problem("choice", gold), t).score for t in (text, long)
                ], text
            other = f"{REASONING[language]}\n\n{form.format(x='D')}"

            assert 0.0 == verify(problem("choice", gold), other).score, other


def test_two_announcements_must_agree(problem) -> None:
    gold = problem("choice", {"correct": ["B"], "others": [["A"], ["C"]]})
    first = {
        "es": "La respuesta es A.",
        "th": "คำตอบคือ A",
        "zh": "故选A。",
        "en": "Option A is correct.",
    }
    last = {
        "es": "La mejor opción es B.",
        "th": "เลือก B",
        "zh": "【答案】B",
        "en": "The best choice is B.",
    }

    for language in first:
        assert 0.0 == verify(gold, f"{first[language]}\n\n{last[language]}").score
        assert 1.0 == verify(gold, f"Is it A?\n\n{last[language]}\n\n{last[language]}").score


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["-selection-option\u0e44\u0e21-\\boxed{-:)**", "The answer is ", "answer: . ", "ง!"]
)
def test_hostile_repetition_is_read_quickly(problem, unit: str) -> None:
    gold = problem("choice", {"correct": ["shoes", "A"], "others": [["bags", "B"]]})
    text = unit * (100_000 // len(unit))

    for response in (text, f"The answer is {text}", f"{text}A"):
        seconds, _ = timed(lambda response=response: verify(gold, response), 1.0)
        assert seconds < 1.0


BOXES = {
    "correct": ["B", "a blue box"],
    "others": [["A", "a red box"], ["C", "a green box"], ["D", "a black box"]],
}


@for_each(
    ("response", "score"),
    [
        ("### Answer\nB", 1.0),
        ("## Final Answer\n\n**B**", 1.0),
        ("**Final answer**\n\n(B)", 1.0),
        ("### Jawaban\nB", 1.0),
        ("### 答案\nB", 1.0),
        ("### Answer\nA", 0.0),
        ("The answer is B. Note that A is a common distractor.", 1.0),
        ("Answer:\n(B) a blue box\n\nExplanation: A is red.", 1.0),
        ("Answer:\n(A) a red box\n\nExplanation: B is blue.", 0.0),
        ("The answer is B. Note that actually C fits.", 0.0),
        ("The answer is B. Explanation: or A.", 0.0),
        ('```json\n{"answer": "B", "why": "A is red"}\n```', 1.0),
        ('{"answer": "A", "why": "B is blue"}', 0.0),
        ('{"answer": "B", "why": "A is red"} or A', 0.0),
        ("The correct option is not A but B.", 1.0),
        ("The correct option is not B but A.", 0.0),
        ("The answer is A. Wait, actually the answer is B.", 0.0),
    ],
)
def test_an_announcement_is_read_with_its_explanation_apart(problem, response, score) -> None:
    assert score == verify(problem("choice", BOXES), response).score


@pytest.mark.parametrize(
    ("language", "response"), [("ja", "正解はBです。"), ("ko", "정답은 B입니다.")]
)
def test_a_language_that_is_not_read_is_an_abstention(problem, language, response) -> None:
    one = problem("choice", BOXES).model_copy(update={"language": language})

    assert (None, "language_unread") == (verify(one, response).score, verify(one, response).reason)


BOXES = {
    "correct": ["B", "a blue box"],
    "others": [["A", "a red box"], ["C", "a green box"], ["D", "a grey box"]],
}


@for_each(
    "response",
    [
        "The correct answer is (B). Option A is too small and C is the wrong colour.",
        "**Answer: B**\n\nA is incorrect because it is red. C is green, and D is grey.",
        "B. a blue box\n\nExplanation: A red box would be too small. A green box is not there.",
        "B\n\nOption A is wrong, because a red box is heavy. Option C and D are also wrong.",
        "Answer: B) a blue box. Unlike A, it can hold water.",
        "The best answer is B because A and C are too small, and D is grey.",
        "I choose B over A.",
        "The answer is B because A, which is red, would need paint. C is green.",
        "The answer is B, but A is tempting for those who read fast.",
        "(a) The mean is 0. (b) The variance is 2. The answer is (B).",
        "The pH of a solution is given by the log of its H and A. The answer is (B).",
        "B\n\nIts mass is m = 2 A. At 25 C it is 0.5 C.",
        "B is correct. A describes a red box, which does not fit.",
        "The answer is B.\n\nWhy not A? Because it is red. A is tempting but too small.",
        "Jawaban: B. A terlalu kecil, sedangkan C berwarna hijau.",
        "答案:B。A太小,C是绿色的。",
        "### Sagot\nB",
        "**正確答案**\nB",
        "ไม่ใช่ A แต่เป็น B",
        "不是A而是B",
        "bukan A melainkan B",
    ],
)
def test_an_explanation_behind_the_answer_may_name_other_options(problem, response: str) -> None:
    assert 1.0 == verify(problem("choice", BOXES), response).score


@for_each(
    "response",
    [
        "The answer is B. But A is also possible.",
        "The answer is B. It is A.",
        "(A) because it is red. (B) because it is blue. The answer is (B).",
        "(A) red. The answer is (B).",
        "The answer is B, but A could also be right.",
        "The answer is B, although C might be correct as well.",
        "The answer is B. A red box fits, too.",
        "The answer is B because it is blue. C could be right.",
        "B. a blue box\n\nWait, a red box.",
        "B\n\nC",
        "The answer is B. Maybe A.",
        "Jawaban: B. C juga benar.",
        "答案:B。C也可以。",
    ],
)
def test_an_explanation_that_offers_another_option_is_a_second_answer(
    problem, response: str
) -> None:
    assert 0.0 == verify(problem("choice", BOXES), response).score


@for_each(
    ("response", "score"),
    [
        ("(B) no. The box is not red.", 1.0),
        ("(B) no, because the box is not red.", 1.0),
        ("The answer is (B) no. Its colour is not red.", 1.0),
        ("(B) No, it is not.", 1.0),
        ("(B) no is wrong.", 0.0),
        ("(B) no. That is not the answer. B is wrong.", 0.0),
    ],
)
def test_a_negation_in_the_explanation_of_no_denies_nothing(
    problem, response: str, score: float
) -> None:
    gold = {"correct": ["B", "no"], "others": [["A", "yes"]]}

    assert score == verify(problem("choice", gold), response).score
