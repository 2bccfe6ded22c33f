"""Amounts of money, of two units, with scale words or an exponent, in the writing of a market."""

# ruff: noqa: RUF001 - signs that people type
import itertools
import time
from collections.abc import Iterable

import pytest

from data_schemas.rows import Problem
from tasks.gym.maths import final_answer, units
from tasks.gym.maths.amounts import plain_amounts
from tests.tables import for_each

BLANKS = {"glued": "", "blank": " ", "no-break blank": "\u00a0", "narrow blank": "\u202f"}
SENTENCES = {
    "en": ("So, the total price is {}.", "The answer is {}.", "So \\boxed{{{}}}."),
    "id": ("Jadi, Budi harus membayar {}.", "Jawaban: {}", "Jadi \\boxed{{{}}}."),
    "ms": ("Jadi, Ali perlu membayar {}.", "Jawapan: {}", "Jadi \\boxed{{{}}}."),
    "tl": ("Kaya, ang kabuuan ay {}.", "Answer: {}", "Kaya \\boxed{{{}}}."),
    "th": ("ราคารวมคือ {}", "คำตอบ: {}", "ดังนั้น \\boxed{{{}}}"),
    "vi": ("Vậy tổng số tiền là {}.", "Đáp án: {}", "Vậy \\boxed{{{}}}."),
    "pt": ("Portanto, ela paga {}.", "Resposta: {}", "Logo \\boxed{{{}}}."),
    "zh-TW": ("所以總價是{}。", "答案：{}", "所以 \\boxed{{{}}}。"),
}
COMMA = {"id", "vi", "pt"}


WITH_A_SMALLER_UNIT = (
    ("zh", "17", "2", "3", "答案是2周3天。"),
    ("zh", "340", "3", "40", "答案是3米40厘米。"),
    ("zh", "1200", "1", "200", "答案是1公里200米。"),
    ("id", "17", "2", "3", "Jawaban: 2 minggu 3 hari"),
    ("ms", "17", "2", "3", "Jawapan: 2 minggu dan 3 hari"),
    ("id", "340", "3", "40", "Jawaban: 3 m 40 cm"),
    ("vi", "17", "2", "3", "Đáp án: 2 tuần 3 ngày"),
    ("vi", "2300", "2", "300", "Đáp án: 2 kg 300 g"),
    ("th", "17", "2", "3", "คำตอบ: 2 สัปดาห์ 3 วัน"),
    ("pt", "17", "2", "3", "Resposta: 2 semanas e 3 dias"),
    ("fil", "17", "2", "3", "Answer: 2 linggo at 3 araw"),
    ("en", "14", "3", "2", "The answer is 3 gallons 2 quarts."),
)


def score(problem, language: str, gold: str, response: str) -> float | None:
    one: Problem = problem("final_answer", {"value": gold}).model_copy(
        update={"language": language}
    )
    return final_answer.verify(one, response).score


# ¢ counts hundredths, and is left open where the problem has no cents
WHOLE_SIGNS = units.CURRENCY_SIGNS.replace("¢", "")
ALL_CODES = [*units.CODES, *(f"{one}$" for one in units.SIGNED_DOLLARS), *WHOLE_SIGNS]


