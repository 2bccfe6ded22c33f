"""A date is one answer, in eight languages, and none of its numbers is one."""

# ruff: noqa: RUF001 - signs that people type
import json

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.gym.maths import final_answer
from tasks.gym.maths.dates import date_of
from tests.tables import for_each


def score(gold: str, response: str, language: str, question: str = "How many?") -> float | None:
    problem = Problem(
        id="test/1",
        domain=Domain.MATHS,
        language=language,
        messages=(Message(role=Role.USER, content=question),),
        verifier="final_answer",
        answer=json.dumps({"value": gold}),
        source="test",
        source_row="0",
    )
    return final_answer.verify(problem, response).score


DATED = [
    ("en", "She has 15 books on March 3, 2024.", "3", "2024"),
    ("en", "She has 15 books on the 3rd of March 2024.", "3", "2024"),
    ("id", "Ia punya 15 buku pada 3 Maret 2024.", "3", "2024"),
    ("ms", "Ali mempunyai 15 buku pada 31 Ogos 2024.", "31", "2024"),
    ("vi", "An có 15 quyển sách vào ngày 2 tháng 9 năm 2024.", "9", "2024"),
    ("th", "เขามีหนังสือ 15 เล่มในวันที่ 3 มีนาคม 2567", "3", "2567"),
    ("zh", "他有15本书，在2024年3月3日。", "3", "2024"),
    ("zh-TW", "他有15本書，在2024年3月3號。", "3", "2024"),
    ("fil", "Mayroon siyang 15 libro noong Marso 3, 2024.", "3", "2024"),
    ("pt-BR", "Ele tinha 15 livros em 3 de março de 2024.", "3", "2024"),
]


@for_each(("language", "sentence", "day", "year"), DATED)
def test_a_sentence_that_ends_in_a_date_states_its_number(
    language: str, sentence: str, day: str, year: str
) -> None:
    assert 1.0 == score("15", sentence, language)
    assert 0.0 == score(day, sentence, language)
    assert 0.0 == score(year, sentence, language)


@for_each(
    ("text", "language", "date"),
    [
        ("March 3, 2024", "en", "2024-03-03"),
        ("3 March 2024", "en", "2024-03-03"),
        (r"\text{Mar. 3rd}", "en", "03-03"),
        ("2024-03-03", "en", "2024-03-03"),
        ("3 Maret 2024", "id", "2024-03-03"),
        ("ngày 2 tháng 9", "vi", "09-02"),
        ("3 มีนาคม พ.ศ. 2567", "th", "2567-03-03"),
        ("2024 年 3 月 3 日", "zh", "2024-03-03"),
        ("3월 3일", "ko", "03-03"),
        ("3 de março", "pt", "03-03"),
        ("3 may 2024", "en", ""),
        ("March 32", "en", ""),
        ("2024-10-12", "en", ""),
        ("1200-03-03", "en", ""),
        ("3 tháng 10 ngày", "vi", ""),
        ("March 3.5", "en", ""),
    ],
)
def test_what_is_a_date(text: str, language: str, date: str) -> None:
    assert date == date_of(text, language)


def test_dates_are_compared_as_dates() -> None:
    assert 1.0 == score("March 3, 2024", r"\boxed{2024-03-03}", "en")
    assert 1.0 == score(r"\text{July 20}", "It was on July 20, 1969.", "en")
    assert 0.0 == score("March 3, 2024", "The answer is March 3, 2025.", "en")
    assert 0.0 == score("2018", r"\boxed{2024-03-03}", "en")
    assert 0.0 == score("3", "The answer is March 3.", "en")


def test_a_full_date_states_the_year_that_a_question_asks_for() -> None:
    assert 1.0 == score("1969", "It landed on July 20, 1969.", "en", "When did it land?")
    assert None is score("1969", "It landed on July 20, 1969.", "en")
    assert 0.0 == score("20", "It landed on July 20, 1969.", "en", "When did it land?")
    assert 0.0 == score("1969", "It was not on July 20, 1969.", "en", "When did it land?")


@for_each(
    ("gold", "response", "language", "right"),
    [
        ("7:00 PM", r"\boxed{7 p.m.}", "en", 1.0),
        ("7:00 PM", "The train leaves at 7 p.m.", "en", 1.0),
        ("7:00 PM", r"\boxed{19:00}", "en", 1.0),
        ("19:00", "The answer is 7:00 PM.", "en", 1.0),
        ("7 pm", r"\boxed{19:00}", "en", 1.0),
        ("7 pm", r"\boxed{7}", "en", 1.0),
        ("7 pm", r"\boxed{7 am}", "en", 0.0),
        ("19:00", r"\boxed{7:00}", "en", 0.0),
        ("19:00", r"\boxed{7:00 AM}", "en", 0.0),
        ("7:05 PM", r"\boxed{7 PM}", "en", 0.0),
        ("12:00 AM", r"\boxed{0:00}", "en", 1.0),
        ("12:30 PM", r"\boxed{12:30 AM}", "en", 0.0),
        ("19:30", "Jawabannya adalah pukul 19.30.", "id", 1.0),
        ("19:30", "Jawabannya adalah pukul 7.30 malam.", "id", 1.0),
        ("19:30", "Jawabannya adalah pukul 7.30 pagi.", "id", 0.0),
        ("19:30", r"\boxed{19h30}", "pt", 1.0),
        ("19:30", "คำตอบคือ 19.30 น.", "th", 1.0),
        ("19:30", "答案是下午7点30分。", "zh", 1.0),
        ("19:30", "答案是上午7点30分。", "zh", 0.0),
        ("19:30", "Die Antwort ist 19.30 Uhr.", "de", 1.0),
        ("19:30", "From 18:00 to 19:30 she reads.", "en", 0.0),
        ("7", r"\boxed{7 p.m.}", "en", 1.0),
        ("1:2", r"\boxed{2:4}", "en", 1.0),
    ],
)
def test_a_time_of_the_day_has_several_forms(
    gold: str, response: str, language: str, right: float
) -> None:
    assert right == score(gold, response, language, "When?")
