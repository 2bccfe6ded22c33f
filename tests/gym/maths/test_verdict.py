"""One reading for both verifiers: the classes of answers that were misjudged, and no way out."""

# ruff: noqa: RUF001 - signs that people type
import json
import shutil
import sys
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.gym import table
from tasks.gym.maths import final_answer, rule_answer
from tests.tables import for_each
from tests.timing import timed

VERIFIERS = pytest.mark.parametrize("verify", [final_answer.verify, rule_answer.verify])


@pytest.fixture(scope="module", autouse=True)
def _no_worker_stays():
    yield
    final_answer.close()


def problem_of(value: str, language: str = "en", **gold: object) -> Problem:
    return Problem(
        id="test/one",
        domain=Domain.MATHS,
        language=language,
        messages=(Message(role=Role.USER, content="question"),),
        verifier="final_answer",
        answer=json.dumps({"value": value, **gold}),
        source="test",
        source_row="0",
    )


@VERIFIERS
@for_each(
    ("value", "response"),
    [
        ("720", "The answer is 600 + 120 = \\boxed{720}."),
        ("2^{2020}", "\\boxed{4^{1010}}"),
        ("18", "She makes 9 * 2 = 18 dollars. #### 18"),
        ("\\frac{1}{2}", "\\boxed{1 \\over 2}"),
        ("\\sum_{k=0}^{3} k", "\\boxed{\\sum_{k=1}^{3} k}"),
        ("1, 2", "$\\boxed{2}$ and $\\boxed{1}$"),
        ("1,2,3,4,5,6,7,8,9,0", ", ".join(f"$\\boxed{{{n}}}$" for n in range(10))),
    ],
)
def test_right_answers_score_one(verify, value: str, response: str) -> None:
    assert (1.0, "correct") == (verify(problem_of(value), response).score, "correct")


@VERIFIERS
@for_each(
    ("value", "response"),
    [
        ("1", "<<1+1=2>>"),
        ("2^{2020}", "\\boxed{4^{1011}}"),
        ("x^2", "\\boxed{9^{9^{9^{9^{9}}}}}"),
        ("x^2", "\\boxed{\\int_0^{9^{9^9}} \\sum_{k} 99999!}"),
        ("8", "\\boxed{\\neq 8}"),
        ("8", "\\boxed{> 8}"),
        ("8", "\\boxed{\\text{at least } 8}"),
        ("8", "\\boxed{8} or 9"),
        ("8", "either 7 or \\boxed{8}"),
        ("8", "The answer is not \\boxed{8}"),
        ("8", "between 8 and 9"),
        ("8", "not 8"),
        ("8", "7-8"),
        ("8", "8 or six"),
        ("8", "six or 8"),
        ("8", "8 or a dozen"),
        ("8", "8, or minus six"),
        ("8", "8 to one hundred"),
        ("8", "between two and 8"),
        ("8", "\\boxed{8} or six"),
        ("8", "six or \\boxed{8}"),
        ("8", "6 or \\boxed{8}"),
        ("8", "- 6 or \\boxed{8}"),
        ("8", "It won't be 8"),
        ("8", "It doesnʼt equal 8"),
        ("8", "The answer can’t be \\boxed{8}"),
        ("8", "It isnt 8"),
        ("8", "I don't think the answer is 8"),
        ("8", "8? No."),
        ("\\sum_{k=0}^{3} k", "\\boxed{\\foo}"),
        ("\\sum_{k=0}^{3} k", "I do not know"),
    ],
)
def test_a_response_cannot_escape_into_an_abstention(verify, value: str, response: str) -> None:
    assert 0.0 == verify(problem_of(value), response).score


@for_each(
    ("language", "response"),
    [
        ("id", "Jawabannya tidaklah 8"),
        ("id", "8 atau enam"),
        ("id", "enam atau 8"),
        ("id", "8 keliru"),
        ("ms", "Jawapannya bukannya 8"),
        ("ms", "kurang daripada 8"),
        ("vi", "Đáp án không thể là 8"),
        ("vi", "8 hoặc sáu"),
        ("th", "คำตอบไม่เท่ากับ 8"),
        ("th", "8 หรือหก"),
        ("zh", "答案不等于8"),
        ("zh", "答案：不是8"),
        ("pt", "A resposta não pode ser 8"),
        ("pt", "8 ou seis"),
        ("pt", "8 está errado"),
        ("es", "No puede ser 8"),
        ("fr", "ce ne peut être 8"),
        ("de", "Die Antwort ist keineswegs 8"),
    ],
)
def test_a_denial_or_an_alternative_in_any_language_states_nothing(language, response) -> None:
    assert 0.0 == final_answer.verify(problem_of("8", language), response).score


