"""The verifier by rules: what equals what, what is refused, what +1 and -1 mean."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.verdicts import abstain, scored
from tasks.rewards.maths import rule_answer
from tasks.rewards.maths.rule_answer import same_answer, signed, verify


@pytest.fixture(scope="module", autouse=True)
def _no_worker_stays():
    yield
    rule_answer.close()


def problem_of(value: str) -> Problem:
    return Problem(
        id="test/one",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="question"),),
        verifier="rule_answer",
        answer=json.dumps({"value": value}),
        source="test",
        source_row="0",
    )


def judged(value: str, response: str) -> tuple[float | None, str]:
    verdict = verify(problem_of(value), response)
    return verdict.score, verdict.reason


SAME = [
    ("1000", "1,000"),
    ("14,\\!641", "14641"),
    ("\\$32,348", "32348"),
    ("1/3", "0.3333333"),
    ("1.5", "\\frac32"),
    ("2\\frac{1}{4}", "9/4"),
    ("50\\%", "0.5"),
    ("50\\%", "50"),
    ("5\\text{ cm}^2", "5"),
    ("26", "26 apples"),
    ("5\\text{ hours}", "5 \\text{hour}"),
    ("90^\\circ", "90"),
    ("\\text{(D)}", "D"),
    ("\\text{Sunday}", "sunday"),
    ("1242_6", "1242"),
    ("\\frac{\\sqrt{3}}{2}", "\\sqrt{3}/2"),
    ("x^2+2x+1", "(x+1)^2"),
    ("\\sin 2x", "2\\sin x\\cos x"),
    ("2n-2", "2(n-1)"),
    ("\\{1,2,3\\}", "\\{3,2,1\\}"),
    ("1 \\pm \\sqrt{2}", "1-\\sqrt{2}, 1+\\sqrt{2}"),
    ("x \\in [-2,7]", "-2 \\le x \\le 7"),
    ("x>5", "(5,\\infty)"),
    ("(-\\infty, 1)\\cup(1, \\infty)", "(1,\\infty) \\cup (-\\infty,1)"),
    ("(3, 2)", "(p,q)=(3,2)"),
    ("15", "m+n=15"),
    ("15", "12+3=15"),
    ("y = 3x+1", "2y=6x+2"),
    (
        "\\begin{pmatrix} 2 & 1 \\\\ 7 & -2 \\end{pmatrix}",
        "\\begin{bmatrix}2&1\\\\7&-2\\end{bmatrix}",
    ),
]
DIFFERENT = [
    ("1000000", "1000001"),
    ("1/3", "0.333"),
    ("4", ".4"),
    ("10\\text{ cm}", "10\\text{ inches}"),
    ("(0,9)", "[0,9)"),
    ("(1,2)", "(2,1)"),
    ("x \\geq 5", "x \\leq 5"),
    ("s^2 \\le 8r^2", "s^3 \\le 8r^2"),
    ("\\pm 2021", "2021"),
    ("f(x)", "f(y)"),
    ("28_9", "28_{8}"),
    ("1:4", "2:4"),
    ("26", "27=26"),
    ("0", "a+3z"),
    ("a+3z=0", "0"),
    ("y=3x+1", "y=3x+2"),
    ("26", "26 or 27"),
    ("(100,200)", "100200"),
    ("A", "B"),
    ("\\text{October 30}", "\\text{October 40}"),
    ("2^{1009}", "3^{1009}"),
    ("100", "9^{9^{9^9}}"),
    ("\\frac{1}{2^{98}}", "\\frac{2}{2^{98}}"),
]


@pytest.mark.parametrize(("gold", "candidate"), SAME)
def test_these_are_the_same(gold: str, candidate: str) -> None:
    assert same_answer(gold, candidate) is True


@pytest.mark.parametrize(("gold", "candidate"), DIFFERENT)
def test_these_differ(gold: str, candidate: str) -> None:
    assert same_answer(gold, candidate) is False


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("so \\boxed{26}", (1.0, "correct")),
        ("\\boxed{26} and again \\boxed{26.0}", (1.0, "correct")),
        ("#### 26", (1.0, "correct")),
        ("26", (1.0, "correct")),
        ("\\boxed{27}", (0.0, "wrong")),
        ("\\boxed{26} or \\boxed{27}", (0.0, "several_answers")),
        ("\\boxed{26", (0.0, "no_answer")),
        ("A: 27\nA: 26", (0.0, "several_answers")),
        ("It is 26,\nI think.", (0.0, "no_answer")),
        ("<think>\\boxed{26}</think>\\boxed{27}", (0.0, "wrong")),
    ],
)
def test_every_box_must_be_right(response: str, verdict: tuple[float, str]) -> None:
    assert verdict == judged("26", response)


def test_a_list_may_stand_in_a_box_per_part() -> None:
    assert (1.0, "correct") == judged("1, 2", "$\\boxed{2}$ and $\\boxed{1}$")
    assert (0.0, "wrong") == judged("1, 2", "\\boxed{2}, \\boxed{1}, \\boxed{3}")


def test_a_gold_that_cannot_be_read_is_an_abstention() -> None:
    assert (None, "undecided") == judged("a \\ldots b", "\\boxed{7}")
    assert (None, "bad_gold") == judged(" ", "\\boxed{7}")
    assert (1.0, "correct") == judged("a \\ldots b", "\\boxed{a\\ldots b}")


def test_the_papers_reward_is_one_minus_one_or_nothing() -> None:
    assert 1 == signed(scored(1.0, "correct"))
    assert -1 == signed(scored(0.0, "wrong"))
    assert signed(abstain("timeout")) is None


@pytest.mark.parametrize("unit", ["\\boxed{", "{", "(", "1+", "\\frac{", "1,", "x=", "\\pm ", "- "])
def test_hostile_repetition_is_read_quickly(unit: str) -> None:
    started = time.process_time()

    for text in (unit * 20_000, f"\\boxed{{{unit * 200}}}", f"\\boxed{{{unit * 40}1}}"):
        assert judged("26", text)[0] in (0.0, None)
    assert time.process_time() - started < 3.0


VALUES = st.integers(-99, 99)


@given(value=VALUES, other=VALUES, words=st.text("ab .\n", max_size=9))
def test_appending_a_box_never_gains(value: int, other: int, words: str) -> None:
    one = problem_of(str(value))
    first = verify(one, f"{words}\\boxed{{{other}}}")
    second = verify(one, f"{words}\\boxed{{{other}}} {words} \\boxed{{{value}}}")

    assert float(value == other) == first.score == second.score


@given(values=st.lists(VALUES, min_size=2, max_size=4, unique=True), data=st.data())
def test_sets_are_unordered_and_tuples_are_not(values: list[int], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(values))
    gold, found = (", ".join(map(str, row)) for row in (values, shuffled))

    assert same_answer(f"\\{{{gold}\\}}", f"\\{{{found}\\}}") is True
    assert same_answer(f"({gold})", f"({found})") is (values == shuffled)


@given(top=st.integers(-50, 50), below=st.integers(1, 50), scale=st.integers(1, 9))
def test_fractions_are_exact(top: int, below: int, scale: int) -> None:
    scaled = f"\\frac{{{top * scale}}}{{{below * scale}}}"

    assert same_answer(f"{top}/{below}", scaled) is True
    assert same_answer(f"{top}/{below}", f"{top * 1000 + 1}/{below * 1000}") is False


@settings(max_examples=50)
@given(text=st.text("\\{}()[]^_=<>,:1a+- $%frac", max_size=25))
def test_any_text_gets_the_same_verdict_twice_and_equals_itself(text: str) -> None:
    one = problem_of("26")

    assert verify(one, text) == verify(one, text)
    if rule_answer.normalised(text):
        assert same_answer(text, text) is True
