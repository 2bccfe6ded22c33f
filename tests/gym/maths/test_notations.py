r"""Notations of mathematics that carry value: bars, inverses, ratios, sets and conditions."""

# ruff: noqa: RUF001 - signs that people type
import itertools
import json
import random
from fractions import Fraction

import pytest

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.gym.maths import final_answer, rule_answer
from tasks.gym.maths.compare import same
from tasks.gym.maths.parse import parse
from tests.tables import for_each


def scores(gold: str, response: str, question: str = "Find it.") -> list[float | None]:
    problem = Problem(
        id="test/1",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content=question),),
        verifier="final_answer",
        answer=json.dumps({"value": gold}),
        source="test",
        source_row="0",
    )
    return [verifier.verify(problem, response).score for verifier in (final_answer, rule_answer)]


@for_each(
    ("gold", "written"),
    [
        (r"\tan^{-1} 2", r"\arctan 2"),
        (r"\frac{\pi}{6}", r"\sin^{-1}(1/2)"),
        (r"\frac{\pi}{3}", r"\sec^{-1} 2"),
        (r"1/3", r"0.\overline{3}"),
        (r"1/6", r"0.1\overline{6}"),
        (r"1/3", r"0.\dot{3}"),
        (r"4/37", r"0.\dot{1}0\dot{8}"),
        (r"1/3", "0.(3)"),
        (r"1/3", "0.333..."),
        (r"2/11", r"0.1818\ldots"),
        (r"5/3", "1.6\u0305"),
        (r"1:4", "2:8"),
        (r"1:4", r"\frac14"),
        ("1:2:3", "2:4:6"),
        ("10", r"{5 \choose 2}"),
        ("10", r"\binom52"),
        ("2", r"\lg 100"),
        (r"\emptyset", r"\{\}"),
        (r"\{1,1,2\}", r"\{1,2\}"),
        (r"\{1 \pm \sqrt5, -2\}", r"\{-2, 1+\sqrt5, 1-\sqrt5\}"),
        (r"\{x \mid -1 < x < 1\}", "(-1, 1)"),
        ("(2,3)", r"\{x \in \mathbb{R} : 2 < x < 3\}"),
        (r"\frac{\pi}{6}", r"30^\circ"),
        (r"62.5\%", r"\frac58"),
        ("7,14,18", "Paolo: 18, Qing: 14, Rayna: 7"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(1,2)"),
        ("f(z)=z+1", "f(x)=x+1"),
        ("2n+1", r"2n+1 \text{ for all } n \ge 1"),
        ("2n+1", r"2n+1, \text{ where } n \in \mathbb{N}"),
        ("n=3k", r"n=3k,\ k\in\mathbb{Z}"),
        ("2^{n-1}", r"2^{n-1} \quad (n \geq 2)"),
        ("f(x)=cx", r"f(x)=cx \text{ for any constant } c"),
        ("12", r"12^{\text{th}}"),
        ("12", "12=x"),
        ("2\\sqrt{3}", "2\\sqrt{3}=x"),
        ("x+1", r"x+1 \text{ for } x \neq 0"),
        ("2n+1", "2n+1，其中n为正整数"),
        ("f(x)=cx", r"f(x)=kx \text{ for a constant } k"),
        (r"\arctan 2", r"\operatorname{arctan} 2"),
        (r"\cos^{-1}(1/2)", r"60^\circ"),
        ("1/3", r"0.333 \text{ repeating}"),
        ("1/6", "0.166 recurring"),
        (r"\{\}", r"\text{no solution}"),
        ("(0,1)", "]0,1["),
        ("[0,1)", "[0,1["),
        (r"(0,1) \cup [2,3)", r"]0,1[ \cup [2,3["),
        ("1:4", r"1 \text{ to } 4"),
        ("10", "{}_5C_2"),
        ("2^n", r"2^n, n = 1, 2, 3, \ldots"),
        ("10,11,-2,-1", "Sequence 1: -2, -1 and Sequence 2: 10, 11"),
        ("(1,2),(-1,2),(1,-2),(-1,-2)", r"(\pm 1, \pm 2)"),
        ("(P(x), Q(x)) = (x + 1, x)", "(1 + x, x)"),
        ("xy = 6", r"\frac{6}{x}"),
        ("y + 1 = -(2x-1)^2", "-4x^2+4x-2"),
        (r"\rho\sin\theta = 3", r"3\csc\theta"),
    ],
)
def test_two_notations_of_one_value(gold: str, written: str) -> None:
    assert [1.0, 1.0] == scores(gold, f"So it is \\boxed{{{written}}}.")


@for_each(
    ("language", "response", "value", "parts"),
    [
        ("en", "The ratio is 3:2.", "3:2", ("2", "3")),
        ("en", "The answer is 3 x 2.", "3 x 2", ("2", "3")),
        ("en", "The answer is 3⋅4.", "12", ("3", "4")),
        ("en", "The answer is 3 • 4.", "12", ("3", "4")),
        ("en", "\\boxed{3 x 2}", "6", ("3", "2")),
        ("en", "The answer is C(5,2).", "10", ("5", "2", "5,2")),
        ("en", "\\boxed{C(5, 2)}", "(5,2)", ("5", "2")),
        ("en", "\\boxed{5C2}", "10", ("5", "2")),
        ("vi", "Vậy có \\boxed{C_5^2}.", "10", ("5", "25")),
        ("en", "The answer is ⌊3.7⌋ because we round down.", "3", ("3.7", "4")),
        ("id", "Jadi jawabannya ⌈3,2⌉.", "4", ("3.2", "3")),
        ("en", "The answer is 3‰.", "0.003", ("3", "0.03")),
        ("pt", "Resposta: 3,5‰", "0.0035", ("3.5",)),
        ("en", "The answer is 3 R 2.", "3 R 2", ("2 R 3", "3.2", "5")),
        ("en", "\\boxed{3, \\text{ remainder } 2}", "3 R 2", ("2 R 3",)),
        ("id", "\\boxed{3 sisa 2}", "3 R 2", ("2 R 3",)),
        ("vi", "Kết quả là 3 dư 2.", "3 remainder 2", ("2 R 3", "5")),
        ("th", "คำตอบคือ 3 เศษ 2", "3 R 2", ("2 R 3",)),
        ("zh", "答案是3余2。", "3 R 2", ("2 R 3",)),
        ("de", "\\boxed{3 Rest 2}", "(3,2)", ("(2,3)",)),
        ("en", "The answer is 3 gross.", "432", ("3", "36")),
        ("en", "The answer is 3 and 1/2 cups.", "3.5", ("3", "1/2", "1.5")),
        ("id", "\\boxed{3 dan 1/2}", "3.5", ("3",)),
        ("en", "The answer is three and one half.", "3.5", ("3", "1/2")),
        ("en", "The answer is a) 5 b) 6.", "(a) 5, (b) 6", ("5", "6", "(a) 6, (b) 5")),
        ("en", "The answer is 3 + y.", "3 + y", ("3",)),
        ("id", "Jawabannya adalah y + 3.", "y + 3", ("3",)),
        ("en", "The answer is ∛8.", "2", ("8",)),
        ("en", "The answer is 1_000.", "1000", ("1",)),
        ("en", "\\boxed{5h 30m}", "5h 30m", ("5", "30")),
        ("en", "The interval is [2, 3).", "[2,3)", ("2", "3", "[2,3]")),
        ("en", "The answer is 3 fifths.", "3/5", ("3",)),
        ("en", "The answer is 2 and a half.", "2.5", ("2",)),
        ("en", "The answer is ∞.", "\\infty", ("-\\infty",)),
        ("en", "The answer is $–3$.", "-3", ("3",)),
        ("en", "The answer is $30^\\circ$, as required.", "30", ("3",)),
        ("en", "The answer is $0.\\overline{3}$, as required.", "1/3", ("3", "0.3")),
        ("en", "The answer is +/-3.", "\\pm 3", ("3", "-3")),
        ("en", "\\boxed{x = +-3}", "\\pm 3", ("3", "-3")),
        ("vi", "Tọa độ điểm là (2;3).", "(2;3)", ("2", "3", "(3;2)")),
        ("vi", "\\boxed{A(2;3)}", "(2;3)", ("(3;2)",)),
        ("vi", "\\boxed{S = \\{1; 2\\}}", "\\{1,2\\}", ("\\{1,3\\}", "1.2")),
        ("de", "\\boxed{(2|5)}", "(2;5)", ("(5;2)", "2")),
        ("zh", "答案是x=1或x=2。", "1;2", ("1", "2")),
        ("zh", "答案是1和2。", "1;2", ("1", "2")),
        ("zh", "答案是2∶3。", "2:3", ("2", "3")),
    ],
)
def test_a_notation_states_its_value_and_none_of_its_parts(
    problem, language: str, response: str, value: str, parts: tuple[str, ...]
) -> None:
    assert [1.0] + [0.0] * len(parts) == [
        final_answer.verify(
            problem("final_answer", {"value": gold}).model_copy(update={"language": language}),
            response,
        ).score
        for gold in (value, *parts)
    ]


@for_each(
    ("gold", "written"),
    [
        (r"\tan^{-1} 2", r"\cot 2"),
        (r"0.\overline{3}", "0.3"),
        ("0.3", r"0.\overline{3}"),
        (r"0.1\overline{6}", "0.16"),
        (r"\overline{z}", "z"),
        (r"2\overline{z}", "2z"),
        (r"P(\overline{A})", "P(A)"),
        ("N", "-N"),
        ("N", "N!"),
        ("n!", "N"),
        ("12:30", "2:5"),
        ("1:4", "4:1"),
        (r"\frac{1}{3000000}", "0.000000"),
        ("5.12", "5,12"),
        ("1,1,2", "1,2"),
        (r"\{x \mid -1 < x < 1\}", "(-1, 2)"),
        (r"\{x \in \mathbb{Z} : 1 < x < 3\}", "(1, 3)"),
        (r"\frac{\pi}{6}", "30"),
        (r"0.5\%", r"\frac12"),
        ("Minimum: 1, Maximum: 3", "Minimum: 3, Maximum: 1"),
        ("n=3k", "3"),
        ("2n+1", r"2n \text{ for all } n \ge 1"),
        (r"2n \text{ for all } n \ge 1", r"2n \text{ for all } n \ge 2"),
        ("x=1", r"x=1, y\in\mathbb{R}"),
        ("N", "n"),
        ("n", "N"),
        (r"\text{A}", "a"),
        ("0.3", r"0.3 \text{ repeating}"),
        ("0.27", "0.27 repeating"),
        (r"0.\overline{142857}", "0.142857"),
        (r"\{\emptyset\}", r"\emptyset"),
        ("(0,1)", "]0,1]"),
        ("1:4", r"4 \text{ to } 1"),
        ("(1,2),(-1,-2)", r"(\pm 1, \pm 2)"),
        ("xy = 6", r"\frac{5}{x}"),
        ("y^2 = x", r"\sqrt{x}"),
        ("y + 1 = -(2x-1)^2", "-4x^2+4x-1"),
    ],
)
def test_two_values_in_like_notations(gold: str, written: str) -> None:
    assert 1.0 not in scores(gold, f"So it is \\boxed{{{written}}}.")


def test_a_ratio_is_no_time_where_the_problem_asks_for_one() -> None:
    assert [1.0, 1.0] == scores("12:30", r"\boxed{2:5}", "What is the ratio of boys to girls?")


QUALIFIED = [
    ("en", r"2n+1 \text{ for } n \ge 1", True),
    ("en", r"2n+1, n \text{ is an integer}", True),
    ("en", r"2n+1 \text{ if } n \text{ is even}", False),
    ("id", r"2n+1 \text{ untuk semua } n \ge 1", True),
    ("ms", r"2n+1 \text{ bagi setiap } n \ge 1", True),
    ("vi", r"2n+1 \text{ với mọi } n \ge 1", True),
    ("vi", r"2n+1 \text{ (n là số nguyên)}", True),
    ("th", r"2n+1 \text{ สำหรับทุก } n \ge 1", True),
    ("zh", r"2n+1，其中 n\in\mathbb{N}", True),
    ("zh-TW", "2n+1, n為整數", True),
    ("fil", r"2n+1 \text{ para sa lahat ng } n \ge 1", True),
    ("pt-BR", r"2n+1 \text{ para todo } n \ge 1", True),
    ("pt-BR", r"2n \text{ para todo } n \ge 1", False),
    ("vi", r"2n \text{ với mọi } n \ge 1", False),
]


@for_each(("language", "written", "right"), QUALIFIED)
def test_what_holds_for_every_unknown_is_no_second_answer(
    language: str, written: str, right: bool
) -> None:
    assert right is bool(same(parse("2n+1", language), parse(written, language)))


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("id", r"0{,}\overline{3}"),
        ("vi", "0,(3)"),
        ("pt-BR", "0,333..."),
        ("zh", r"0.\overset{\cdot}{3}"),
    ],
)
def test_a_repeating_decimal_has_the_sign_of_its_language(language: str, written: str) -> None:
    assert same(parse("1/3", language), parse(written, language)) is True


