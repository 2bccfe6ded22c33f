"""What slept is lost, and nothing of it is computed with.

vLLM sleeps on GPUs only. Here weights become NaN and the cache another number instead: what is
mapped again after a sleep of level 2 may hold anything. The attention of a CPU multiplies the empty
slots of a block by 0, which NaN would survive; that of a GPU does not read them.
"""
# ruff: noqa: E402, the skip stands before what needs vLLM

import pytest

pytest.importorskip("vllm")
pytestmark = pytest.mark.engines

import numpy as np
import torch

from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from tasks.engines.rollout_vllm.in_process import CACHE, SLEEP_LEVEL, WEIGHTS

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


class LossyMemory:
    """In the place of vLLM's allocator: of the model only its buffers are saved, as on a GPU."""

    def __init__(self, engine: VllmRolloutEngine) -> None:
        self.awake = [WEIGHTS, CACHE]
        (self._runner,) = engine._backend._engine.collective_rpc(lambda one: one.model_runner)

    def sleep(self, level: int) -> None:
        assert SLEEP_LEVEL == level
        for tensor in self._runner.model.parameters():
            tensor.data.fill_(torch.nan)
        for tensor in self._runner.kv_caches:
            tensor.fill_(1e4)
        self.awake = []

    def wake_up(self, tags: list[str]) -> None:
        self.awake += tags


@pytest.fixture(scope="module")
def engine(served_moe):
    engine = VllmRolloutEngine(served_moe)
    yield engine
    engine.close()


def facts(engine):
    requests = [Request(f"p{n}", np.arange(n, n + 40, dtype=np.int32), 2) for n in range(3)]
    found = sorted(
        engine.generate(requests, SAMPLING), key=lambda one: (one.problem_id, one.sample)
    )
    return [(one.response_tokens.tolist(), one.trace.experts_TLK.tolist()) for one in found]


def test_after_a_sleep_all_is_computed_with_the_weights_that_were_sent(
    engine, served_moe, monkeypatch
):
    canary = np.arange(1, 60, dtype=np.int32)
    memory = LossyMemory(engine)
    before, (scores,) = facts(engine), engine.score_logprobs([canary])
    monkeypatch.setattr(engine._backend, "_sleeps", True)
    for name in ("sleep", "wake_up"):
        monkeypatch.setattr(engine._backend._engine, name, getattr(memory, name))

    engine.sleep()
    engine.load_weights(TorchTrainer(served_moe).weights(), 1)

    assert [WEIGHTS, CACHE] == memory.awake
    assert np.allclose(scores, engine.score_logprobs([canary])[0], atol=1e-5)
    assert before == facts(engine)
