"""The seeded mixture: quotas worked by hand, and the draw's laws."""

from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rows import Domain, Problem
from tasks.curation.items import Item
from tasks.curation.mixture import draw, quotas

M, C, X = Domain.MATHS, Domain.CODE, Domain.CHOICE


def test_places_are_shared_by_weight():
    assert {M: 6, C: 3, X: 3} == quotas({M: 100, C: 100, X: 100}, {M: 2.0, C: 1.0, X: 1.0}, 12)


def test_what_a_domain_cannot_fill_goes_to_the_others_by_weight():
    # Maths wants 6 of 12 and has 2; the other 10 places go one to one.
    assert {M: 2, C: 5, X: 5} == quotas({M: 2, C: 100, X: 100}, {M: 2.0, C: 1.0, X: 1.0}, 12)
    assert {M: 2, C: 3} == quotas({M: 2, C: 3}, {M: 1.0, C: 1.0}, 12)


def test_the_largest_remainder_gets_the_odd_place():
    # 5 places at 2:1 are 3.33 and 1.67.
    assert {M: 3, C: 2} == quotas({M: 9, C: 9}, {M: 2.0, C: 1.0}, 5)


def test_a_domain_without_weight_is_left_out():
    assert {M: 4} == quotas({M: 9, C: 9}, {M: 1.0}, 4)
    assert {} == quotas({M: 9}, {C: 1.0}, 4)


@given(
    st.dictionaries(st.sampled_from(Domain), st.integers(0, 20), min_size=1),
    st.dictionaries(st.sampled_from(Domain), st.floats(0.01, 10.0), min_size=1),
    st.integers(1, 60),
)
def test_quotas_fill_all_places_and_never_exceed_what_there_is(
    available: dict[Domain, int], weights: dict[Domain, float], count: int
):
    filled = quotas(available, weights, count)

    reachable = sum(size for domain, size in available.items() if domain in weights)
    assert min(count, reachable) == sum(filled.values())
    assert all(size <= available[domain] for domain, size in filled.items())


def problems(make_problem: Callable[..., Item]) -> list[Problem]:
    items = [
        make_problem(f"{domain}{number}", f"{domain} {number}", domain=domain)
        for domain, size in ((M, 40), (C, 10))
        for number in range(size)
    ]
    return [item.record for item in items if isinstance(item.record, Problem)]


def test_the_draw_follows_weights_and_seed_and_keeps_the_order(
    make_problem: Callable[..., Item],
):
    offered = problems(make_problem)

    drawn = draw(offered, {M: 1.0, C: 1.0}, 12, seed=0)

    assert {M: 6, C: 6} == Counter(problem.domain for problem in drawn)
    assert drawn == [problem for problem in offered if problem in drawn]
    assert drawn != draw(offered, {M: 1.0, C: 1.0}, 12, seed=1)
    assert {p.id for p in drawn} == {p.id for p in draw(offered[::-1], {M: 1, C: 1}, 12, seed=0)}


def test_without_weights_problems_come_as_they_are(make_problem: Callable[..., Item]):
    offered = problems(make_problem)

    assert offered == draw(offered, {}, 99, seed=0)
    assert 12 == len(draw(offered, {}, 12, seed=0))