def test_members_of_a_bracket_may_repeat() -> None:
    assert same(parse(r"(0.\overline{3},0.\overline{6})"), parse("(1/3, 2/3)")) is True
    assert same(parse(r"[0,0.\overline{3}]"), parse("[0, 1/3]")) is True


def test_k_is_an_unknown_in_vietnamese_formulas_and_a_thousand_in_prices() -> None:
    for written, value in (("n = 3k", "3k"), (r"x = 2k\pi", r"2\pi k"), ("12k+1", "1+12k")):
        assert same(parse(written, "vi"), parse(value, "en")) is True
    assert same(parse("50000", "vi"), parse("50k", "vi")) is True
    assert same(parse("5000", "vi"), parse("5k đồng", "vi")) is True


def test_numbers_of_things_come_in_the_order_of_the_problem() -> None:
    asked = "She bought stuffed goats and toy helicopters. How many of each?"
    for written, right in [
        (r"7 \text{ goats and } 4 \text{ helicopters}", 1.0),
        (r"4 \text{ helicopters}, 7 \text{ goats}", 1.0),
        (r"4 \text{ goats and } 7 \text{ helicopters}", 0.0),
    ]:
        assert [right] * 2 == scores("7,4", f"\\boxed{{{written}}}", asked)


def test_an_order_is_read_as_the_problem_asks_for_it() -> None:
    asked = "The order of $a$, $b$ and $c$ from smallest to largest is"

    assert [1.0, 1.0] == scores("b < c < a", r"\boxed{b, c, a}", asked)
    assert [0.0, 0.0] == scores("b < c < a", r"\boxed{a, c, b}", asked)
    assert [0.0, 0.0] == scores("b < c < a", r"\boxed{b, c, a}", "Which are they?")


