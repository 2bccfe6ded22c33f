r"""Golds that leave open whether an answer is right, and products that do not commute."""

import json

from data_schemas.rows import Domain, Message, Problem, Role
from data_schemas.verdicts import Verdict
from tasks.gym.maths import final_answer
from tasks.gym.maths.described import points_of
from tasks.gym.maths.undecided import CONDITIONS, IDENTITY, SENTENCE, THINGS
from tests.tables import for_each

SIGNS = r"Insert signs in $a \; a \; a \; a = (a+1)(a-1)$ so that it holds for all $a$."
FRUIT = "There are apples, pears and plums in a box. How many of each?"
MATRICES = r"Let $A$, $B$ and $P$ be invertible matrices. Simplify."


def verdict(gold: str, answer: str, question: str = "Find it.") -> Verdict:
    return verdict_on(f"\\boxed{{{answer}}}", gold, question)


def verdict_on(response: str, gold: str, question: str = "Find it.") -> Verdict:
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
    return final_answer.verify(problem, response)


@for_each(
    ("gold", "right", "question", "why"),
    [
        ("a * a - a : a = (a+1)(a-1)", r"a \cdot a - a \div a", SIGNS, IDENTITY),
        ("x^2 - 1 = (x - 1)(x + 1)", "(x - 1)(1 + x)", "Write it as a product.", IDENTITY),
        (
            r"4 \text{ apples}, 6 \text{ quinces}, 2 \text{ plums}",
            r"4 \text{ apples}, 6 \text{ pears}, 2 \text{ plums}",
            FRUIT,
            THINGS,
        ),
        (r"6 \text{ quinces}", r"6 \text{ pears}", FRUIT, THINGS),
        (
            "$f(x)=a x+b$, where $b$ is an arbitrary integer and $a$ a positive one",
            r"f(n) = cn + d \text{ where } c \text{ is positive and } d \text{ any integer}",
            "Find all such $f$ of $a$ and $b$.",
            CONDITIONS,
        ),
        ("Petya will receive the last token.", r"\text{Petya}", "Who?", SENTENCE),
        (r"\text{Any odd number of participants}", r"\text{odd}", "How many?", SENTENCE),
    ],
)
def test_a_gold_that_leaves_an_answer_open_is_an_abstention(
    gold: str, right: str, question: str, why: str
) -> None:
    result = verdict(gold, right, question)

    assert "undecided" == result.reason
    assert why in result.detail


@for_each(
    ("gold", "wrong", "question"),
    [
        ("a * a - a : a = (a+1)(a-1)", r"a \cdot a + a \div a", SIGNS),
        ("a * a - a : a = (a+1)(a-1)", "5", SIGNS),
        ("xy = 6", "x + y", "Give the curve."),
        (
            r"4 \text{ apples}, 6 \text{ quinces}, 2 \text{ plums}",
            r"4 \text{ apples}, 5 \text{ pears}, 3 \text{ plums}",
            FRUIT,
        ),
        (r"6 \text{ pears}", r"6 \text{ plums}", FRUIT),
        (r"6 \text{ hours}", r"6 \text{ minutes}", "How many minutes?"),
        (
            "$f(x)=a x+b$, where $b$ is an arbitrary integer and $a$ a positive one",
            r"f(n) = cn^2 + d \text{ where } c \text{ is positive and } d \text{ any integer}",
            "Find all such $f$.",
        ),
        ("New York City", r"\text{Boston}", "Where?"),
        ("odd", "even", "Which?"),
    ],
)
def test_another_value_is_wrong_all_the_same(gold: str, wrong: str, question: str) -> None:
    assert 0.0 == verdict(gold, wrong, question).score


