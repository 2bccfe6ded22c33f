"""Where a response states its answer."""

# ruff: noqa: RUF001 - signs that people type
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.maths import final_answer
from tasks.gym.maths.locate import boxes, joint, lenient, strict
from tests.tables import for_each


def texts(places) -> list[str]:
    return [place.text for place in places]


@given(prefix=st.text(alphabet="abc \n.,", max_size=30), value=st.integers(0, 10**6))
def test_words_before_a_box_do_not_matter(prefix: str, value: int) -> None:
    assert [str(value)] == texts(lenient(f"{prefix}\\boxed{{{value}}}", "en"))


@given(content=st.recursive(st.text("ab1+", max_size=4), lambda inner: inner.map("{{{}}}".format)))
def test_a_box_ends_at_its_own_brace(content: str) -> None:
    expected = [content] if content else []

    assert expected == texts(boxes(f"x \\boxed{{{content}}} }} {{ y"))


@pytest.mark.parametrize(
    "response",
    [
        "The answer is 600 + 120 = \\boxed{720}.",
        "The answer is $600 + 120 = \\boxed{720}$, which was asked for.",
        "Thus, the answer is $x = 600 + 120 = \\boxed{720}.$",
        "The answer to the first part is $12^2 \\cdot 5 = \\boxed{720}$.",
        "The final answer is \\fbox{720}",
        "so we get \\boxed 720.",
    ],
)
def test_what_stands_before_a_box_is_working(response: str) -> None:
    assert ["720"] == texts(lenient(response, "en"))
    assert ["720"] == texts(strict(response, "en"))


@pytest.mark.parametrize(
    ("response", "places"),
    [
        ("The answer is 27. So \\boxed{26}", [("26", "box"), ("27", "sentence")]),
        ("The answer is 27, so \\boxed{26}", [("26", "box"), ("27", "sentence")]),
        ("\\boxed{26} or 27", [("26", "box"), ("27", "beside a box")]),
        ("either 27 or $\\boxed{26}$", [("26", "box"), ("27", "beside a box")]),
        ("It is not \\boxed{26}", [("\\ne 26", "box")]),
        ("$x \\neq \\boxed{26}$", [("\\ne 26", "box")]),
        ("27\n\\boxed{26}", [("27", "first line"), ("26", "box")]),
        ("9 * 2 = 18 #### 18", [("18", "marked line")]),
        ("所以答案是 负 2450。", [("负 2450", "sentence")]),
        ("The answer is then of course 27. So \\boxed{26}", [("26", "box"), ("27", "sentence")]),
        ("The answer is the remainder when it is divided by 1000: \\boxed{26}", [("26", "box")]),
        ("This answer is reasonable, since $x^2 \\approx 0.1 = 0.2$. \\boxed{26}", [("26", "box")]),
        ("<<1+1=2>>", []),
        ("\\boxed{26", []),
    ],
)
def test_every_place_says_how_it_was_found(response: str, places: list[tuple[str, str]]) -> None:
    assert places == [(place.text, place.how) for place in lenient(response, "en")]


@pytest.mark.parametrize(
    "line",
    [
        "#### 26",
        "so 26 #### 26",
        "A: 26",
        "**Answer:** 26",
        "**Final Answer**: 26",
        "Jawaban akhir: 26",
        "Đáp số: 26",
        "答案：26",
        "คำตอบ: 26",
        "Respuesta: 26",
        "Réponse finale : 26",
        "Antwort: 26",
    ],
)
def test_marked_lines_are_found_in_every_language(line: str) -> None:
    assert ["26"] == texts(strict(f"Some working.\n{line}", "en"))
    assert ["26"] == texts(lenient(f"Some working.\n{line}", "en"))


def test_boxes_with_a_comma_between_them_state_one_list() -> None:
    assert "1, 2" == joint("$x=\\boxed{1}$ and $y=\\boxed{2}$")
    assert joint("\\boxed{1}. Wait, \\boxed{2}") == ""


@pytest.mark.parametrize(
    ("response", "language"),
    [
        ("The answer is not 7 but 16.", "en"),
        ("Jawabannya bukan 7 melainkan 16.", "id"),
        ("答案不是7而是16。", "zh"),
        ("Ang sagot ay 16.", "fil"),
        ("Kasagutan: 16", "tl"),
        ("정답은 16입니다.", "ko"),
    ],
)
def test_the_stated_number_is_found_where_another_one_is_denied(response, language) -> None:
    (place,) = lenient(response, language)

    assert "16" in place.text
    assert "7" not in place.text


@for_each(
    ("language", "response", "gold", "score"),
    [
        ("en", "<answer>42</answer>", "42", 1.0),
        ("en", "It is 40.\n<answer> 42 </answer>", "40", 0.0),
        ("en", "<answer>40</answer> <answer>42</answer>", "42", 0.0),
        ("en", "<ANSWER>42</ANSWER>", "42", 1.0),
        ("en", "Answer: <b>42</b>", "42", 1.0),
        ("en", "Answer:\n- 42", "42", 1.0),
        ("en", "Answer: -42", "42", 0.0),
        ("en", "It is\n```\n42\n```", "42", 1.0),
        ("en", "```\n```", "42", 0.0),
        ("en", r"\begin{align*} x &= 40 + 2 \\ &= 42 \end{align*}", "42", 1.0),
        ("en", r"\begin{align*} x &= 40 + 2 \\ &= 42 \end{align*}", "2", 0.0),
        ("en", r"\[\begin{aligned} x &= 41 \\ y &= 42 \end{aligned}\]", "41", 0.0),
        ("en", r"\begin{equation} x = 42 \end{equation}", "42", 1.0),
        ("en", "If x = 42, then it fails.", "42", 0.0),
        ("id", "Jika x = 42, maka salah.", "42", 0.0),
        ("en", "If each costs 6, she pays 42.", "42", 1.0),
        ("en", "The answers are 3 and 5.", "3, 5", 1.0),
        ("en", "The answers are 3 and 5.", "3", 0.0),
        ("ja", "答えは42ではありません。", "42", 0.0),
        ("ko", "정답은 42가 아닙니다.", "42", 0.0),
        ("ja", "答えは42です。", "42", 1.0),
    ],
)
def test_tags_environments_and_conditions(
    problem, language: str, response: str, gold: str, score: float
) -> None:
    one = problem("final_answer", {"value": gold}).model_copy(update={"language": language})

    assert score == final_answer.verify(one, response).score