def test_a_letter_that_the_problem_sets_to_a_number_is_free() -> None:
    assert [1.0, 1.0] == scores(r"x = k\pi", r"\boxed{n\pi}", "If $k=-0.7$, solve it.")


def test_a_letter_that_the_problem_sets_to_two_numbers_is_its_own() -> None:
    asked = "It is 3 if $n = 1$, and 5 if $n = 2$, and so on."

    assert [1.0, 1.0] == scores("2n + 1", r"\boxed{2n + 1}", asked)
    assert [0.0, 0.0] == scores("2n + 1", r"\boxed{2m + 1}", asked)


@for_each("letter", list("jklmt"))
def test_a_gold_that_is_one_letter_is_that_letter(letter: str) -> None:
    asked = "Which power of $x$ is a sum of its first terms if $n=1$, say?"

    assert [1.0, 1.0] == scores("n", r"\boxed{n}", asked)
    assert [0.0, 0.0] == scores("n", rf"\boxed{{{letter}}}", asked)


def test_the_parameter_of_a_named_point_has_any_letter() -> None:
    gold = "(p, q) = (3x, 5 - x)"

    assert [1.0, 1.0] == scores(gold, r"\boxed{(3t, 5 - t)}", "Find the pairs $(p, q)$.")
    assert [0.0, 0.0] == scores(gold, r"\boxed{(3t, 5 + t)}", "Find the pairs $(p, q)$.")
    assert [0.0, 0.0] == scores(gold, r"\boxed{(3t, 5 - t)}", "Find $(p, q)$ from $x$.")


