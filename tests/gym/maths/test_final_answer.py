"""Final answers: what counts as one, what it is worth, what happens when algebra hangs."""

# ruff: noqa: RUF001 - signs that people type
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rows import Domain, Message, Problem, Role
from data_schemas.verdicts import Verdict
from tasks.gym.maths import final_answer, symbolic
from tasks.gym.maths.final_answer import verify
from tests.tables import for_each


@pytest.fixture(scope="module", autouse=True)
def _no_worker_stays():
    yield
    final_answer.close()


def final_problem(value: str) -> Problem:
    return Problem(
        id="test/one",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="question"),),
        verifier="final_answer",
        answer=json.dumps({"value": value}),
        source="test",
        source_row="0",
    )


def judged(problem, value: str, response: str) -> tuple[float | None, str]:
    verdict: Verdict = verify(problem("final_answer", {"value": value}), response)
    return verdict.score, verdict.reason


@for_each(
    "response",
    [
        "26",
        "<think>2 * 13</think>26",
        "So she pays 26.",
        "2 * 13 = 26",
        "#### 26",
        "A: 26",
        "The answer is 26.",
        "The answer is $26 per day. That is a lot.",
        "The answer is \\boxed{26}.",
        "Adding up:\n\\[ \\boxed{26} \\]",
        "\\boxed{\\text{26 apples}}",
        "\\boxed{\\frac{52}{2}}",
        "\\boxed{26} and again \\boxed{26.0}",
        "Fill in \\boxed{\\phantom{0}}: \\boxed{26}",
        "Jawabannya adalah 26",
        "答案是 26。",
        "คำตอบคือ 26",
        "Đáp án là 26",
        "A resposta é 26",
    ],
)
def test_a_right_answer_scores_one(problem, response: str) -> None:
    assert (1.0, "correct") == judged(problem, "26", response)


@for_each(
    ("response", "reason"),
    [
        ("27", "wrong"),
        ("The answer is 27.", "wrong"),
        ("<think>26</think>27", "wrong"),
        ("<think>26", "no_answer"),
        ("\\boxed{26", "no_answer"),
        ("\\boxed{26} or \\boxed{27}", "several_answers"),
        ("27\n26", "several_answers"),
        ("25, 26, 27", "wrong"),
        ("A: 1\nA: 2\nA: 3\nA: 4\nA: 5\nA: 6\nA: 7\nA: 8\nA: 9\nA: 26", "several_answers"),
        ("I do not know", "wrong"),
    ],
)
def test_anything_else_scores_zero_with_its_reason(problem, response: str, reason: str) -> None:
    assert (0.0, reason) == judged(problem, "26", response)


WRONG = [
    "27",
    "#### 27",
    "A: 27",
    "The answer is 27.",
    "\\boxed{27}",
    "<think>26</think>\\boxed{27}",
]
RIGHT = ["26", "#### 26", "A: 26", "The answer is 26.", "\\boxed{26}", "So \\boxed{26}", "= 26"]


@for_each("wrong", WRONG)
@for_each("appended", RIGHT)
def test_a_wrong_answer_cannot_be_repaired_by_appending(problem, wrong, appended) -> None:
    # A bare number is an answer only if its line ends there.
    for glue in ("\n", "\n\n", "\n\nWait. ") if wrong == "27" else ("\n", " ", "\n\nWait. "):
        score, _ = judged(problem, "26", wrong + glue + appended)

        assert 0.0 == score, wrong + glue + appended


@for_each(
    ("value", "response"),
    [
        ("\\frac{\\sqrt{3}}{2}", "\\boxed{\\sqrt{3}/2}"),
        ("x^2+2x+1", "\\boxed{(x+1)^2}"),
        ("\\{1,2,3\\}", "\\boxed{\\{3,2,1\\}}"),
        ("x \\in [-2,7]", "\\boxed{-2 \\le x \\le 7}"),
        ("(3, 2)", "\\boxed{(p,q)=(3,2)}"),
        ("2", "\\boxed{\\sqrt{4}}"),
    ],
)
def test_algebraic_equality_is_found(problem, value: str, response: str) -> None:
    assert (1.0, "correct") == judged(problem, value, response)


@for_each(
    ("value", "response"),
    [
        ("(0,9)", "\\boxed{[0,9)}"),
        ("x \\geq 5", "\\boxed{x \\leq 5}"),
        ("4", "\\boxed{4\\sqrt{2}}"),
        ("\\pm 2021", "\\boxed{2021}"),
        ("f(x)", "\\boxed{f(y)}"),
    ],
)
def test_algebraic_difference_is_found(problem, value: str, response: str) -> None:
    assert (0.0, "wrong") == judged(problem, value, response)