@for_each(
    ("gold", "answer", "score"),
    [
        ("AB", "BA", 0.0),
        ("A^{-1}B", "BA^{-1}", 0.0),
        ("B^{-1}A^{-1}", "A^{-1}B^{-1}", 0.0),
        ("A^2+2AB+B^2", "(A+B)^2", 0.0),
        ("(AB)^T", "A^TB^T", 0.0),
        ("X=A^{-1}B", "X=BA^{-1}", 0.0),
        ("B^{-1}A^{-1}", "(AB)^{-1}", 1.0),
        ("(AB)^T", "B^TA^T", 1.0),
        ("A^2+AB+BA+B^2", "(A+B)^2", 1.0),
        ("A^2-I", "(A-I)(A+I)", 1.0),
        (r"\frac{1}{2}(A+A^T)", r"\frac{A^T+A}{2}", 1.0),
        ("I", "AA^{-1}", 1.0),
        ("2A", "A+A", 1.0),
        ("kA", "Ak", 1.0),
        ("A^{-1}", r"\frac{1}{A}", None),
        ("A^{-1}B", r"\frac{B}{A}", None),
        (r"\{AB, BA\}", r"\{BA, AB\}", None),
        ("6", r"3 \times 2", 1.0),
        ("ABC", "A(BC)", 1.0),
        ("(AB)C", "ABC", 1.0),
        ("ABC", "(AB)C", 1.0),
        ("X=ABC", "X=A(BC)", 1.0),
        ("ABC", "A(CB)", 0.0),
        ("A(BC)", "ACB", 0.0),
        ("ABC", "BCA", 0.0),
        ("X=AB", "Y=(A)B", 0.0),
        ("YES", "yes", 1.0),
        ("AB=BA", "BA=AB", 1.0),
        ("AB=I", "I=AB", 1.0),
        ("A^2=A", "A=A^2", 1.0),
        ("AB=BA", "AB-BA=0", 1.0),
        ("A+B=C", "A=C-B", 1.0),
        ("AB=BA", "AB=-BA", 0.0),
        ("AB=BA", "AB=AB", 0.0),
        ("AB=BA", "ABA=BA", None),
        ("AB=C", "BA=C", 0.0),
        ("A^2=A", "A^2=I", 0.0),
        ("A(BC)=(AB)C", "(BA)C=B(AC)", None),
        ("x+y=1", "2x+2y=2", 1.0),
    ],
)
def test_products_of_matrices_do_not_commute(gold: str, answer: str, score: float | None) -> None:
    assert score == verdict(gold, answer, MATRICES).score


def test_letters_are_numbers_where_no_matrix_is_named() -> None:
    assert 1.0 == verdict("AB", "BA", "The legs are A and B. Twice the area?").score
    assert 1.0 == verdict("A^{-1}", r"\frac{1}{A}").score


def test_a_transpose_is_another_matrix_and_a_column_a_point() -> None:
    assert 0.0 == verdict("(AB)^T", "(AB)", MATRICES).score
    assert 1.0 == verdict("(1, 2)", "(1, 2)^T").score


@for_each(
    ("text", "points"),
    [
        (r"(x, y) \text{ with each } x, y \in \{1, -1\} \text{ and an even number of } -1's",
         "(1,1), (-1,-1)"),
        (r"(\pm 1, \pm 2) \text{ with exactly one minus sign}", "(1,-2), (-1,2)"),
        (r"(x, y) \text{ where } x, y \in \{0, 1\} \text{ and at most one } 1",
         "(0,0), (0,1), (1,0)"),
        (r"(x, y) \text{ where } x \in \{0, 1\}", ""),
        (r"(x, y) \text{ where } x, y \in \{0, 1\} \text{ and } x < y", ""),
        (r"(x, y) \text{ where } x, y \in \{0, 1\} \text{ and a prime number of } 1's", ""),
    ],
)  # fmt: skip
def test_points_that_are_described_are_written_out(text: str, points: str) -> None:
    assert points == points_of(text)