def test_a_parameter_has_any_letter_that_the_problem_does_not_use() -> None:
    assert [1.0, 1.0] == scores(r"x = k\pi", r"\boxed{n\pi}", "Solve $\\sin x = 0$.")
    assert [0.0, 0.0] == scores(r"x = k\pi", r"\boxed{n\pi}", "Solve it for $n$ and $k$.")


@for_each(
    ("gold", "response"),
    [
        ("24", r"There are $4!=\boxed{24}$ ways."),
        ("(1,2)", r"so $x \in \boxed{(1,2)}$ in interval notation."),
        ("-15", r"\[=\boxed{-15}x^3\]"),
        ("4", r"we have $x \ge \boxed{4}$, which holds at 2."),
        ("3", r"so it is $\equiv \boxed{3}$ modulo 7."),
        ("(9,11)", r"Thus $B$, or the point $\boxed{(9,11)}$, is not on the line."),
        ("1/6", r"The probability is one in six or $\boxed{\frac{1}{6}}$."),
        ("B", r"the answer is $\boxed{\text{(B)}} 3(1+r)^x = 7$."),
        ("25", r"\[=\boxed{25}\frac{\text{miles}}{\text{day}}.\]"),
    ],
)
def test_a_statement_about_a_box_leaves_the_box(gold: str, response: str) -> None:
    assert 1.0 == scores(gold, response)[0]


