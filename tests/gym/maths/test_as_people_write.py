"""Answers as people write them, each beside a neighbour that states something else."""

from data_schemas.rollouts import ScoreRow
from tasks.gym.table import score_batch
from tests.tables import for_each

FIND = "Find it."


def score(gold: str, response: str, question: str = FIND, language: str = "en") -> float | None:
    row = ScoreRow(
        verifier="final_answer",
        answer={"value": gold},
        response=response,
        prompt=question,
        language=language,
    )
    (verdict,) = score_batch([row.problem(0)], [response])
    return verdict.score


@for_each(
    ("gold", "response", "question", "right"),
    [
        ("3", "3 pairs", FIND, None),
        ("6", "3 pairs", FIND, None),
        ("3", "3 pairs", "How many pairs of socks are there?", 1.0),
        ("12", "3 pairs", FIND, 0.0),
        ("3", r"\boxed{3 \text{ quarters}}", FIND, None),
        ("0.75", "3 quarters", FIND, None),
        ("3", "3 quarters", "How many quarters does he have?", 1.0),
        ("4", "3 quarters", FIND, 0.0),
        ("3", "3 score", FIND, None),
        ("60", "three score", FIND, None),
        ("40", "3 score", FIND, 0.0),
        ("3", "3 bps", FIND, None),
        ("0.0003", "3 basis points", FIND, None),
        ("0.03", "3 bps", FIND, 0.0),
        ("3 pairs", "3 pairs", FIND, 1.0),
        ("5", "5 cents", FIND, None),
        ("0.05", "5 cents", FIND, None),
        ("5", "5 cents", "How many cents is that?", 1.0),
        ("5", "5 cents", "What percentage is that?", None),
        ("5", "5 tens", FIND, None),
        ("5000", "5 grand", FIND, None),
        ("5", "5 kodi", FIND, None),
        ("5", "5 trăm", FIND, None),
        ("5", "5 thousands", FIND, 0.0),
        ("5000", "5 thousands", FIND, 1.0),
        ("5", "5 mln", FIND, 0.0),
        ("500", "5 grand", FIND, 0.0),
        (r"f^{-1}(x) = \frac{x-1}{2}", r"f(x) = \frac{x-1}{2}", FIND, None),
        (r"f^{-1}(x) = \frac{x-1}{2}", r"f^{-1}(x) = \frac{x-1}{2}", FIND, 1.0),
        (r"f^{-1}(x) = \frac{x-1}{2}", r"\frac{x-1}{2}", FIND, 1.0),
        (r"f^{-1}(x) = \frac{x-1}{2}", r"f(x) = \frac{x+1}{2}", FIND, 0.0),
        (r"(-5,5)", r"\{x : |x| < 5\}", FIND, 1.0),
        (r"(-5,5)", r"\{x \in \mathbb{R} \mid x^2 < 25\}", FIND, 1.0),
        (r"(-4,6)", r"\{x : |x-1| < 5\}", FIND, 1.0),
        (r"\{x : |x| < 5\}", r"(-5,5)", FIND, 1.0),
        (r"[-5,5]", r"\{x : |x| < 5\}", FIND, 0.0),
        (r"(-5,5)", r"\{x : |x| \le 5\}", FIND, 0.0),
        (r"(-5,5)", r"\{x \in \mathbb{Z} : |x| < 5\}", FIND, 0.0),
        (r"(-5,5)", r"\{x : |y| < 5\}", FIND, 0.0),
        (r"\text{½}", "0.5", FIND, 1.0),
        ("3.5", r"\text{3½ cups}", FIND, 1.0),
        ("1.5", r"\text{3½}", FIND, 0.0),
        ('["4", "5"]', "4 and 5", FIND, None),
        ('["4"]', "4", FIND, None),
        ("[4, 5]", "[4, 5]", FIND, 1.0),
        ("true", "Yes", FIND, None),
        ("true", "No", FIND, 0.0),
        ("true", "True", FIND, 1.0),
        ("5,12", "5.12", "Find all solutions.", None),
        ("5,12", "12 and 5", "Find all solutions.", 1.0),
        ("5,12", "5.12", "How long is it?", 1.0),
        ("5,12", "5.12", "How much does she pay in all?", 1.0),
        ("42", "42:1", FIND, None),
        ("42", "42:1", "What is the ratio of boys to girls?", 1.0),
        ("42", "41:1", FIND, 0.0),
        ("1/4", "1:4", FIND, 1.0),
        ("42", "42...", FIND, None),
        ("42", "41...", FIND, 0.0),
        ("42", "42.", FIND, 1.0),
        ("1/3", "0.333...", FIND, 1.0),
        ("3", "3 and a bit", FIND, 0.0),
        ("3", r"\boxed{3 \text{ and change}}", FIND, 0.0),
        ("3", "3 and a smile", FIND, 1.0),
    ],
)
def test_a_noun_that_may_multiply_and_a_value_that_may_go_on_are_left_open(
    gold: str, response: str, question: str, right: float | None
) -> None:
    assert right == score(gold, response, question)


