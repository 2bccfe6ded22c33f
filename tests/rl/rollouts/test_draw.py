from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rows import Domain
from tasks.errors import DataError
from tasks.rl.prompts import PromptRuling, PromptStream
from tests.records import problem_of


def problems(domain, count):
    return [
        problem_of("?", "{}", id=f"{domain.value}/{number}", domain=domain, verifier="choice")
        for number in range(count)
    ]


ROWS = problems(Domain.MATHS, 5) + problems(Domain.CODE, 3)
WEIGHTS = {Domain.MATHS: 3.0, Domain.CODE: 1.0}


@given(first=st.integers(0, 40), then=st.integers(1, 20), seed=st.integers(0, 99))
def test_a_position_restores_the_order(first, then, seed):
    straight = PromptStream(ROWS, WEIGHTS, seed)
    straight.take(first)
    resumed = PromptStream(ROWS, WEIGHTS, seed, position=first)

    assert straight.take(then) == resumed.take(then)
    assert first + then == resumed.position


def test_domains_come_in_their_shares():
    taken = PromptStream(ROWS, WEIGHTS, seed=0).take(400).problems

    assert {Domain.MATHS: 300, Domain.CODE: 100} == Counter(row.domain for row in taken)


def test_every_problem_of_a_domain_comes_once_per_pass():
    taken = PromptStream(ROWS, {Domain.MATHS: 1.0}, seed=1).take(15).problems

    for lap in range(3):
        assert {row.id for row in ROWS if row.domain is Domain.MATHS} == {
            row.id for row in taken[lap * 5 : lap * 5 + 5]
        }
    assert taken[:5] != taken[5:10]


def test_a_domain_without_problems_is_refused_by_name():
    with pytest.raises(DataError, match="no problems of domain tool_use"):
        PromptStream(ROWS, WEIGHTS | {Domain.TOOL_USE: 1.0}, seed=0)


def test_what_is_passed_over_is_named_with_its_reason():
    odd = {row.id for row in ROWS if row.id.endswith(("1", "3"))}
    stream = PromptStream(ROWS, {Domain.MATHS: 1.0}, seed=0)

    drawn = stream.take(3, lambda row: PromptRuling("odd" if row.id in odd else ""))

    assert not {row.id for row in drawn.problems} & odd
    assert {"odd"} >= {ruling.reason for _, ruling in drawn.passed_over}
    assert stream.position == len(drawn.problems) + len(drawn.passed_over)


def test_a_draw_ends_even_if_every_prompt_is_passed_over():
    drawn = PromptStream(ROWS, WEIGHTS, seed=0).take(2, lambda _: PromptRuling("never", 0.25))

    assert len(ROWS) == len(drawn.passed_over)
    assert 2 == len(drawn.problems)
    assert [1.0, 1.0] == drawn.probabilities
