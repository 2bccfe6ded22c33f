r"""What stands beside a box is applied or withdraws it; one value has many spellings."""

import json

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.gym.maths import final_answer, rule_answer
from tests.tables import for_each


def scores(gold: str, response: str, **more: object) -> list[float | None]:
    problem = Problem(
        id="test/1",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="Find it."),),
        verifier="final_answer",
        answer=json.dumps({"value": gold, **more}),
        source="test",
        source_row="0",
    )
    return [verifier.verify(problem, response).score for verifier in (final_answer, rule_answer)]


@for_each(
    "response",
    [
        r"$-\boxed{5}$",
        r"-\boxed{5}",
        r"-$\boxed{5}$",
        r"$\boxed{5}^2$",
        r"\boxed{5}^2",
        r"$\frac{1}{\boxed{5}}$",
        r"\frac{1}{\boxed{5}}",
        r"$\sqrt[3]{\boxed{5}}$",
        r"$\ln\boxed{5}$",
        r"$2^{\boxed{5}}$",
        r"$\boxed{5}!$",
        r"$\boxed{5} \pm 1$",
        r"\boxed{5} \pm 1",
        r"$\boxed{5}\frac{1}{2}$",
        r"\boxed{5}0",
        r"$1\boxed{5}$",
        r"\boxed{5} million",
        r"$\boxed{5}$ million",
        r"$\boxed{5} \text{ million}$",
        r"\boxed{5}k",
        r"\boxed{5} dozen",
        r"\boxed{5}%",
        r"\boxed{5} percent",
        r"minus \boxed{5}",
        r"negative $\boxed{5}$",
        r"twice \boxed{5}",
        r"half of $\boxed{5}$",
        r"a third of $\boxed{5}$",
        r"the reciprocal of $\boxed{5}$",
        r"the square root of $\boxed{5}$",
        r"one more than $\boxed{5}$",
        r"less than \boxed{5}",
        r"$\boxed{5}$ squared",
        r"$\boxed{5}$ divided by two",
        r"$\boxed{5}$ plus 1",
        r"$[\boxed{5}, 7]$",
        r"$(\boxed{5}, \infty)$",
        r"\boxed{5} is not the answer.",
        r"$\boxed{5}$ is the wrong answer.",
        r"$\boxed{5}$ is only half of the answer.",
        r"$\boxed{5}$? No.",
        r"The answer is not $\boxed{5}$.",
        r"It is false that the answer is $\boxed{5}$.",
        r"Suppose the answer is \boxed{5}.",
        r"If the answer were \boxed{5}, then 1 = 2.",
        r"Had we added, the answer would be \boxed{5}.",
        r"\boxed{5} or 6",
        r"6 or $\boxed{5}$",
    ],
)
def test_what_surrounds_a_box_is_applied_or_the_box_is_refused(response: str) -> None:
    assert [0.0, 0.0] == scores("5", response)


@for_each(
    ("gold", "response"),
    [
        ("-5", r"-\boxed{5}"),
        ("25", r"$\boxed{5}^2$"),
        ("1/5", r"$\frac{1}{\boxed{5}}$"),
        ("5000000", r"\boxed{5} million"),
        ("5000", r"\boxed{5}k"),
        ("1/20", r"\boxed{5} percent"),
        ("5", r"- $\boxed{5}$"),
        ("7", r"No value works except \boxed{7}."),
        ("7", r"No value works except $\boxed{7}$."),
        ("7", r"Hence $\sin x \cos y = \boxed{7}$."),
        ("7", r"Note that $\sin 30 = 0.5$, and by $\sin$ \boxed{7}"),
        ("5", r"Neither 3 nor 4 works, so $\boxed{5}$."),
        ("5", r"Since $x \neq 0$ or $x \ne 1$ we get \boxed{5}"),
        ("5", r"We get $10/2$ or $\boxed{5}$"),
        ("5", r"We need at least $\boxed{5}$ of them."),
        ("5", r"There is a total of \boxed{5} ways; the units digit of it is not asked for."),
        ("5", r"She has \boxed{5} more than Bob."),
        ("5", r"Mr. Smith has \boxed{5}."),
        ("5", r"If $x = 1$, the answer is \boxed{5}."),
    ],
)
def test_words_that_change_nothing_leave_the_box(gold: str, response: str) -> None:
    assert [1.0, 1.0] == scores(gold, response)


@for_each(
    ("gold", "written"),
    [
        ("48", "48g"),
        ("48", r"48\text{g}"),
        ("5", r"\color{blue}{5}"),
        ("5", r"\color{blue} 5"),
        ("5", r"{\color{blue} 5}"),
        ("5", r"\textcolor{blue}{5}"),
        ("5", r"\color[rgb]{0,0,1}{5}"),
        ("5", r"\color{#00f}{5}"),
        ("5", r"\bbox[yellow]{5}"),
        ("5", r"\underline{5}"),
        ("5", r"\Large{5}"),
        ("5", r"\large 5"),
        ("11:30", "11:30"),
        ("11:30", "{11:30}"),
        ("11:30", "11{:}30"),
        ("11:30", r"\text{11:30}"),
        ("11:30", r"11:30 \text{ a.m.}"),
        ("11:30 a.m.", r"11:30\text{ AM}"),
        ("11{:}30", "11:30"),
        ("5/6", "5\u20446"),
        ("5/6", "5\u22156"),
        ("5\u20446", r"\frac56"),
        ("17/6", "2 5\u20446"),
        ("5/6", r"\nicefrac{5}{6}"),
        ("5/6", r"\sfrac{5}{6}"),
        ("5/6", "^5/_6"),
        ("15", "(21)_7"),
    ],
)
def test_spellings_of_one_value(gold: str, written: str) -> None:
    assert [1.0, 1.0] == scores(gold, f"\\boxed{{{written}}}")


def test_a_letter_beside_a_number_is_a_factor_where_the_gold_is_a_formula() -> None:
    assert [0.0, 0.0] == scores("48g", r"\boxed{48}")
    assert [1.0, 1.0] == scores("48g", r"\boxed{g \cdot 48}")
    assert [0.0, 0.0] == scores("48", r"\boxed{48x}")


@for_each(
    "response",
    [
        r"\boxed{12} blorps",
        r"\boxed{12} MJ",
        r"\boxed{12} in MJ",
        r"\boxed{12} measured in MJ",
        r"\boxed{12} (MJ)",
        r"\boxed{12} [MJ]",
        r"The energy is \boxed{12} kilowatt hours.",
        r"\boxed{12\text{ blorps}}",
        r"\boxed{12 blorps}",
    ],
)
def test_another_unit_beside_or_in_a_box_is_wrong(response: str) -> None:
    assert [0.0, 0.0] == scores("12", response, unit="kJ")


@for_each(
    "response",
    [
        r"\boxed{12}",
        r"\boxed{12} kJ",
        r"\boxed{12} [kJ]",
        r"\boxed{12} in kJ",
        r"The energy is \boxed{12} kJ of heat.",
        r"\boxed{12} in total",
        r"The answer, in kJ, is \boxed{12}.",
    ],
)
def test_the_right_unit_or_none_is_right(response: str) -> None:
    assert [1.0, 1.0] == scores("12", response, unit="kJ")
