"""vLLM in a process of its own: what happens when that process dies or falls silent."""

# ruff: noqa: E402, the skip stands before what needs vLLM
import importlib.util
import logging
import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from vllm import SamplingParams

    from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from data_schemas.machine_settings import LayoutSettings
from tasks.algorithms.digests import weight_digest
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.backend import Call
from tasks.engines.rollout_vllm.own_process import MAX_FRUITLESS_RESTARTS
from tasks.engines.rollout_vllm.replicas import Replicas
from tasks.engines.trainer_torch import TorchTrainer
from tasks.errors import EngineError

BASE_MODEL = Path("tasks/foundation/base_model")
REQUESTS = [Request(f"p{n}", np.arange(20, 30 + n, dtype=np.int32), 4) for n in range(8)]
SAMPLING = Sampling(150, 1.0, seed=3)
HANG_S = 20.0


def trained(seed):
    trainer = TorchTrainer(BASE_MODEL)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, tensor in trainer.weights():
            tensor.add_(torch.randn(tensor.shape, generator=generator) * 0.01)
    return trainer


def processes_of(engine):
    return engine._backend._engine.engine_core.resources.engine_manager.processes


def by_key(rollouts):
    return {(r.problem_id, r.sample): r.response_tokens.tolist() for r in rollouts}


@pytest.fixture(scope="module")
def engine():
    """One engine, updated: what it was opened with is not what it has to come back with."""
    layout = LayoutSettings(rollout_apart=1, hang_s=HANG_S)
    engine = VllmRolloutEngine(BASE_MODEL, layout=layout)
    engine.load_weights(trained(1).weights(), version=1)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def undisturbed(engine):
    return by_key(engine.generate(REQUESTS, SAMPLING))


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_lost_in_the_middle_is_replaced_on_the_current_weights(
    engine, undisturbed, harm, caplog
):
    restarts, reissued, before = engine.restarts, engine.reissued, engine.counters
    (lost,) = processes_of(engine)
    stream = engine.generate(REQUESTS, SAMPLING)
    found = [next(stream)]
    with caplog.at_level(logging.WARNING):
        os.kill(lost.pid, harm)
        found += list(stream)

    assert sorted(undisturbed) == sorted((r.problem_id, r.sample) for r in found)
    assert undisturbed == by_key(found)
    assert {1} == {r.policy_version for r in found}
    assert 1 == engine.restarts - restarts
    assert 0 < engine.reissued - reissued < 32
    assert "vLLM is started again" in caplog.text
    assert lost.pid != processes_of(engine)[0].pid
    assert not lost.is_alive()

    after = engine.counters
    assert 32 == after.sequences - before.sequences
    assert sum(map(len, undisturbed.values())) == after.generated_tokens - before.generated_tokens
    assert sum(len(r.prompt_tokens) for r in REQUESTS) == after.prompt_tokens - before.prompt_tokens


def test_new_weights_find_a_silent_process_and_are_installed_in_the_next(engine):
    trainer = trained(2)
    restarts = engine.restarts
    (lost,) = processes_of(engine)
    os.kill(lost.pid, signal.SIGSTOP)

    digest = engine.load_weights(trainer.weights(), version=2)
    tokens = REQUESTS[0].prompt_tokens
    whole = torch.from_numpy(tokens.astype(np.int64))
    with torch.inference_mode():
        logprobs = trainer._model(input_ids=whole[None]).logits[0, :-1].log_softmax(1)

    assert weight_digest(trainer.weights()) == digest
    assert 1 == engine.restarts - restarts
    assert logprobs.gather(1, whole[1:, None])[:, 0].tolist() == pytest.approx(
        engine.probe([tokens])[0].tolist(), abs=1e-4
    )


def test_side_by_side_engines_answer_as_one(engine):
    """One of them in this process, which costs less than another process."""
    beside = VllmRolloutEngine(BASE_MODEL)
    both = Replicas([engine._backend, beside._backend], engine._staging)
    trainer = trained(1)
    calls = [call(number, number // 2) for number in range(12)]
    for one in (engine, beside):
        one.load_weights(trainer.weights(), version=1)

    alone = {number: tokens(answer) for number, answer in beside._backend.run(calls)}
    assert alone == {number: tokens(answer) for number, answer in both.run(calls)}
    stream = both.run(calls)
    next(stream)
    stream.close()
    assert alone == {number: tokens(answer) for number, answer in both.run(calls)}
    assert both.restarts == engine.restarts
    beside.close()


def call(number, request):
    params = SamplingParams(max_tokens=5, seed=number, detokenize=False)
    return Call(number, request, list(range(20, 30 + request)), params)


def tokens(answer):
    return list(answer.outputs[0].token_ids)


def test_an_engine_that_comes_back_with_other_weights_gets_no_traffic(engine, caplog):
    """The last test: afterwards the engine is dead."""
    engine.load_weights(trained(1).weights(), version=1)
    trained(3).export(engine._backend._folder)
    for path in engine._backend._folder.glob("model-*.safetensors"):
        path.unlink()
    (engine._backend._folder / "model.safetensors.index.json").unlink()
    (lost,) = processes_of(engine)
    os.kill(lost.pid, signal.SIGKILL)
    lost.join()
    # As if the restarts before this one had come to nothing.
    engine._backend._fruitless = MAX_FRUITLESS_RESTARTS - 1

    with pytest.raises(EngineError, match=r"completed nothing.*canary off by"):
        list(engine.generate(REQUESTS, SAMPLING))
    assert "is started again" in caplog.text