def test_plain_answers_start_no_process(problem) -> None:
    final_answer.close()
    before = symbolic.pool()._idle.qsize()
    one: Problem = problem("final_answer", {"value": "26"})
    for response in ("26", "12+3=15", "garbage ((", "1 5 x", "The answer is", "{26}"):
        verify(one, response)

    assert before == symbolic.pool()._idle.qsize() == 0


@pytest.mark.parametrize(
    ("value", "response"),
    [
        ("(98, 2), (99, 503)", "$$\\boxed{(98, 2)} \\quad \\text{and} \\quad \\boxed{(99, 503)}$$"),
        ("1, 2, 3", "\\boxed{1},\\boxed{2},\\boxed{3}"),
        ("1, 2", "$x_1 = \\boxed{2}$ and $x_2 = \\boxed{1}$"),
    ],
)
def test_one_list_may_stand_in_a_box_per_part(problem, value: str, response: str) -> None:
    assert (1.0, "correct") == judged(problem, value, response)


@pytest.mark.parametrize(
    ("value", "response"),
    [
        ("1, 2", "\\boxed{1}, \\boxed{2}, \\boxed{3}"),
        ("1, 2", "\\boxed{1}. Wait, I think that it is rather \\boxed{2}"),
        ("1", "\\boxed{1} or \\boxed{2}"),
        ("\\{1\\}", "\\boxed{1}, \\boxed{2}"),
    ],
)
def test_boxes_that_compete_are_refused(problem, value: str, response: str) -> None:
    assert 0.0 == judged(problem, value, response)[0]


@pytest.mark.parametrize(
    ("value", "response"),
    [
        ("\\frac{1}{2^{98}}", "\\boxed{\\frac{2}{2^{98}}}"),
        ("2007 + \\frac\\pi 2", "\\boxed{3007 + \\frac\\pi 2}"),
        (
            "\\begin{pmatrix} -1 & 0 \\\\ 0 & -1 \\end{pmatrix}.",
            "\\boxed{\\begin{pmatrix} -2 & 0 \\\\ 0 & -1 \\end{pmatrix}.}",
        ),
    ],
)
def test_what_math_verify_takes_for_equal_is_not(problem, value: str, response: str) -> None:
    assert (0.0, "wrong") == judged(problem, value, response)
    assert (1.0, "correct") == judged(problem, value, f"\\boxed{{{value}}}")


def test_a_gold_of_nothing_is_an_abstention(problem) -> None:
    assert (None, "bad_gold") == judged(problem, " ", "\\boxed{1}")


@given(value=st.integers(0, 10**6), spaces=st.text(" \n\t", max_size=3))
def test_space_and_case_around_an_answer_do_not_matter(value: int, spaces: str) -> None:
    one = final_problem(str(value))
    for text in (f"THE ANSWER IS {value}", f"the answer is {spaces}{value}{spaces}"):
        assert (1.0, "correct") == (verify(one, text).score, verify(one, text).reason)


@for_each(
    "response",
    [
        "The answer is twenty-six.",
        "Answer: Twenty six",
        "#### twenty-six",
        "The answer is **twenty-six** apples.",
        "\\boxed{\\text{twenty-six}}",
        "The answer is twenty-six. \\boxed{26}",
    ],
)
def test_an_integer_in_words_is_an_answer(problem, response: str) -> None:
    assert (1.0, "correct") == judged(problem, "26", response)


@for_each(
    "response",
    [
        "The answer is either twenty-six or five.",
        "The answer is 26 or five.",
        "The answer is five or 26.",
        "The answer is between five and twenty-six.",
        "The answer is 26 to thirty.",
        "The answer is about twenty-six.",
        "The answer is more than twenty-six.",
        "The answer is not twenty-six.",
        "The answer is minus twenty-six.",
        "The answer is twenty-six and a half.",
        "The answer is twenty-six hundredths.",
        "The answer is five. \\boxed{26}",
        "The answer is \\boxed{26} or five.",
        "The answer is twenty-six. The answer is five.",
        "The answer isn't 26.",
        "The answer can’t be 26.",
        "The answer won't be 26.",
        "The answer doesn't equal 26.",
        "The answer wouldn’t be twenty-six.",
    ],
)
def test_words_that_hedge_or_deny_state_no_answer(problem, response: str) -> None:
    assert 0.0 == judged(problem, "26", response)[0]


def scored_in(language: str, value: str, response: str) -> float | None:
    question = final_problem(value).model_copy(update={"language": language})
    return verify(question, response).score


