import numpy as np
import pytest

from tasks.engines.protocols import Request, Sampling
from tasks.engines.team.rollout import spread_requests
from tasks.rl.schedule import forecast, order_requests


def request(number: int, generated: int = 0) -> Request:
    tokens = np.zeros(generated, dtype=np.int32)
    return Request(str(number), np.zeros(3, dtype=np.int32), 1, response_tokens=tokens)


def test_the_request_with_the_most_tokens_left_is_first_and_says_how_many():
    requests = [request(0), request(1, generated=30), request(2)]

    ordered = order_requests(requests, [10.0, 50.0, 40.0])

    assert [("2", 40.0), ("1", 20.0), ("0", 10.0)] == [
        (one.problem_id, one.expected_tokens) for one in ordered
    ]


def test_a_segment_bounds_what_is_expected_of_one_call():
    requests = [request(0), request(1, generated=30), request(2)]

    ordered = order_requests(requests, [10.0, 35.0, 40.0], segment_tokens=16)

    assert [16.0, 10.0, 5.0] == [one.expected_tokens for one in ordered]


def test_a_response_longer_than_its_record_still_counts():
    assert [1.0] == [
        one.expected_tokens for one in order_requests([request(0, generated=9)], [4.0])
    ]


@pytest.mark.parametrize("seed", range(3))
def test_replicas_are_balanced_by_expected_tokens(seed):
    lengths = np.random.default_rng(seed).lognormal(8.0, 1.0, 512).clip(1, 32_768)
    requests = [request(number) for number in range(len(lengths))]

    parts = spread_requests(order_requests(requests, list(lengths)), 32)

    loads = [sum(lengths[int(one.problem_id)] for one in part) for part in parts]
    assert max(loads) < 1.02 * np.mean(loads)


class Cached:
    """A rollout engine whose cache holds 100 tokens; it only notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def slots(self, tokens: float) -> int:
        return int(100 / tokens)

    def generate(self, requests, sampling):
        self.asked += [one.problem_id for one in requests]
        return iter(())


def drafted(known: list[float | None]) -> list[str]:
    engine = Cached()
    requests = [request(number) for number in range(len(known))]
    forecast(known, requests, engine, Sampling(max_new_tokens=47, temperature=1.0, seed=0))
    return engine.asked


def test_drafts_are_made_when_the_cache_cannot_hold_all_responses():
    # Prompts have 3 tokens: two responses of 47 fill the cache, and 5 of at most 17.
    assert [] == drafted([None, None])
    assert ["2"] == drafted([47.0, 47.0, None])
    assert [] == drafted([3.0, 3.0, 3.0, None])
    assert ["3"] == drafted([40.0, 40.0, 40.0, None])
