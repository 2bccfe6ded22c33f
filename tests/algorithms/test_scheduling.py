import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.scheduling import assign, longest_first, makespan
from tasks.errors import SettingsError

VECTOR = json.loads((Path(__file__).parent / "vectors.json").read_text())["length_balancing"]
LENGTHS = st.lists(st.floats(0.0, 1e4), max_size=40)


def test_longest_first_reproduces_the_worked_example():
    lengths, workers = VECTOR["predicted_kilotokens"], VECTOR["workers"]
    jobs = assign(lengths, longest_first(lengths), workers)

    assert VECTOR["lpt_load"] == [sum(lengths[job] for job in mine) for mine in jobs]
    assert VECTOR["optimal_makespan"] == makespan(lengths, longest_first(lengths), workers).tokens


@given(lengths=LENGTHS, workers=st.integers(1, 8), data=st.data())
def test_every_order_lies_between_the_bounds(lengths, workers, data):
    order = data.draw(st.permutations(range(len(lengths))))
    found = makespan(lengths, order, workers)

    slack = 1e-6 * (1.0 + found.tokens)
    assert found.lower_bound <= found.tokens + slack
    assert found.tokens <= found.graham_bound + slack


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=7), workers=st.integers(1, 3))
def test_longest_first_is_within_four_thirds_of_the_best(lengths, workers):
    best = min(
        max(
            sum(n for n, w in zip(lengths, choice, strict=True) if w == worker)
            for worker in range(workers)
        )
        for choice in itertools.product(range(workers), repeat=len(lengths))
    )
    found = makespan(lengths, longest_first(lengths), workers).tokens

    assert found <= (4 / 3 - 1 / (3 * workers)) * best + 1e-9


@given(lengths=LENGTHS, workers=st.integers(1, 8))
def test_every_job_is_given_to_one_worker(lengths, workers):
    jobs = assign(lengths, longest_first(lengths), workers)

    assert list(range(len(lengths))) == sorted(itertools.chain(*jobs))


@given(lengths=LENGTHS, workers=st.integers(1, 8))
def test_the_assignment_has_the_makespan_that_is_printed(lengths, workers):
    order = longest_first(lengths)
    loads = [sum(lengths[job] for job in mine) for mine in assign(lengths, order, workers)]

    assert max(loads) == pytest.approx(makespan(lengths, order, workers).tokens)


def test_nothing_to_do_takes_no_time():
    assert 0.0 == makespan([], [], 3).tokens == makespan([], [], 3).lower_bound


def test_no_worker_is_refused():
    with pytest.raises(SettingsError, match="num_workers is 0"):
        assign([1.0], [0], 0)