def test_the_value_in_the_problem_may_be_the_answer_and_work_may_not() -> None:
    question = r"If $a = \sqrt{3}$ or $a = 99 \times 99$, what is $a$?"

    assert [1.0, 1.0] == scores(r"a=\sqrt{3}", r"\boxed{\sqrt{3}}", question)
    assert [0.0, 0.0] == scores("9801", r"\boxed{99 \times 99}", question)


@pytest.mark.parametrize("response", [r"\boxed{4} or rather \boxed{5", r"We get \boxed{4"])
def test_what_is_cut_off_in_a_box_states_nothing(response: str) -> None:
    assert [0.0, 0.0] == scores("4", response)


def test_a_repeating_decimal_is_the_fraction_of_its_long_division() -> None:
    draw = random.Random(0)
    for _ in range(300):
        whole, once, period = draw.randrange(100), draw.choice(["", "0", "1", "05", "27"]), ""
        while not period.strip("9"):
            period = str(draw.randrange(1, 1000))
        # Of n digits d behind k digits: (whole.once d) - its start, over 10^k (10^n - 1).
        value = Fraction(f"{whole}.{once or 0}") + Fraction(
            int(period), 10 ** len(once) * (10 ** len(period) - 1)
        )
        answer = parse(f"{whole}.{once}\\overline{{{period}}}")

        assert same(parse(f"{value.numerator}/{value.denominator}"), answer)
        assert not same(parse(f"{whole}.{once}{period}"), answer)


