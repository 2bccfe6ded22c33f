import numpy as np
import pytest

from tasks.engines.protocols import Request
from tasks.engines.team.rollout import spread_requests
from tasks.rl.rollouts.schedule import order_requests


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