@for_each(
    "response",
    [
        "The answer is 8, not 9.",
        "The answer is 8 (not 9).",
        "The answer is not 9. The answer is 8.",
        "I don't think the answer is 9. The answer is 8.",
        "The answer is 8, which isn't obvious.",
        "The answer is none other than 8",
        "It is nothing but 8",
        "So 20 - 12 = 8 students do not play either game.",
        "It solves to x = 1/5 + 7.8, or $\\boxed{8}$.",
        "That makes $3 + 5$ or $\\boxed{8}$.",
        "She pays $2 \\times 4$ or \\boxed{8}.",
        "4 * 2 or \\boxed{8}",
        "The answer is about 8",
        "It is eight",
    ],
)
def test_words_that_deny_something_else_leave_the_answer(response: str) -> None:
    assert (1.0, "correct") == (
        (verdict := final_answer.verify(problem_of("8"), response)).score,
        verdict.reason,
    )


def test_a_box_beside_another_stated_value_is_right_for_the_strict_verifier_alone() -> None:
    """The strict verifier reads boxes only; the lenient one everything that is stated."""
    for other in ("three", "3"):
        response = f"The answer is {other}. \\boxed{{8}}"

        assert "correct" == rule_answer.verify(problem_of("8"), response).reason
        assert "several_answers" == final_answer.verify(problem_of("8"), response).reason


@VERIFIERS
@for_each(
    ("said", "score"), [("4.2", 1.0), ("4.25", 1.0), ("4.1", 1.0), ("4.31", 0.0), ("4.09", 0.0)]
)
def test_only_a_stated_tolerance_counts(verify, said: str, score: float) -> None:
    assert score == verify(problem_of("4.2", tolerance=0.1), f"\\boxed{{{said}}}").score
    assert float(said == "4.2") == verify(problem_of("4.2"), f"\\boxed{{{said}}}").score


def test_a_gold_that_cannot_be_read_is_an_abstention() -> None:
    unread = problem_of("a \\ldots b")

    assert "gold_unreadable" == final_answer.verify(unread, "\\boxed{7}").reason
    assert 1.0 == final_answer.verify(unread, "\\boxed{a\\ldots b}").score
    assert "bad_gold" == final_answer.verify(problem_of(" "), "\\boxed{7}").reason
    assert "bad_gold" == final_answer.verify(problem_of("1", tolerance=-1), "1").reason


def test_a_verdict_says_what_was_read_and_how() -> None:
    verdict = final_answer.verify(problem_of("26"), "The answer is 27. So \\boxed{26}")

    assert "several_answers" == verdict.reason
    assert (
        "gold '26' (value); box '26' (value): same; sentence '27' (value): different"
        == verdict.detail
    )


UNITS = [
    *(
        "\\boxed{",
        "{",
        "}",
        "$",
        "$$",
        "\\[",
        "\\(",
        "A:\n",
        "\n",
        "answer ",
        ".",
        "1",
        "1,",
        "=",
        "<<",
    ),
    *(
        "\\frac{",
        "#### ",
        "#### 1\n",
        "\\boxed{1}",
        "not ",
        "or ",
        "1 or ",
        "\\text{a}",
        "答案是",
        "(",
        "²",
    ),
    *(
        "The answer is 1. ",
        "The answer is ",
        "--1",
        "2^",
        "!",
        "√",
        "十",
        "$1 ",
        "1.000",
        "Rp1",
        "| ",
        "\\pm",
    ),
    *(
        "**",
        "answer is the ",
        "\\boxed 1 ",
        "\\over ",
        "1:",
        "\\approx",
        "1 cm ",
        " ",
        "\t",
        "\\",
        "minus ",
    ),
]