VALUES = ["1/3", "0.3", r"0.\overline{3}", "3:1", "3", "N", "-N", r"\overline{N}", "12:30", "2:5"]
VALUES += [r"\tan^{-1} 2", r"\cot 2", r"\{1,2\}", r"\{1,3\}", "(1,3)", "[1,3]", "30", r"\pi"]


def test_a_comparison_has_no_direction() -> None:
    """But for a list and a tuple, of which the gold says whether order counts."""
    for a, b in itertools.combinations(map(parse, VALUES), 2):
        assert bool(same(a, b)) is bool(same(b, a)), (a.text, b.text)


ANGLE = "What is the measure of angle $ABC$?"
DEGREES = "Find the measure of the angle in degrees."
RADIANS = "Find the angle between the lines in radians."
CHANCE = "What is the probability that it rains?"
PERCENT = "What percentage of the students passed?"
EDGE = "Let $e$ be the length of an edge. Find the sum."


@for_each(
    ("question", "gold", "written", "right"),
    [
        (ANGLE, r"60^\circ", r"\frac{\pi}{3}", True),
        (ANGLE, "60", r"\frac{\pi}{3}", True),
        (ANGLE, r"\frac{\pi}{3}", "60", True),
        (ANGLE, "60", r"\frac{\pi}{6}", False),
        (DEGREES, "60", r"\frac{\pi}{3} \text{ radians}", True),
        (DEGREES, "60", r"\frac{\pi}{3}", False),
        (RADIANS, r"\frac{\pi}{3}", r"60^\circ", True),
        (RADIANS, r"\frac{\pi}{3}", "60", False),
        ("What is the area of the sector with an angle of 60 degrees?", r"\pi", "180", False),
        ("Berapa besar sudut ABC?", r"\frac{\pi}{2}", "90", True),
        (CHANCE, r"25\%", "0.25", True),
        (CHANCE, "0.25", r"25\%", True),
        (CHANCE, r"25\%", "25", False),
        (CHANCE, "0.25", "25", False),
        (PERCENT, "25", r"\frac14", True),
        (PERCENT, r"25\%", "25", True),
        (PERCENT, "25", "0.25", False),
        (PERCENT, "0.5", r"\frac12", True),
        (EDGE, "3e+2", "2+3e", True),
        (EDGE, "3e+2", "300", False),
        ("Evaluate the integral.", "2e+3", "3+2e", True),
        ("Evaluate the integral.", "3+2e", "2e+3", True),
        ("Simplify.", "2e - 3", "2e-3", True),
        ("What is the speed?", "3e+2", "300", True),
        ("Solve for $e$.", "1e-05", "0.00001", True),
        ("Find the vector.", "(1,2)", "[1,2]", True),
        ("Find the interval.", "(1,2)", "[1,2]", False),
    ],
)
def test_the_question_decides_between_two_readings_of_a_notation(
    question: str, gold: str, written: str, right: bool
) -> None:
    assert [float(right)] * 2 == scores(gold, f"It is \\boxed{{{written}}}.", question)