@for_each(
    ("gold", "response", "question", "right"),
    [
        ("7:00 PM", "7:00", "When does it end?", 0.0),
        ("7:00 AM", "7:00", "When does it end?", 1.0),
        ("7:00 PM", "7:00", "It begins at 5 p.m. When does it end?", 1.0),
        ("7:00 PM", "7:00", "When is dinner this evening?", 1.0),
        ("7:00 PM", "8:00", "When is dinner this evening?", 0.0),
        ("7:30 PM", "7:30", "When is dinner this evening?", 1.0),
        ("12:30 PM", "12:30", "When does it end?", 1.0),
        ("12:30 AM", "12:30", "When does it end?", 0.0),
        ("7:00 PM", "19:00", "When does it end?", 1.0),
    ],
)
def test_a_time_has_a_half_of_the_day_only_from_the_problem(
    gold: str, response: str, question: str, right: float
) -> None:
    assert right == score(gold, response, question)


@for_each(
    ("language", "gold", "response", "right"),
    [
        ("vi", "19:30", "19 giờ 30 phút", 1.0),
        ("vi", "19:30", "Tàu đến lúc 19 giờ 30 phút.", 1.0),
        ("vi", "19:30", "19 giờ 20 phút", 0.0),
        ("vi", "1170", "19 giờ 30 phút", 1.0),
        ("zh", "19:30", "19时30分", 1.0),
        ("zh", "5.5", "5元5角", 1.0),
        ("zh", "5.55", "5元5角5分", 1.0),
        ("zh", "5.05", "5元5分", 1.0),
        ("zh", "5.5", "5元5分", 0.0),
        ("zh", "5", "5角5分", 0.0),
        ("zh", "0.55", "5角5分", None),
        ("zh", "2.5", "两个半", 1.0),
        ("zh", "2.5", "2个半小时", 1.0),
        ("zh", "2", "两个半", 0.0),
        ("zh", "35.5", "35块5", 1.0),
        ("zh", "5", "35块5", 0.0),
        ("zh", "1.5", "1小时半", 1.0),
        ("zh", "1", "1小时半", 0.0),
        ("zh", "7:30", "7点半", 1.0),
        ("zh", "7:00", "7点半", 0.0),
        ("vi", "1.5", "1 giờ rưỡi", 1.0),
        ("vi", "1", "1 giờ rưỡi", 0.0),
        ("vi", "7:30", "Lúc 7 giờ rưỡi.", 1.0),
        ("id", "1.5", "1 jam setengah", 1.0),
        ("id", "1", "1 jam setengah", 0.0),
        ("th", "1.5", "1 ชั่วโมงครึ่ง", 1.0),
        ("th", "1", "1 ชั่วโมงครึ่ง", 0.0),
        ("pt", "1.5", "1 hora e meia", 1.0),
        ("pt", "1", "1 hora e meia", 0.0),
        ("tl", "1", "1 oras at kalahati", 0.0),
        ("en", "2.5", "2 hours and a half", 1.0),
        ("en", "2", "2h30", 0.0),
        ("en", "2", "2h30m", 0.0),
        ("en", "3", "3 boys and a half-empty bottle", 1.0),
        ("zh", "2.5", "两斤半", 1.0),
        ("zh", "2", "两斤半", 0.0),
        ("en", "5", "• 5", 1.0),
        ("en", "5", "~~5~~", 0.0),
        ("en", "6", "~~5~~ 6", 1.0),
        ("en", "5", "~~5~~ 6", 0.0),
        ("en", "5", "5 ❌", 0.0),
        ("en", "5", "✗ 5", 0.0),
        ("en", "5", "5 ✓", 1.0),
        ("en", "5", "5 people at most", 0.0),
        ("en", "5", "5 people at the party", 1.0),
        ("en", "5", "5 odd", 0.0),
        ("en", "5", "5 odd numbers", 1.0),
        ("en", "5", "5 less 1", 0.0),
        ("en", "5", "5 for every 2", 0.0),
        ("id", "5", "5 lebih", 0.0),
        ("id", "5", "5 ke atas", 0.0),
        ("id", "5", "5 langkah ke atas", 1.0),
        ("th", "5", "5 กว่า", 0.0),
        ("zh", "5", "5个多", 0.0),
        ("pt", "5", "5 e pouco", 0.0),
        ("tl", "5", "higit sa 5", 0.0),
        ("tl", "5", "kulang sa 5", 0.0),
        ("tl", "5", "5 o higit pa", 0.0),
        ("tl", "5", "5 lang", 1.0),
        ("de", "5000", "5 Tsd.", 1.0),
        ("de", "5", "5 Tsd.", 0.0),
        ("zh", "5", "5个以上", 0.0),
        ("zh", "5", "5个", 1.0),
        ("th", "5", "ไม่ต่ำกว่า 5", 0.0),
        ("th", "5", "5 คนขึ้นไป", 0.0),
        ("en", "5", "5 and over", 0.0),
        ("en", "1/3", "0.3\u0307", 1.0),
        ("en", "1/7", "0.1\u030742857\u0307", 1.0),
        ("en", "0.3", "0.3\u0307", 0.0),
        ("en", "5", r"\boxed{\text{about } 5}", 1.0),
        ("en", "5", r"\boxed{\sim 5}", 1.0),
        ("en", "5", r"\boxed{\text{about } 6}", 0.0),
        ("en", r"\emptyset", "There is no solution.", 1.0),
        ("en", "0", "There is no solution.", 0.0),
        ("en", r"\emptyset", "There is one solution.", 0.0),
        ("zh", "2:3", "2比3", 1.0),
        ("zh", "3", "2比3", 0.0),
        ("zh", "2:3", "3比2", 0.0),
        ("en", "20", r"\boxed{P(5,2)}", 1.0),
        ("en", "60", r"\boxed{5P3}", 1.0),
        ("en", "10", r"\boxed{P(5,2)}", 0.0),
        ("en", "5", "*5* apples", 1.0),
        ("en", "30", "2*5*3", 1.0),
        ("en", "5", "2*5*3", 0.0),
        ("en", "1, 2, 3", "The values are 1, 2, and 3.", 1.0),
        ("en", "3", "The values are 1, 2, and 3.", 0.0),
        ("en", "1, 2, 3", "The values are not 1, 2, and 3.", 0.0),
        ("en", "1, 2, 3", "The values are between 1, 2, and 3.", 0.0),
        ("id", "1, 2, 3", "Nilainya adalah 1, 2, dan 3.", 1.0),
        ("en", "5", "<thinking>4</thinking>5", 1.0),
        ("en", "4", "<thinking>4</thinking>5", 0.0),
        ("en", "4", "<thinking>4</thinking>", 0.0),
        ("en", "5", "<thinking>4</thinking>5<thinking>6</thinking>", 0.0),
        ("en", "5", "Final Answer. 5", 1.0),
        ("en", "4", "We try 4.\n\nFinal Answer. 5", 0.0),
        ("en", "5", "Answer => 5", 1.0),
        ("en", "5", "Answer -> 5", 1.0),
        ("en", "5", "The answer → 5", 1.0),
        ("en", "5", "Answer => 6", 0.0),
        ("en", "5", "Answer > 5", 0.0),
        ("en", "5", "Answer >= 5", 0.0),
    ],
)
def test_what_is_written_otherwise_has_its_own_value(
    language: str, gold: str, response: str, right: float | None
) -> None:
    assert right == score(gold, response, language=language)


