"""The order in which a colocated engine sleeps, receives weights and wakes; calls that are cut."""

import pytest

pytest.importorskip("vllm.v1.engine.llm_engine")

import numpy as np
import torch

from data_schemas.rollouts import StopReason
from tasks.engines.process_group import join_world
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm import in_process
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from tasks.engines.rollout_vllm.options import SLOTS
from tasks.errors import EngineError

pytestmark = pytest.mark.engines


OPTIONS = {"model": ".", "tensor_parallel_size": 1, "enable_sleep_mode": True}


class RecordingEngine:
    """Records what vLLM's engine is asked to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def has_unfinished_requests(self) -> bool:
        return False

    def sleep(self, level: int) -> None:
        self.calls.append(f"sleep {level}")

    def wake_up(self, tags: list[str]) -> None:
        self.calls.append(f"wake {tags}")

    def collective_rpc(self, method: str, **_: object) -> list[str]:
        self.calls.append(method)
        return ["digest"]

    def reset_prefix_cache(self) -> bool:
        self.calls.append("reset_prefix_cache")
        return True


@pytest.fixture
def engine(monkeypatch):
    made = RecordingEngine()
    monkeypatch.setattr(in_process.LLMEngine, "from_engine_args", lambda _: made)
    join_world()  # before there seems to be a GPU, and with it NCCL
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    return made


def test_the_cache_sleeps_until_new_weights_are_installed(engine):
    backend = in_process.InProcessBackend(OPTIONS, {})
    backend.sleep()
    backend.sleep()

    assert "digest" == backend.install(iter(()))
    assert [] == list(backend.run([]))
    assert [
        "sleep 2",
        "wake ['weights']",
        "start_weight_update",
        "update_weights",
        "finish_weight_update",
        "received_digest",
        "wake ['kv_cache']",
        "reset_prefix_cache",
    ] == engine.calls


def test_an_engine_that_slept_waits_for_weights(engine):
    backend = in_process.InProcessBackend(OPTIONS, {})
    backend.sleep()

    with pytest.raises(EngineError, match="the engine slept"):
        list(backend.run([]))
    assert ["sleep 2"] == engine.calls


def test_an_engine_without_sleep_mode_keeps_its_memory_and_waits_for_weights(engine):
    backend = in_process.InProcessBackend(OPTIONS | {"enable_sleep_mode": False}, {})
    backend.sleep()

    with pytest.raises(EngineError, match="the engine slept"):
        list(backend.run([]))
    assert [] == engine.calls


@pytest.fixture(scope="module")
def served(served_moe):
    made = VllmRolloutEngine(served_moe)
    yield made
    made.close()


def asked(*due: str) -> list[Request]:
    """A prompt of which five tokens are missing, and one of three whole responses."""
    first = Request(
        "p0", np.arange(1, 6, dtype=np.int32), 1, response_tokens=np.full(7, 9, dtype=np.int32)
    )
    return [first, Request("p1", np.arange(1, 10, dtype=np.int32), 3, due="p1" in due)]


def test_a_call_ends_when_it_has_enough_prompts_and_what_is_live_can_go_on(served):
    sampling = Sampling(max_new_tokens=12, temperature=1.0, seed=3, enough=1)

    rollouts = list(served.generate(asked(), sampling))
    again = list(served.generate(asked(), sampling))

    assert {("p0", 0), ("p1", 0), ("p1", 1), ("p1", 2)} == {(r.problem_id, r.sample) for r in again}
    key = lambda rollout: (rollout.problem_id, rollout.sample)  # noqa: E731
    for one, other in zip(sorted(rollouts, key=key), sorted(again, key=key), strict=True):
        assert one.response_tokens.tolist() == other.response_tokens.tolist()
        assert one.logprobs.tolist() == other.logprobs.tolist()
    cut = [one for one in rollouts if one.stop_reason is StopReason.SEGMENT]
    assert {"p1"} == {one.problem_id for one in cut}
    for one in cut:
        assert 6 == len(one.response_tokens) == len(one.logprobs)  # one more than p0 has
        assert 9 + 6 - 1 == len(one.trace.experts_TLK)
        rest = Request("p1", one.prompt_tokens, 1, one.sample, one.response_tokens)
        (more,) = served.generate([rest], Sampling(max_new_tokens=12, temperature=1.0, seed=3))
        assert np.array_equal(one.trace.experts_TLK, more.trace.experts_TLK[:14])


def test_a_prompt_that_is_due_ends_before_the_call(served):
    sampling = Sampling(max_new_tokens=12, temperature=1.0, seed=3, enough=1)

    found = list(served.generate(asked("p1"), sampling))

    assert StopReason.SEGMENT not in {one.stop_reason for one in found}


def test_what_has_not_begun_when_a_call_ends_yields_nothing(served):
    request = asked()[0]
    almost = Request("p0", request.prompt_tokens, 1, response_tokens=np.full(11, 9, dtype=np.int32))
    waiting = [Request(f"w{n}", request.prompt_tokens, 1) for n in range(SLOTS)]
    sampling = Sampling(max_new_tokens=12, temperature=1.0, seed=3, enough=1)

    found = list(served.generate([almost, *waiting], sampling))

    assert SLOTS == len(found)
    assert sum(len(one.response_tokens) for one in found) <= 1 + 2 * (SLOTS - 1)
