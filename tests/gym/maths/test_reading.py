r"""One value, one gold: rounding, per cent, bases, named events."""

import json

import pytest

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.gym.maths import final_answer, rule_answer
from tasks.gym.maths.reading import AnswerForm
from tests.tables import for_each


def score(prompt: str, gold: str, response: str, language: str = "en") -> list[float | None]:
    problem = Problem(
        id="test/1",
        domain=Domain.MATHS,
        language=language,
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="final_answer",
        answer=json.dumps({"value": gold}),
        source="test",
        source_row="0",
    )
    return [verifier.verify(problem, response).score for verifier in (final_answer, rule_answer)]


@for_each(
    ("gold", "response", "right"),
    [
        ("2", r"\boxed{2 \approx 3}", False),
        ("3", r"\boxed{2 \approx 3}", False),
        ("2", r"\boxed{2 \simeq 3}", False),
        ("3", r"\boxed{2.4 \doteq 3}", False),
        ("3", "#### 2 ≈ 3", False),
        ("2", "#### 2 ≈ 3", False),
        ("2", r"The answer is $2 \approx 3$.", False),
        (r"\frac{7}{3}", r"\boxed{\frac{7}{3} \approx 2.33}", True),
        ("2.33", r"\boxed{\frac{7}{3} \approx 2.33}", True),
        ("2", r"\boxed{2 \cong 3}", False),
        ("3", r"\boxed{2 \thickapprox 3}", False),
        ("3", "\\boxed{2 \u2243 3}", False),
        ("3", r"So $2 \approx 3$ is the answer.", False),
        ("2", r"The answer is 2 \simeq 3.", False),
        (r"\frac{7}{3}", r"\boxed{\frac{7}{3} \approx 2.34}", False),
        (r"\frac{7}{3}", r"\boxed{\frac{7}{3} \approx 3}", False),
        ("2", r"\boxed{\frac{7}{3} \approx 2}", True),
        ("100", r"\boxed{149.5 \approx 100}", False),
        ("5", r"\boxed{5 \approx 5.0}", True),
        ("5", r"\boxed{\approx 5}", True),
        ("3.14", r"\boxed{x \approx 3.14}", True),
    ],
)
def test_what_follows_approx_must_be_the_rounding_of_what_stands_before(
    gold: str, response: str, right: bool
) -> None:
    assert [float(right)] * 2 == score("Find x.", gold, response)


@for_each(
    ("prompt", "gold", "response", "right"),
    [
        ("What percentage is left?", "50", r"\boxed{50\%}", True),
        ("What percentage is left?", "50", r"\boxed{50}", True),
        ("What percentage is left?", "50", r"\boxed{0.5}", False),
        ("What percentage is left?", "0.5", r"\boxed{0.5\%}", True),
        ("What percentage is left?", "0.5", r"\boxed{50\%}", False),
        ("What is left of a 20% share?", "50", r"\boxed{50\%}", False),
        ("What is left of a 20% share?", "0.5", r"\boxed{50\%}", True),
        ("What is left of a 20 percent share?", "0.5", r"\boxed{0.5\%}", False),
        ("What is left?", r"50\%", r"\boxed{50}", True),
        ("What is left?", r"50\%", r"\boxed{0.5}", True),
        ("What is left?", r"41.4\%", r"\boxed{\sqrt2 - 1}", True),
        ("What is left?", r"41.5\%", r"\boxed{\sqrt2 - 1}", False),
        ("What is left?", r"33.\overline{3}\%", r"\boxed{\frac13}", True),
        ("What is left of a 20% share?", r"50\%", r"\boxed{0.5}", False),
        ("What is left?", r"\frac{1}{2}", r"\boxed{50\%}", True),
        ("剩下百分之几?", "50", r"\boxed{50\%}", True),
    ],
)
def test_per_cent_has_one_reading_from_the_problem_or_else_from_the_gold(
    prompt: str, gold: str, response: str, right: bool
) -> None:
    assert [float(right)] * 2 == score(prompt, gold, response)


@for_each(
    ("prompt", "gold", "response", "right"),
    [
        ("What is 3 * 7?", "21", r"\boxed{21_7}", False),
        ("What is 3 * 5?", "15", r"\boxed{21_7}", True),
        ("Write 15 in base 7.", "21", r"\boxed{21_7}", True),
        ("Write 15 in base seven.", "21", r"\boxed{21_7}", True),
        ("Write 15 in base seven.", "21_7", r"\boxed{21}", True),
        ("Write 15 in base seven.", "21_7", r"\boxed{21_8}", False),
        ("Write $21_7$ in base 10.", "15", r"\boxed{15_{10}}", True),
        ("What is it?", "9", r"\boxed{9_7}", False),
    ],
)
def test_digits_in_a_base_are_their_value_unless_the_base_was_asked_for(
    prompt: str, gold: str, response: str, right: bool
) -> None:
    assert [float(right)] * 2 == score(prompt, gold, response)