@for_each(
    ("question", "gold", "response", "right"),
    [
        ("What is the probability?", "1/4", "1 in 4", 1.0),
        ("What is the probability?", "0.25", "The probability is 1 out of 4.", 1.0),
        ("What is the probability?", "0.25", "4 in 1", 0.0),
        ("What is the probability?", "4", "1 in 4", 0.0),
        ("What percentage passed?", "25", "25 out of 100", 1.0),
        ("What percentage passed?", "25", "25 out of 50", 0.0),
        ("How many?", "0.25", "1 in 4", 0.0),
    ],
)
def test_one_in_four_is_a_share_where_a_share_is_asked_for(
    question: str, gold: str, response: str, right: float
) -> None:
    assert right == score(gold, response, question)


@for_each(
    ("language", "gold", "response", "right"),
    [
        ("th", r"\text{เสื้อ}", r"\boxed{\text{เสื้อ}}", 1.0),
        ("th", r"\text{เสื้อ}", r"\boxed{\text{เสื่อ}}", 0.0),
        ("th", r"\text{ข้าว}", r"\boxed{\text{ข่าว}}", 0.0),
        ("th", r"\text{กิน}", r"\boxed{\text{กัน}}", 0.0),
        ("hi", r"\text{बिल}", r"\boxed{\text{बुल}}", 0.0),
        ("vi", r"\text{hòa bình}", r"\boxed{\text{hoà bình}}", 1.0),
        ("vi", r"\text{má}", r"\boxed{\text{mả}}", 0.0),
    ],
)
def test_a_word_with_other_marks_is_another_word(
    language: str, gold: str, response: str, right: float
) -> None:
    assert right == score(gold, response, language=language)


