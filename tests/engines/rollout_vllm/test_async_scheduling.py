"""Asynchronous scheduling, which vLLM has on every GPU and on no CPU, changes no rollout.

In ranks that torchrun started, see test_launch.
"""
# ruff: noqa: E402, the skip stands before what needs vLLM

from dataclasses import replace

import pytest

pytest.importorskip("vllm")
pytestmark = pytest.mark.engines

import numpy as np

from data_schemas.rollouts import Rollout, StopReason
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.request_queue import Room
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from tests.engines.rollout_vllm.scheduled_ahead import scheduled_ahead

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


@pytest.fixture(scope="module")
def engines(served_moe):
    """One engine without asynchronous scheduling, one with it."""
    plain = VllmRolloutEngine(served_moe)
    with scheduled_ahead():
        ahead = VllmRolloutEngine(served_moe)
        assert ahead._backend._engine.vllm_config.scheduler_config.async_scheduling
        yield plain, ahead
        ahead.close()
    plain.close()


def requests(*lengths: int, samples: int = 3) -> list[Request]:
    draw = np.random.default_rng(0)
    return [
        Request(f"p{place}", draw.integers(0, 250, length).astype(np.int32), samples)
        for place, length in enumerate(lengths)
    ]


def facts(rollouts: list[Rollout]) -> dict[tuple[str, int], tuple[object, ...]]:
    return {
        (one.problem_id, one.sample): (
            one.response_tokens.tolist(),
            one.logprobs.tolist(),
            one.trace.experts_TLK.tolist(),
            one.stop_reason,
        )
        for one in rollouts
    }


def test_rollouts_with_their_routes_are_the_same(engines):
    plain, ahead = (facts(list(one.generate(requests(5, 17, 33), SAMPLING))) for one in engines)

    assert 9 == len(plain)
    assert plain == ahead


def test_what_is_cut_when_enough_prompts_ended_is_whole_and_can_go_on(engines):
    _, ahead = engines
    first = Request(
        "p0", np.arange(1, 6, dtype=np.int32), 1, response_tokens=np.full(7, 9, dtype=np.int32)
    )
    both = [first, Request("p1", np.arange(1, 10, dtype=np.int32), 3)]

    found = list(ahead.generate(both, replace(SAMPLING, enough=1)))
    again = list(ahead.generate(both, replace(SAMPLING, enough=1)))

    assert facts(found) == facts(again)
    assert {("p0", 0), ("p1", 0), ("p1", 1), ("p1", 2)} == set(facts(found))
    cut = [one for one in found if one.stop_reason is StopReason.SEGMENT]
    assert {"p1"} == {one.problem_id for one in cut}
    for one in cut:
        length = len(one.response_tokens)
        assert length < SAMPLING.max_new_tokens
        assert (length, 9 + length - 1) == (len(one.logprobs), len(one.trace.experts_TLK))
        rest = Request("p1", one.prompt_tokens, 1, one.sample, one.response_tokens)
        (more,) = ahead.generate([rest], SAMPLING)
        fed = len(one.trace.experts_TLK)
        assert np.array_equal(one.trace.experts_TLK, more.trace.experts_TLK[:fed])


def test_a_call_that_is_abandoned_leaves_nothing_behind(engines):
    plain, ahead = engines
    started = ahead.generate(requests(5, 17), SAMPLING)
    next(started)
    started.close()

    assert not ahead._backend._engine.has_unfinished_requests()
    some = requests(9, 9)
    assert facts(list(plain.generate(some, SAMPLING))) == facts(
        list(ahead.generate(some, SAMPLING))
    )


class Queue:
    """One request a round."""

    over = False

    def __init__(self) -> None:
        self._left = requests(5, 17, 33, 8)
        self.samples = 12

    @property
    def empty(self) -> bool:
        return not self._left

    def take(self, _: Room) -> list[Request]:
        return [self._left.pop(0)] if self._left else []


def test_what_a_queue_gives_later_is_the_same(engines):
    plain, ahead = (facts(list(one.generate(Queue(), SAMPLING))) for one in engines)

    assert 12 == len(plain)
    assert plain == ahead


def test_the_next_call_after_a_weight_sync_has_the_new_weights(engines, served_moe):
    tokens = [request.prompt_tokens for request in requests(9, 33)]
    halved = [(name, tensor * 0.5) for name, tensor in TorchTrainer(served_moe).weights()]
    before, after = [], []
    for engine in engines:
        before.append([one.tolist() for one in engine.score_logprobs(tokens)])
        engine.load_weights(iter(halved), version=1)
        after.append([one.tolist() for one in engine.score_logprobs(tokens)])
        engine.load_weights(TorchTrainer(served_moe).weights(), version=0)

    assert before[0] == before[1] != after[1] == after[0]