def test_a_described_set_is_compared_with_its_points_from_both_sides() -> None:
    listed = "(1,1,1), (1,-1,-1), (-1,1,-1), (-1,-1,1)"
    even = r"(x,y,z) \text{ with each } x,y,z \in \{1,-1\} \text{ and an even number of } -1's"

    assert 1.0 == verdict(listed, even).score
    assert 1.0 == verdict(even, listed).score
    assert 0.0 == verdict(listed, even.replace("even", "odd")).score
    assert 0.0 == verdict(listed, r"(x,y,z) \text{ with each } x,y,z \in \{1,-1\}").score


@for_each(
    ("gold", "answer", "score"),
    [
        ("March 14, 2024", "3/14/2024", 1.0),
        ("March 14, 2024", "14.03.24", 1.0),
        ("March 3, 2024", "3/3/2024", 1.0),
        ("March 4, 2024", "3/4/2024", None),
        ("2024-03-04", "04/03/2024", None),
        ("March 14, 2024", "5/14/2024", 0.0),
        ("March 14, 2024", "3/14/2023", 0.0),
        ("March 14, 2024", "14/14/2024", 0.0),
        ("3/8", "3/4/2", 1.0),
    ],
)
def test_a_date_in_digits_is_read_beside_a_gold_that_is_a_date(
    gold: str, answer: str, score: float | None
) -> None:
    assert score == verdict(gold, answer).score


@for_each(
    ("gold", "answer", "question", "score"),
    [
        ("xy = 6", "6", "Give an equation of the curve.", None),
        ("xy = 6", "6", "If $x + y = 5$ and $x^2 + y^2 = 13$, find $xy$.", 1.0),
        ("xy = 6", "6", "Find the product of $x$ and $y$.", 1.0),
        ("xy = 6", "7", "Give an equation of the curve.", 0.0),
        ("xy = 6", r"\frac{6}{x}", "Give an equation of the curve.", 1.0),
        ("AB = 6", "6", "How long is the segment?", 1.0),
        ("x = 6", "6", "Solve.", 1.0),
    ],
)
def test_a_product_of_unknowns_is_a_name_only_where_the_problem_asks_for_it(
    gold: str, answer: str, question: str, score: float | None
) -> None:
    assert score == verdict(gold, answer, question).score


@for_each(
    ("gold", "answer", "question", "score"),
    [
        ("1500", "1.5k", "How many?", 1.0),
        ("1500", r"\$1.5k", "How much?", 1.0),
        ("50000", "50K followers", "How many?", 1.0),
        ("1.5", "1.5k", "How many?", 0.0),
        ("300", "300K", "What is the temperature in kelvin?", 1.0),
        ("300000", "300K", "What is the temperature in kelvin?", 0.0),
        ("1500000", r"\$1.5M", "How much?", 1.0),
        ("1500000", "1.5M people", "How many?", 1.0),
        ("1.5", "1.5M people", "How many?", 0.0),
        ("1.5", r"\$1.5M", "How much?", 0.0),
        ("432", "3 gross", "How many?", 1.0),
        ("3", "3 gross", "How many gross are there?", 1.0),
        ("500", r"\$500 gross", "How much?", 1.0),
        ("3", "3 lusin", "Berapa lusin telur?", 1.0),
        ("1500", "1.5k", "What is $f(k)$?", 0.0),
        ("3k", "3k", "What is it?", 1.0),
        ("36", "three dozen eggs", "How many?", 1.0),
        ("6", "half a dozen", "How many?", 1.0),
        ("12", "a dozen", "How many?", 1.0),
        ("3", "three dozen eggs", "How many?", 0.0),
        ("30", "three dozen eggs", "How many?", 0.0),
        ("1/12", r"0.0833\ldots", "How much?", 1.0),
        ("1/3", "0.33...", "How much?", 1.0),
        ("0.33", "0.33...", "How much?", 0.0),
        ("1/3", "0.34...", "How much?", 0.0),
    ],
)
def test_thousands_dozens_and_decimals_that_go_on(
    gold: str, answer: str, question: str, score: float
) -> None:
    assert score == verdict(gold, answer, question).score