@for_each(
    ("language", "response"),
    [
        ("en", "\\boxed{5} to six"),
        ("en", "\\boxed{5} and six."),
        ("en", "$\\boxed{5}$ - $6$"),
        ("en", "\\boxed{5}. Or six."),
        ("en", "The answer is 5. Or six."),
        ("en", "The answer is 5; or maybe 6.5."),
        ("en", "The answer is 5. Alternatively, 6."),
        ("en", "The answer is 5. No, six."),
        ("en", "The answer is 5. No, it is 6."),
        ("en", "The answer is 5. No, it's six."),
        ("en", "The answer is 5. Just kidding, that is 6 apples."),
        ("en", "The answer is 5. Actually, it should be 6."),
        ("en", "The answer is 5. Scratch that, the answer must be six."),
        ("en", "The answer is 5. No, wait, make that 6."),
        ("en", "\\boxed{5}. Oops, it comes to 6."),
        ("de", "Die Antwort ist 5. Nein, es ist 6."),
        ("fr", "La réponse est 5. Non, c'est 6."),
        ("zh", "答案是5。不，是6。"),
        ("en", "The answer is 5, maybe 6."),
        ("en", "So it is 5. Or 6."),
        ("id", "\\boxed{5} atau enam"),
        ("id", "\\boxed{5} sampai 6"),
        ("id", "Jawabannya adalah 5. Atau 6."),
        ("ms", "Jawapannya ialah 5 atau enam."),
        ("vi", "\\boxed{5} đến 6"),
        ("vi", "Đáp án là 5. Hoặc 6."),
        ("th", "\\boxed{5} ถึง 6"),
        ("th", "คำตอบคือ 5 หรือหก"),
        ("zh", "\\boxed{5} 或六"),
        ("zh", "答案是5。或者6。"),
        ("zh", "答案是5。或者六。"),
        ("zh", "答案：5。不，六。"),
        ("en", "$\\boxed{5}$ - forty-six"),
        ("zh", "答案是5以上。"),
        ("pt", "\\boxed{5} a 6"),
        ("pt", "A resposta é 5 ou seis."),
        ("es", "La respuesta es 5 o seis"),
        ("es", "La respuesta es 5. O 6."),
        ("fr", "La réponse est cinq ou 6."),
        ("fr", "La réponse est supérieure ou égale à 5."),
        ("de", "\\boxed{5} bis 6"),
        ("de", "Die Antwort ist 5. Oder sechs."),
        ("en", "The answer is less than or equal to 5."),
        ("en", "The answer is –5."),
        ("th", "คำตอบคือ 5 ล้าน"),
        ("en", "The answer is 5 (or 6)"),
        ("en", "The answer is 5 (1 + 1)"),
    ],
)
def test_a_value_with_an_alternative_is_no_answer(language: str, response: str) -> None:
    assert 0.0 == scored_in(language, "5", response)
    if "6" in response:
        assert 0.0 == scored_in(language, "6", response)


@for_each(
    ("language", "value", "response"),
    [
        ("en", "5", "5 or five"),
        ("en", "5", "The answer is five (5)."),
        ("en", "5", "The answer is 5. Or five."),
        ("en", "3", "The answer is 3 (2 + 1)."),
        ("en", "3", "The answer is 3 (1 for Ann, 2 for Bob)."),
        ("en", "10", "The answer is 5 (1 + 1)"),
        ("en", "5", "The answer is 5. No 6 is needed for it."),
        ("en", "-5", "The answer is –5."),
        ("th", "5000000", "คำตอบคือ 5 ล้าน"),
        ("id", "26", "Jawabannya adalah dua puluh enam."),
        ("ms", "8", "Jawapannya ialah lapan."),
        ("vi", "26", "Đáp án là hai mươi sáu."),
        ("th", "26", "คำตอบคือ ยี่สิบหก"),
        ("pt", "26", "A resposta é vinte e seis."),
        ("es", "-26", "La respuesta es menos veintiséis."),
        ("fr", "99", "La réponse est quatre-vingt-dix-neuf."),
        ("de", "1226", "Die Antwort ist tausendzweihundertsechsundzwanzig."),
        ("en", "120", "The answer to part (a) is 7, so we get \\boxed{120}."),
    ],
)
def test_a_value_stated_twice_or_in_words_is_an_answer(language, value, response) -> None:
    assert 1.0 == scored_in(language, value, response)


@for_each(
    ("response", "lacking"),
    [
        ("<think>3*4=12; 12+25=37; 100-37=63</think>63", ""),
        ("<think>3*4=12; 12+25=47; 100-37=63</think>63", ""),
        ("<think>12+25=36</think>63", "37"),
        ("<think>37; 12</think>63", "37"),
        ("<think></think>64", "12"),
    ],
)
def test_a_verdict_names_the_first_intermediate_result_that_a_response_lacks(
    problem, response, lacking
):
    verdict = verify(
        problem("final_answer", {"value": "63", "chain": ["12", "37", "63"]}), response
    )

    assert response.endswith("63") == verdict.solved
    assert lacking == verdict.detail.partition("the intermediate result ")[2].partition(" ")[0]
