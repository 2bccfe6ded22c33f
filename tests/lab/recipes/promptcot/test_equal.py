import pytest

from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rows import Domain, Message, Role
from tasks.errors import DataError
from tasks.lab.recipes.promptcot.pools import as_many


def graded(name):
    return GradedProblem(
        id=name,
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="2 + 2?"),),
        verifier="final_answer",
        answer='{"value":"4"}',
        source="sums",
        source_row="0" * 64,
        pass_rate=0.25,
        mean_tokens=4.0,
        band=Band.HARD,
    )


def test_both_sides_have_as_many_problems_in_an_order_of_their_own():
    ours = [graded(f"ours/{n}") for n in range(5)]
    theirs = [graded(f"theirs/{n}") for n in range(3)]

    kept, others = as_many(ours, theirs)

    assert 3 == len(kept) == len(others)
    assert set(others) == set(theirs)
    assert kept == as_many(ours[::-1], theirs)[0]


def test_a_side_without_problems_is_told_with_what_to_do():
    with pytest.raises(DataError, match=r"1 synthesised and 0 drawn.*recipe.synthesis.problems"):
        as_many([graded("p")], [])