@pytest.mark.slow
@VERIFIERS
@pytest.mark.parametrize("unit", UNITS)
def test_no_text_of_100_kb_takes_a_second(verify, unit: str) -> None:
    for prefix in ("", "answer to", "The answer is ", "\\boxed{"):
        text = (prefix + unit * (100_000 // len(unit)))[:100_000]
        seconds, verdict = timed(partial(verify, problem_of("26"), text), 1.0)

        assert seconds < 1.0
        assert 0.0 == verdict.score


@pytest.mark.slow
@VERIFIERS
@pytest.mark.parametrize("unit", UNITS)
def test_no_short_answer_takes_a_second_either(verify, unit: str) -> None:
    for length in (40, 290, 980):
        text = (unit * length)[:length]
        for response in (f"\\boxed{{{text}}}", f"\\boxed{{{text}1}}", f"The answer is {text}"):
            seconds, verdict = timed(partial(verify, problem_of("x^2+1"), response), 0.5)

            assert seconds < 0.5
            assert verdict.score is not None


@VERIFIERS
@given(
    value=st.integers(-99, 99),
    other=st.integers(-99, 99),
    glue=st.sampled_from(["\n", " ", " or "]),
)
def test_appending_a_box_never_gains(verify, value: int, other: int, glue: str) -> None:
    one = problem_of(str(value))
    first = verify(one, f"\\boxed{{{other}}}")
    second = verify(one, f"\\boxed{{{other}}}{glue}so \\boxed{{{value}}}")

    assert float(value == other) == first.score == second.score


@VERIFIERS
@given(text=st.text("\\{}()[]^_=<>,:1a+- $%frac", max_size=25))
def test_any_text_gets_the_same_verdict_twice(verify, text: str) -> None:
    assert verify(problem_of("26"), text) == verify(problem_of("26"), text)


@VERIFIERS
@for_each(
    "value",
    ["26", "-3", "1,234", "0.375", "7/12", "\\frac{7}{12}", "50\\%", "12\\text{ cm}", "2^{10}"],
)
def test_what_is_unread_is_no_number_and_sympy_is_not_asked(verify, value: str) -> None:
    for answer in ("\\foo{26}", "\\operatorname{lcm}(2, 13)", "26 \\bmod x", "\\gcd(26, 52)"):
        verdict = verify(problem_of(value), f"$\\boxed{{{answer}}}$")

        assert (0.0, "wrong") == (verdict.score, verdict.reason)
        assert "math-verify" not in verdict.detail


@pytest.mark.slow
@VERIFIERS
@pytest.mark.parametrize(
    "work",
    [
        "\\int_0^1 2x \\, dx + \\sqrt{2}",
        "\\sqrt{2} + \\sum_{k=1}^{1} k",
        "\\lim_{x \\to 0} (1 + \\sqrt{2} + x)",
        "\\prod_{k=1}^{1} (1 + \\sqrt{2})",
    ],
)
def test_work_that_an_answer_leaves_to_its_reader_is_no_answer(verify, work: str) -> None:
    verdict = verify(problem_of("1 + \\sqrt{2}"), f"$\\boxed{{{work}}}$")

    assert (0.0, "wrong") == (verdict.score, verdict.reason)
    assert "math-verify" not in verdict.detail


@pytest.mark.slow
def test_work_of_a_gold_that_takes_too_long_is_no_fault_of_the_answer() -> None:
    gold = r"\int_{0}^{\pi} \frac{x \sin x}{1+\cos^2 x} dx"
    one = problem_of(gold)

    assert 1.0 == final_answer.verify(one, rf"\boxed{{{gold}}}").score
    assert None is final_answer.verify(one, r"\boxed{\frac{\pi^2}{4}}").score
    assert (
        0.0
        == final_answer.verify(one, r"\boxed{\int_{0}^{1} \frac{x \sin x}{1+\cos^2 x} dx}").score
    )


def test_a_worker_that_cannot_start_gives_no_verdict(monkeypatch):
    final_answer.close()
    asked, answer = problem_of("[-3, 3]"), "\\boxed{|x| \\le 3}"
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", shutil.which("false"))
        (verdict,) = table.score_batch([asked], [answer])

    assert (None, "verifier_error:final_answer:WorkerFailure") == (verdict.score, verdict.reason)
    assert 1.0 == final_answer.verify(asked, answer).score