@for_each(
    ("gold", "answer", "question", "score"),
    [
        ("3:5", "6:10", "Find it.", 1.0),
        ("3:5", "6:11", "Find it.", 0.0),
        ("3:5", "10:06", "Find it.", 0.0),
        ("12:30", "2:5", "Find it.", 0.0),
        ("6:10", "3:5", "Find the ratio.", 1.0),
        ("12:30", "6:15", "Find it.", 0.0),
        ("12:24", "1:2", "What time is it?", 0.0),
    ],
)
def test_beside_what_can_only_be_a_ratio_hours_and_minutes_are_none(
    gold: str, answer: str, question: str, score: float
) -> None:
    assert score == verdict(gold, answer, question).score


@for_each(
    ("gold", "answer", "score"),
    [
        (r"\sqrt{10}", "3.1622...", None),
        (r"\sqrt{10}", r"x = 3.1622\ldots", None),
        (r"\sqrt{10}", r"\sqrt{10} = 3.1622\ldots", None),
        (r"-\sqrt{10}", r"-3.16227\dots", None),
        ("1/7", "0.1428...", None),
        (r"\sqrt{10}", "3.1623...", 0.0),
        (r"\sqrt{10}", "3.1632...", 0.0),
        (r"\sqrt{10}", "3.16...", 0.0),
        (r"\sqrt{10}", "3.1622", 0.0),
        (r"\sqrt{10}", "-3.1622...", 0.0),
        (r"\sqrt{10}", r"\sqrt{11} = 3.1622\ldots", 0.0),
        ("0.1428", "0.1428...", 1.0),
        ("1/3", "0.3333...", 1.0),
    ],
)
def test_the_first_digits_of_an_endless_gold_are_left_open(
    gold: str, answer: str, score: float | None
) -> None:
    assert score == verdict(gold, answer).score


@for_each(
    ("gold", "answer", "score"),
    [
        ("n=3k", r"n=3k \text{ with } k \in \mathbb{N}_0", 1.0),
        ("n=3k", r"n=3k+1 \text{ with } k \in \mathbb{N}_0", 0.0),
        ("x>2", r"x>2, x \in \mathbb{R}", 1.0),
        (r"x>2, x \in \mathbb{R}", "x>2", 1.0),
        (r"x \ne 2", r"x \ne 2, x \in \mathbb{R}", 1.0),
        ("x>2", r"x>3, x \in \mathbb{R}", 0.0),
        ("x>2", r"x>2, x \in \mathbb{Z}", 0.0),
        ("x>-2", r"x>-2, x \in \mathbb{R}^+", 0.0),
        ("x>2", r"x>2, y \in \mathbb{R}", 0.0),
        ("x>2", "y>3, x>2", 0.0),
        ("x>2, y>3", "y>3, x>2", 1.0),
        ("a_n=2^n", r"a_n = 2^n \; (n = 0,1,2,\dots)", 1.0),
        ("a_n=2^n", r"a_n = 2^{n+1} \; (n = 0,1,2,\dots)", 0.0),
        ("a_n=2^n", r"a_n = 2^n \; (m = 0,1,2,\dots)", 0.0),
        ("2^n", "2^n (n = 3)", 0.0),
        ("c", r"c \text{ is any constant}", 1.0),
        ("f(x)=c", r"f(x)=c \text{ is any constant}", 1.0),
        ("f(x)=cx", r"f(x)=cx, c \text{ is any constant}", 1.0),
        (r"kx, k \in \mathbb{Z}", r"kx, k \in \mathbb{N}", 1.0),
        (r"kx, k \in \mathbb{Z}", r"kx, k \in \mathbb{R}", 0.0),
        ("c", r"2c \text{ is any constant}", 0.0),
        ("c", r"c \text{ is no constant}", 0.0),
        ("5", r"c \text{ is any constant}", 0.0),
    ],
)
def test_what_is_said_of_an_unknown_takes_nothing_from_the_answer(
    gold: str, answer: str, score: float
) -> None:
    assert score == verdict(gold, answer).score


