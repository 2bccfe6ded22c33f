"""Work on several items at once, in order, with nothing left behind."""

import os
import threading

import pytest
import torch

from tasks.cores import LIMIT, num_cores
from tasks.training.merge.threads import AHEAD, in_order


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    monkeypatch.delenv(LIMIT, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)


def threads_left() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("merge")]


def test_results_come_in_the_order_of_the_items():
    later = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            later.wait()
        if item == 2:
            later.set()
        return item * item

    assert [0, 1, 4, 9, 16] == list(in_order(work, range(5)))
    assert [] == threads_left()


def test_no_items_give_no_results():
    assert [] == list(in_order(abs, []))


def test_no_more_is_begun_than_may_wait():
    begun: list[int] = []
    results = in_order(begun.append, range(100))

    next(results)

    assert 3 == num_cores()
    assert len(begun) <= 3 * AHEAD
    results.close()
    assert len(begun) <= 3 * AHEAD
    assert [] == threads_left()


def test_a_failure_is_raised_in_its_place_and_no_thread_is_left():
    def work(item: int) -> int:
        if item == 2:
            raise ValueError(f"item {item} is wrong")
        return item

    results = in_order(work, range(50))

    assert [0, 1] == [next(results), next(results)]
    with pytest.raises(ValueError, match="item 2 is wrong"):
        next(results)
    assert [] == threads_left()


def test_torch_has_one_thread_in_each_and_as_many_as_before_outside():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        inside = set(in_order(lambda _: torch.get_num_threads(), range(9)))
        started: list[int] = []
        later = threading.Thread(target=lambda: started.append(torch.get_num_threads()))
        later.start()
        later.join()

        assert {1} == inside
        assert [2] == started
        assert 2 == torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