@for_each(
    ("language", "gold", "response", "right"),
    [
        ("zh", "230000000", "答案是两亿三千万。", 1.0),
        ("zh", "2000030000000", "答案是两亿三千万。", 0.0),
        ("zh-TW", "105000000", "答案是一億零五百萬。", 1.0),
        ("zh", "200030000", "答案是二亿零三万。", 1.0),
        ("zh", "1000000000000", "答案是一万亿。", 1.0),
        ("zh", "12000", "答案是一万二千。", 1.0),
        ("id", "1299000", r"\boxed{1 juta 299 ribu rupiah}", 1.0),
        ("id", "299000", r"\boxed{1 juta 299 ribu rupiah}", 0.0),
        ("en", "5200000", r"\boxed{5 million 200 thousand}", 1.0),
        ("en", "5", r"\boxed{5 million 200 thousand}", 0.0),
        ("vi", "2300000", r"\boxed{2 triệu 300 nghìn đồng}", 1.0),
        ("th", "3500", r"\boxed{3 พัน 5 ร้อยบาท}", 1.0),
        ("pt", "3200000", r"\boxed{3 milhões 200 mil reais}", 1.0),
        ("id", "400000", "Jadi Budi membayar 4 ratus ribu rupiah.", 1.0),
        ("id", "400", "Jadi Budi membayar 4 ratus ribu rupiah.", 0.0),
        ("id", "4", "Jadi Budi membayar 4 ratus ribu rupiah.", 0.0),
        ("id", "20000", "Jadi totalnya adalah 2 puluh ribu.", 1.0),
        ("id", "2", "Jadi totalnya adalah 2 puluh ribu.", 0.0),
        ("vi", "400000", "Vậy Lan phải trả 4 trăm nghìn đồng.", 1.0),
        ("vi", "4", "Vậy Lan phải trả 4 trăm nghìn đồng.", 0.0),
        ("fil", "300000", "Sagot: 3 daang libo", 1.0),
        ("fil", "3", "Sagot: 3 daang libo", 0.0),
    ],
)
def test_a_scale_word_multiplies_what_stands_below_it(
    language: str, gold: str, response: str, right: float
) -> None:
    assert right == score(gold, response, language=language)