@for_each(
    ("response", "gold", "score"),
    [
        ("The answer is 5!", "5", None),
        ("The answer is -5!", "-5", None),
        ("Answer: 5!", "120", 1.0),
        ("Answer: 5!", "24", 0.0),
        ("\\boxed{5!}", "5", 0.0),
    ],
)
def test_a_factorial_that_may_be_the_end_of_its_sentence_is_an_abstention(
    response: str, gold: str, score: float | None
) -> None:
    assert score == verdict_on(response, gold).score


@for_each(
    ("response", "gold", "score"),
    [
        ("The Titanic sank on April 15, 1912.", "1912", None),
        ("The Titanic sank on April 15, 1912.", "1913", 0.0),
        ("The Titanic sank on April 15, 1912.", "15", 0.0),
        ("The Titanic sank in April 1912.", "1912", 1.0),
        ("The Titanic sank in 1912.", "April 15, 1912", 0.0),
    ],
)
def test_a_date_of_which_the_gold_is_the_year_is_an_abstention(
    response: str, gold: str, score: float | None
) -> None:
    assert score == verdict_on(response, gold).score


@for_each(
    ("response", "gold", "question", "score"),
    [
        ("The answer is 3 -> 5.", "3", "?", None),
        ("The answer is 3 → 5.", "5", "?", None),
        ("The answer is 3 → 5.", "4", "?", 0.0),
        ("\\boxed{3 \\to 5}", "3", "?", None),
        ("The answer is 3∠30°.", "3", "?", None),
        ("\\boxed{3 | 5}", "3", "?", None),
        ("\\boxed{3 | 5}", "8", "?", 0.0),
        ("\\boxed{1 | 2 | 3 | 4}", "3", "?", 0.0),
        ("The answer is 3∥5.", "3", "?", None),
        ("\\boxed{3 x 2}", "6", "?", 1.0),
        ("\\boxed{3x2}", "6", "What is $x$?", 0.0),
        ("\\boxed{0x10}", "0", "?", 0.0),
        ("Hasilnya adalah 3 kg 200 g.", "3", "?", 0.0),
        ("Jawabannya adalah 3 m dan 20 cm.", "3", "?", 0.0),
        ("Jawabannya adalah 3 kg beras.", "3", "?", 1.0),
        ("Thus we get\n3 at most", "3", "?", 0.0),
        ("So it is\n3+", "3", "?", None),
        ("The answer is 3 + y apples.", "3", "?", 0.0),
        ("A resposta é 3 • y.", "3", "?", 0.0),
        ("The answer is 3 R 2.", "3", "?", None),
        ("The answer is 3 R 2.", "4", "?", 0.0),
        ("The answer is $7m$.", "7", "?", None),
        ("\\boxed{$2g$}", "2", "?", None),
        ("\\boxed{$2g$}", "3", "?", 0.0),
        ("The answer is $7m$.", "7", "A rope of 12 m loses 5 m. How long is it?", 1.0),
        ("The answer is $7m$.", "7", "A rope of 12 metres loses 5. How long is it?", 1.0),
        ("\\boxed{7m}", "7", "How long is it?", 1.0),
        ("So, 5 → the answer is 5.", "5", "?", 1.0),
        ("| Total | 5 |", "5", "?", 1.0),
        ("The answer is **5** apples.", "5", "?", 1.0),
        ("The answer is 5 - a nice number.", "5", "?", 1.0),
    ],
)
def test_a_number_beside_a_sign_that_is_not_read_is_an_abstention(
    response: str, gold: str, question: str, score: float | None
) -> None:
    assert score == verdict_on(response, gold, question).score