TWINS = [
    ("A = 1, B = 2", "A: 1, B: 2"),
    ("A: 1, B: 2", "B: 2, A: 1"),
    ("(a) 1; (b) 2", "1, 2"),
    ("(i) 3, (ii) 4", "3, 4"),
    (r"\text{Alice: } 3, \text{Bob: } 5", r"\text{Bob} = 5, \text{Alice} = 3"),
    ("(1,2)", "y=2, x=1"),
    (r"\sum_{k=1}^{n} k^2", r"\sum_{i=1}^{n} i^2"),
    ("0, \\pm 1", "-1, 0, 1"),
    (r"\pm 1, \pm 2", "1, -1, 2, -2"),
    (r"\{0, \pm 1\}", r"\{-1, 0, 1\}"),
    (r"(\pm 1, 2)", "(1,2), (-1,2)"),
    (r"\pm(1,2)", "(1,2), (-1,-2)"),
    (
        r"\pm\sqrt{3 \pm \sqrt{2}}",
        r"\sqrt{3+\sqrt2}, -\sqrt{3+\sqrt2}, \sqrt{3-\sqrt2}, -\sqrt{3-\sqrt2}",
    ),
    (r"x \equiv 3 \pmod 7", r"10 \pmod{7}"),
    (r"x \equiv 3 \pmod 7", r"x \equiv 3 \bmod 7"),
    (r"x \equiv 1, 3 \pmod 8", r"x \equiv 3, 9 \pmod 8"),
    (r"3 \pmod 7", "7k+3"),
    (r"10 \bmod 7", "3"),
    ("3", r"3 \pmod 7"),
    (r"\begin{pmatrix}1\\2\\3\end{pmatrix}", r"\hat{i}+2\hat{j}+3\hat{k}"),
    ("(2,-1)", r"2\mathbf{i} - \mathbf{j}"),
    ("(2,-1,0)", r"2\vec{i} - \vec{j}"),
    ("(1,2)", r"i + 2j"),
    (r"(t, t^2)", r"t\mathbf{i} + t^2\mathbf{j}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)^T"),
    ("(1,2)", r"\overrightarrow{AB} = (1,2)"),
]
LIKE = [
    ("A: 1, B: 2", "A: 2, B: 1"),
    ("(a) 1; (b) 2", "2, 1"),
    ("(1,2)", "y=1, x=2"),
    (r"(\pm 1, \pm 2)", "(1,2), (-1,-2)"),
    (r"\pm 2", "2"),
    (r"x \equiv 3 \pmod 7", r"x \equiv 3 \pmod 8"),
    (r"x \equiv 3 \pmod 7", r"x \equiv 4 \pmod 7"),
    ("3", r"10 \pmod 7"),
    (r"10 \bmod 7", "4"),
    ("(1,2,3)", r"\vec{i}+3\vec{j}+2\vec{k}"),
    ("(2,-1,1)", r"2\vec{i} - \vec{j}"),
    ("1 + 2i", "i + 2j"),
]


@for_each(("left", "right"), TWINS)
def test_labels_signs_classes_and_vectors_are_compared_by_value(left: str, right: str) -> None:
    assert (True, True) == (same(parse(left), parse(right)), same(parse(right), parse(left)))


@for_each(("left", "right"), LIKE)
def test_what_only_looks_alike_differs_from_both_sides(left: str, right: str) -> None:
    assert True not in (same(parse(left), parse(right)), same(parse(right), parse(left)))


@pytest.mark.parametrize("seed", range(3))
def test_residues_and_vectors_are_equal_exactly_if_their_numbers_are(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(10):
        modulus, residue, other = draw.randint(2, 40), draw.randint(-99, 99), draw.randint(-99, 99)
        left = parse(rf"x \equiv {residue} \pmod{{{modulus}}}")
        for right in (rf"{other} (mod {modulus})", f"{modulus}n + {other}"):
            expected = (residue - other) % modulus == 0
            assert same(left, parse(right)) is expected is same(parse(right), left)
        x, y = draw.randint(-2, 2), draw.randint(-2, 2)
        point, vector = parse(f"({x}, {y})"), parse(rf"{residue % 3}\mathbf{{i}} + 1\mathbf{{j}}")
        expected = (x, y) == (residue % 3, 1)
        assert same(point, vector) is expected is same(vector, point)


def test_signs_within_many_roots_are_not_multiplied_out() -> None:
    nested = r"\pm\sqrt{" * 40 + "1" + "}" * 40

    assert 1 == len(parse(nested).parts or [nested])
    assert same(parse("1"), parse(nested)) is not True