def faults(problem, cells: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return what is misread of codes, blanks and languages: 1299 refused, or 299 paid."""
    results: list[str] = []
    for code, blank, language in cells:
        number = "1.299" if language in COMMA else "1,299"
        for amount in (f"{code}{blank}{number}", f"{number}{blank}{code}"):
            if amount.endswith(tuple(units.SIGNED_DOLLARS)) or amount[-1:] == "$":
                continue  # 1,299 NT$ is not written
            for sentence in SENTENCES[language]:
                response = sentence.format(amount)
                if score(problem, language, "1299", response) != 1.0:
                    results.append(f"refused {response!r}")
                if score(problem, language, "299", response) != 0.0:
                    results.append(f"paid {response!r}")
    return results


def test_a_price_is_its_number_however_its_currency_is_joined(problem) -> None:
    codes = ["RM", "Rp", "PHP", "Php", "NT$", "S$", "\u20b1"]

    assert [] == faults(problem, itertools.product(codes, BLANKS.values(), ["en", "id", "zh-TW"]))


def test_every_currency_is_read_with_one_blank_and_language_of_the_table(problem) -> None:
    joints = itertools.cycle(itertools.product(BLANKS.values(), SENTENCES))

    assert [] == faults(problem, [(code, *next(joints)) for code in ALL_CODES])


IN_TOTAL = (
    ("en", "So the total is twelve apples."),
    ("id", "Jadi totalnya dua belas apel."),
    ("ms", "Jumlahnya ialah dua belas epal."),
    ("vi", "Tổng cộng là mười hai quả táo."),
    ("pt", "O total é doze maçãs."),
    ("fil", "Ang kabuuan ay labindalawang mansanas."),
    ("th", "รวมทั้งหมดสิบสองผล"),
)
HALVES_IN_WORDS = (
    ("en", "500000", "The answer is half a million people."),
    ("en", "2500000", "So, the total is two and a half million dollars."),
    ("en", "12500", "The answer is twelve and a half thousand."),
    ("id", "500000", "Jawabannya setengah juta."),
    ("id", "2500000", "Jawabannya adalah dua setengah juta."),
    ("ms", "1500000", "Jawapannya ialah satu setengah juta."),
    ("vi", "500000", "Đáp án: nửa triệu"),
    ("vi", "12500000", "Đáp án là mười hai triệu rưỡi."),
    ("pt", "500000", "A resposta é meio milhão."),
    ("pt", "1500000", "A resposta é um milhão e meio."),
    ("fil", "500000", "Ang sagot ay kalahating milyon."),
    ("fil", "1500000", "Ang sagot ay isa't kalahating milyon."),
    ("th", "500000", "คำตอบคือครึ่งล้าน"),
    ("th", "2500000", "คำตอบคือสองล้านครึ่ง"),
    ("th", "1500000", "คำตอบคือล้านครึ่ง"),
)


@pytest.mark.slow
def test_every_currency_in_every_language_is_read(problem) -> None:
    assert [] == faults(problem, itertools.product(ALL_CODES, BLANKS.values(), SENTENCES))


@for_each(
    ("language", "written", "plain"),
    [
        ("en", "1e-05", "0.00001"),
        ("en", "1.5E3", "1500"),
        ("en", "6.02E+23", "602000000000000000000000"),
        ("en", "6.5 x 10^{3}", "6.5*10^3"),
        ("en", "2e^3 - 0x1e5", "2e^3 - 0x1e5"),
        ("th", "1.5 ล้านบาท", "1500000บาท"),
        ("th", "2 แสน 5 หมื่นบาท", "250000บาท"),
        ("th", "3 ร้อยบาท", "300บาท"),
        ("zh-TW", "1.2萬元", "12000元"),
        ("zh", "1万2千元", "12000元"),
        ("zh", "1万2", "12000"),
        ("zh", "3千零5元", "3005元"),
        ("id", "1 juta 299 ribu rupiah", "1299000 rupiah"),
        ("id", "1,5jt", "1500000"),
        ("id", "150rb", "150000"),
        ("id", "Rp1,5M", "Rp 1500000000"),
        ("ms", "RM1.5M", "RM 1500000"),
        ("en", "$2.5B", "$2500000000"),
        ("en", "$2M + 1$", "$2M + 1$"),
        ("en", "$2M$", "$2M$"),
        ("vi", "12 nghìn 500 đồng", "12500 đồng"),
        ("vi", "1tr2", "1200000"),
        ("vi", "1tr250", "1250000"),
        ("pt-BR", "R$ 1,5 mi", "R$ 1500000"),
        ("es", "3 mil millones", "3000000000"),
        ("fil", "5 libo", "5000"),
        ("en", "5 million 200 thousand", "5200000"),
        ("en", "2 thousand 5 million", "2 thousand 5 million"),
        ("pt-BR", "12 reais e 50 centavos", "12,5 reais"),
        ("en", "12 dollars and 5 cents", "12.05 dollars"),
        ("zh", "12元5角", "12.5 元"),
        ("en", "1 hour 30 minutes", "90 minutes"),
        ("vi", "2 giờ 15 phút", "135 phút"),
        ("en", "5 feet 13 inches", "5 feet 13 inches"),
        ("zh", "2周9天", "2周9天"),
        ("zh", "3 km 5 min", "3 km 5 min"),
        ("th", "2 l 5 mm", "2 l 5 mm"),
        ("zh", "3千克5克拉", "3千克5克拉"),
        ("en", "5 m and 3 apples", "5 m and 3 apples"),
    ],
)
def test_an_amount_has_one_form(language: str, written: str, plain: str) -> None:
    assert plain == plain_amounts(written, language)


@for_each(
    ("language", "gold", "response", "right"),
    [
        ("en", "0.00001", "The answer is 1e-05.", 1.0),
        ("en", "-2.281718", "The answer is 1e-05.", 0.0),
        ("en", "1500", "So it is 1.5e3.", 1.0),
        ("th", "1.5", "คำตอบ: 1.5 ล้านบาท", 0.0),
        ("id", "1000000", "Jawaban: 1 juta 299 ribu rupiah", 0.0),
        ("id", "299000", "Jadi totalnya adalah 1 juta 299 ribu rupiah.", 0.0),
        ("vi", "12500", "Vậy Lan phải trả 12 nghìn 500 đồng.", 1.0),
        ("pt", "0.89", "A razão é ,89.", 1.0),
        ("en", "1", "It takes 1 hour 30 minutes.", 0.0),
        ("en", "30", "It takes 1 hour 30 minutes.", 0.0),
        ("en", "90", "It takes 1 hour 30 minutes.", 1.0),
        *(
            (language, gold, response, right)
            for language, sum_of, large, small, response in WITH_A_SMALLER_UNIT
            for gold, right in ((sum_of, 1.0), (large, 0.0), (small, 0.0))
        ),
        *(
            (language, gold, text, right)
            for language, value, text in HALVES_IN_WORDS
            for gold, right in ((value, 1.0), ("1000000", 0.0), ("2", 0.0), ("2000000", 0.0))
        ),
        ("th", "35", "คำตอบคือสามสิบครึ่ง", 0.0),
        ("fil", "250", "Ang sagot ay 2 daan at 50 piso.", 1.0),
        ("fil", "200", "Ang sagot ay 2 daan at 50 piso.", 0.0),
        ("fil", "2003", "Ang sagot ay 2 libo at 3.", 1.0),
        *(
            (language, gold, text, right)
            for language, text in IN_TOTAL
            for gold, right in (("12", 1.0), ("2", 0.0), ("10", 0.0))
        ),
        ("en", "12", "The total is not twelve apples.", 0.0),
        ("en", "12", "The total is twelve or ten.", 0.0),
        ("zh", "17", "这是第2周3天。", 0.0),
        ("zh", "3", "答案是3克。", 1.0),
        ("id", "3", "Jawaban: 3 minggu", 1.0),
        ("vi", "5", "Đáp án: 5 m", 1.0),
        ("en", "300", "She has 3 hundred apples.", 1.0),
        ("en", "3", "\\boxed{3 hundred}", 0.0),
        ("en", "300000", "The answer is 3 hundred thousand.", 1.0),
        ("en", "5", "The answer is 5 hundred-dollar bills.", 1.0),
        ("en", "1500", "\\boxed{15 \\text{ hundred}}", 1.0),
        ("en", "15", "\\boxed{15 \\text{ hundred}}", 0.0),
        ("en", "90", "\\boxed{1 \\text{ h } 30 \\text{ min}}", 1.0),
        ("zh", "12000", "一共是1.2万元。", 1.0),
        ("zh", "1.2", "一共是1.2万元。", 0.0),
        ("zh", "5", "答案是5千克。", 1.0),
        ("zh", "5", "\\boxed{5千米}", 1.0),
        ("zh", "5000", "答案是5千元。", 1.0),
        ("zh", "3.5", "一共3元5角。", 1.0),
        ("zh", "5", "一共3元5角。", 0.0),
        ("en", "12", "The volume is 12 cm^3.", 1.0),
        ("en", "3", "The volume is 12 cm^3.", 0.0),
        ("en", "9.8", "\\boxed{9.8\\ \\mathrm{m/s^2}}", 1.0),
        ("en", "1500", "The answer is 1.5 x 10³.", 1.0),
        ("en", "1.5", "The answer is 1.5 x 10³.", 0.0),
        ("en", "0.003", "\\boxed{3 x 10⁻³}", 1.0),
    ],
)
def test_no_part_of_an_amount_is_the_amount(problem, language, gold, response, right) -> None:
    assert right == score(problem, language, gold, response)


@pytest.mark.parametrize("text", ["1 ", "1,2 ", "1 hour ", "RM1", "1e5 ", "1 juta ", "1 2 juta e "])
@pytest.mark.parametrize("language", ["en", "id", "zh", "pt"])
def test_long_texts_take_linear_time(text: str, language: str) -> None:
    start = time.process_time()
    plain_amounts(text * (100_000 // len(text)), language)

    assert time.process_time() - start < 1


def test_what_stands_for_no_small_change_is_no_second_number(problem) -> None:
    cells = [
        ("id", "Jadi Budi membayar {}.", "Rp12.345,-", "12345", "345"),
        ("de", "Die Antwort ist {}.", "12.345,\u2013 Euro", "12345", "345"),
        ("th", "คำตอบ: {}", "1,299.-", "1299", "299"),
        ("en", "The answer is {}.", "Rs.1,500/-", "1500", "500"),
    ]

    assert [] == misread(problem, cells)
    assert score(problem, "id", "Rp12.345,-", "Jawaban: 12345") == 1.0
    assert score(problem, "en", "(12,-x)", "\\boxed{(12,-x)}") == 1.0
    assert score(problem, "en", "(3,-1)", "\\boxed{3}") == 0.0


def test_thousands_are_those_of_the_country(problem) -> None:
    cells = [
        ("hi", "उत्तर: {}", "1,25,000", "125000", "1"),
        ("en", "The answer is {}.", "\u20b91,25,000", "125000", "1"),
        ("en", "The answer is {}.", "Rs. 1.5 crore", "15000000", "1.5"),
        ("ar", "الجواب: {}", "١٬٥٠٠ ريال", "1500", "500"),
        ("fa", "پاسخ: {}", "۲٬۵۰۰٫۵", "2500.5", "500.5"),
        ("ko", "정답: {}", "1만 2천 원", "12000", "1"),
        ("ko", "정답은 {}입니다.", "1만 2,500원", "12500", "1"),
        ("fr", "La réponse est {}.", "1 411,50 €", "1411.5", "411.5"),
        ("tl", "Ang kabuuan ay {}.", "P1,299", "1299", "299"),
    ]

    assert [] == misread(problem, cells)
    assert score(problem, "fr", "1 411,50 €", "Réponse : 1411,50") == 1.0
    # Without a sign of rupees it is a list in English, and beside an r no currency.
    assert score(problem, "en", "(12,34,567)", "\\boxed{(12,34,567)}") == 1.0
    assert score(problem, "en", "2rs", "\\boxed{2}") == 0.0


def test_the_end_of_a_sentence_is_no_factorial_of_a_price(problem) -> None:
    cells = [
        ("en", "The final price is {}", "$1,299!", "1299", "299"),
        ("id", "Jadi totalnya {}", "Rp12.000!", "12000", "12"),
        ("en", "It is {}", "12.5!", "12.5", "5"),
        ("zh", "答案是{}", "5\uff01", "5", "120"),
    ]

    assert [] == misread(problem, cells)
    assert score(problem, "en", "120", "\\boxed{5!}") == 1.0


@for_each(
    ("gold", "response"),
    [
        ("120", "The answer is $5!$."),
        ("5!", "The answer is $5!$"),
        ("12", r"The answer is $3! \cdot 2!$."),
        ("4", "The answer is $3! - 2!$."),
        ("10!/3!", "The answer is $10!/3!$"),
        ("120", "The answer is $5!=120$"),
    ],
)
def test_the_sign_that_opens_a_formula_is_no_dollar_before_a_factorial(
    problem, gold: str, response: str
) -> None:
    assert score(problem, "en", gold, response) == 1.0


def test_a_last_digit_counts_ones_in_japanese_and_tenths_in_chinese(problem) -> None:
    assert score(problem, "ja", "1002", "答え：千二") == 1.0
    assert score(problem, "ja", "150", "答え：百五") == 0.0
    assert score(problem, "zh", "1200", "答案：一千二") == 1.0


def test_half_of_a_scale_word_and_k_beside_a_currency_count(problem) -> None:
    cells = [
        ("vi", "Đáp số: {}", "2 triệu rưỡi", "2500000", "2000000"),
        ("id", "Jawaban: {}", "2 setengah juta", "2500000", "2000000"),
        ("pt", "Resposta: {}", "2 milhões e meio", "2500000", "2000000"),
        ("es", "Respuesta: {}", "2 millones y medio", "2500000", "2000000"),
        ("fr", "Réponse : {}", "2 millions et demi", "2500000", "2000000"),
        ("th", "คำตอบ: {}", "2 ล้านครึ่ง", "2500000", "2000000"),
        ("id", "Jawaban: {}", "Rp25k", "25000", "25"),
        ("en", "Answer: {}", "\u20ac25K", "25000", "25"),
    ]

    assert [] == misread(problem, cells)
    assert score(problem, "en", "25k", "$25k$") == 1.0
    assert score(problem, "en", "25000", "$25k$") == 0.0


def misread(problem, cells: Iterable[tuple[str, str, str, str, str]]) -> list[str]:
    """Return the amounts whose value is refused, or of which another one is paid."""
    return [
        amount
        for language, sentence, amount, value, other in cells
        if score(problem, language, value, sentence.format(amount)) != 1.0
        or score(problem, language, other, sentence.format(amount)) != 0.0
    ]


@for_each(
    ("gold", "same", "others"),
    [
        ("NT$500", "TWD 500|500元|$500|NT\\$500|500 dollars", "US$500|SGD 500"),
        ("USD 500", "US$500|$500|500 dollars|500 US dollars", "HK$500|500 Singapore dollars"),
        ("S$500", "SGD 500|$500|500 Singapore dollars", "US$500|A$500"),
        ("₱500", "PHP 500|500 pesos|500 Philippine pesos", "MXN 500|500 Mexican pesos"),
        ("₹500", "INR 500|Rs 500|500 rupees", "PKR 500"),
        ("CNY 500", "RMB 500|¥500|500元", "JPY 500|TWD 500"),
        ("¥500", "JPY 500|CNY 500|500元|500円", "USD 500"),
    ],
)
def test_a_currency_is_another_where_both_name_their_country(
    problem, gold: str, same: str, others: str
) -> None:
    assert [] == [text for text in same.split("|") if score(problem, "en", gold, text) != 1.0]
    assert [] == [text for text in others.split("|") if score(problem, "en", gold, text) != 0.0]