@for_each(
    ("prompt", "gold", "answer", "right"),
    [
        ("How many eggs are there?", "12", "12 dozen", False),
        ("How many eggs are there?", "36", "3 dozen", True),
        ("How many eggs are there?", "36", "3 dozen eggs", True),
        ("How many dozen eggs are there?", "3", "3 dozen", True),
        ("How many dozens of eggs are there?", "3", "3 dozens", True),
        ("How many eggs are there?", "3 dozen", "3 dozen", True),
        ("How many eggs are there?", "3 dozen", "3", True),
    ],
)
def test_a_dozen_is_twelve_unless_the_problem_or_the_gold_counts_in_dozens(
    prompt: str, gold: str, answer: str, right: bool
) -> None:
    boxed = (rf"\boxed{{{answer}}}", rf"\boxed{{\text{{{answer}}}}}", f"Answer: {answer}")
    for response in boxed:
        assert [float(right)] * 2 == score(prompt, gold, response)
    assert float(right) == score(prompt, gold, f"So the answer is {answer}.")[0]
    number, _, words = answer.partition(" ")
    assert [float(right)] * 2 == score(prompt, gold, rf"$\boxed{{{number}}}$ {words}.")


def test_the_probability_of_another_event_is_no_answer() -> None:
    prompt = "X is a number of heads. Find $P(X=6)$."

    assert [1.0, 1.0] == score(prompt, "5/8", r"\boxed{P(X=6)=5/8}")
    assert [0.0, 0.0] == score(prompt, "5/8", r"\boxed{P(X=4)=5/8}")
    assert [0.0, 0.0] == score(prompt, "5/8", r"$P(X=4)=\boxed{5/8}$")
    assert [0.0, 0.0] == score(prompt, "5/8", r"The answer is $P(X=4)=5/8$.")
    assert [1.0, 1.0] == score(prompt, "5/8", r"$P(X=6)=\boxed{5/8}$")
    assert [1.0, 1.0] == score("Find $f(f(3))$.", "5", r"$f(f(3)) = f(9) = \boxed{5}$")
    assert [1.0, 1.0] == score("What is the probability?", "5/8", r"\boxed{P(X=4)=5/8}")
    assert [0.0, 0.0] == score("f(2)=1. Find f(3).", "5", r"\boxed{f(4)=5}")


def test_a_number_before_per_cent_is_not_a_question_for_per_cent() -> None:
    texts = ("a 20% discount", "10 percent of it", r"a $5\%$ solution", "20 per cent")

    assert [False] * 4 == [AnswerForm.of(text).percent for text in texts]
    assert AnswerForm.of("By what percent did it rise?").percent


@for_each(
    ("prompt", "gold", "response", "right"),
    [
        (r"What is $99\times 99$?", "9801", r"\boxed{99 \times 99}", False),
        (r"What is $99\times 99$?", "9801", r"\boxed{99 \times 99 = 9801}", True),
        (r"What is $99\times 99$?", "9801", r"\boxed{9801}", True),
        (r"Factor $x^2 - 1$.", "(x-1)(x+1)", r"\boxed{x^2-1}", False),
        (r"Factor $x^2 - 1$.", "(x-1)(x+1)", r"\boxed{(x+1)(x-1)}", True),
        (r"Simplify $\dfrac{\sqrt{8}}{2}$.", r"\sqrt{2}", r"\boxed{\frac{\sqrt{8}}{2}}", False),
        (r"Solve \[x^2+5x<6.\]", "(-6, 1)", r"\boxed{x^2 + 5x < 6}", False),
        ("Convert $3206_7$ to base 10.", "1133", r"\boxed{3206_7}", False),
        ("((-1 + 2) * (3 - 9)) =", "-6", "((-1 + 2) * (3 - 9)) =", False),
        (r"Is $2^{10}$ or $10^3$ larger?", "2^{10}", r"\boxed{2^{10}}", True),
        (r"Which is right, $x = 3$ or $x = 5$?", "3", r"\boxed{x = 3}", True),
        ("Is 3/4 more than 0.7?", r"\frac{3}{4}", r"\boxed{3/4}", True),
        ("Is (-1, 2) on it?", "(-1,2)", r"\boxed{(-1, 2)}", True),
    ],
)
def test_a_formula_of_the_problem_is_no_answer_unless_the_gold_is_written_so(
    prompt: str, gold: str, response: str, right: bool
) -> None:
    assert [float(right)] * 2 == score(prompt, gold, response)


@for_each(
    ("prompt", "gold", "response", "right"),
    [
        ("Find the angle in degrees.", r"35^\circ", r"\boxed{35\text{ radians}}", False),
        ("Find angle ABC.", r"35^\circ", r"\boxed{35\text{ radians}}", False),
        ("Find the angle in degrees.", "35", r"\boxed{35\text{ radians}}", False),
        ("Find angle ABC.", r"60^\circ", r"\boxed{\frac{\pi}{3}\text{ radians}}", True),
        ("Find the angle in radians.", "2", r"\boxed{2\text{ radians}}", True),
        ("Find the angle in degrees.", r"35^\circ", r"\boxed{35}", True),
    ],
)
def test_so_many_radians_are_not_as_many_degrees(
    prompt: str, gold: str, response: str, right: bool
) -> None:
    assert [float(right)] * 2 == score(prompt, gold, response)


@pytest.mark.parametrize(
    ("gold", "response", "right"),
    [
        ("[-77,77]", r"\boxed{(-77, 77)}", False),
        ("(-77,77)", r"\boxed{[-77, 77]}", False),
        ("[-77,77]", r"\boxed{[-77, 77]}", True),
    ],
)
def test_the_possible_values_of_a_product_of_vectors_are_an_interval(
    gold: str, response: str, right: bool
) -> None:
    prompt = r"For vectors $\mathbf{a}$, $\mathbf{b}$ find all possible values of $a \cdot b$."

    assert [float(right)] * 2 == score(prompt, gold, response)
