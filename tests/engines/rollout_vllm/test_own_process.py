"""vLLM in a process of its own: what happens when that process dies or falls silent."""

# ruff: noqa: E402, the skip stands before what needs vLLM
import importlib.util
import logging
import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from vllm.v1.engine import core_client

    from tasks.engines.rollout_vllm import process
    from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from data_schemas.machine_settings import LayoutSettings
from tasks.algorithms.digests import weight_digest
from tasks.engines import activity
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.options import SLOTS
from tasks.engines.rollout_vllm.own_process import MAX_FRUITLESS_RESTARTS
from tasks.errors import EngineError

BASE_MODEL = Path("tasks/training/foundation/base_model")
REQUESTS = [Request(f"p{n}", np.arange(20, 30 + n, dtype=np.int32), 4) for n in range(8)]
SAMPLING = Sampling(150, 1.0, seed=3)
HANG_S = 86400.0
"""Longer than any test: a process that computes nothing is noticed by its CPU time."""
PACKET = 300_000
"""Bytes: a weight sync of the base model takes a dozen."""
two_gpus = pytest.mark.skipif(torch.cuda.device_count() == 1, reason="a GPU for each engine")


@pytest.fixture(autouse=True)
def few_looks(monkeypatch):
    monkeypatch.setattr(activity, "STILL_LOOKS", 10)


def trained(seed):
    trainer = TorchTrainer(BASE_MODEL)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, tensor in trainer.weights():
            tensor.add_(torch.randn(tensor.shape, generator=generator) * 0.01)
    return trainer


def process_of(backend):
    (process,) = backend._process._engine.engine_core.resources.engine_manager.processes
    return process


def by_key(rollouts):
    return {(r.problem_id, r.sample): r.response_tokens.tolist() for r in rollouts}


def logprobs_of(trainer, tokens):
    whole = torch.from_numpy(tokens.astype(np.int64))
    with torch.inference_mode():
        logprobs = trainer._model(input_ids=whole[None]).logits[0, :-1].log_softmax(1)
    return logprobs.gather(1, whole[1:, None])[:, 0].numpy()


def gap(engine, trainer):
    tokens = REQUESTS[0].prompt_tokens
    return float(np.abs(logprobs_of(trainer, tokens) - engine.score_logprobs([tokens])[0]).max())


def opened(number, group):
    layout = LayoutSettings(dedicated_rollout_gpus=number, rollout_memory=0.4, hang_s=HANG_S)
    engine = VllmRolloutEngine(BASE_MODEL, layout=layout, group=group)
    engine._staging.chunk_bytes = PACKET
    return engine


@pytest.fixture(scope="module")
def engine():
    """One engine, updated: what it was opened with is not what it has to come back with."""
    engine = opened(1, "gloo")
    engine.load_weights(trained(1).weights(), version=1)
    yield engine
    engine.close()


def test_as_many_sequences_are_decoded_as_the_cache_holds(engine):
    tokens = engine._backend.cache_tokens
    assert tokens > 0

    assert [1, 3, SLOTS] == [engine.slots(size) for size in (tokens, tokens / 3, 1)]


def test_a_large_model_may_take_longer_to_read_than_a_call_may_take(engine, monkeypatch):
    running = engine._backend._process
    monkeypatch.setattr(activity, "STILL_LOOKS", 10**6)
    monkeypatch.setattr(process, "LOOK_S", 1e-3)
    monkeypatch.setattr(running, "_hang_s", 0.0)
    monkeypatch.setattr(process, "READ_BYTES_PER_S", 1e12)
    with pytest.raises(process.LostProcess, match="did not respond for 0 s"):
        running.folder_digest(engine._backend._folder)

    monkeypatch.setattr(process, "READ_BYTES_PER_S", 1e3)
    assert engine._backend._digest == running.folder_digest(engine._backend._folder)


def test_vllms_own_limit_begins_when_it_has_read_its_model(monkeypatch):
    """Its variable need not be set for large models; vLLM reads it as it is imported."""
    monkeypatch.setattr(core_client, "VLLM_ENGINE_READY_TIMEOUT_S", 1)
    started = time.monotonic()
    opened(1, "").close()

    assert time.monotonic() - started > 1.0


@pytest.fixture(scope="module")
def undisturbed(engine):
    return by_key(engine.generate(REQUESTS, SAMPLING))


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_lost_in_the_middle_is_replaced_on_the_current_weights(
    engine, undisturbed, harm, caplog
):
    restarts, reissued, before = engine.restarts, engine.reissued, engine.counters
    lost = process_of(engine._backend)
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
    assert "vLLM is restarted" in caplog.text
    assert lost.pid != process_of(engine._backend).pid
    assert not lost.is_alive()

    after = engine.counters
    assert 32 == after.sequences - before.sequences
    assert sum(map(len, undisturbed.values())) == after.generated_tokens - before.generated_tokens
    assert sum(len(r.prompt_tokens) for r in REQUESTS) == after.prompt_tokens - before.prompt_tokens


def test_new_weights_find_a_silent_process_and_are_installed_in_the_next(engine):
    trainer = trained(2)
    restarts = engine.restarts
    os.kill(process_of(engine._backend).pid, signal.SIGSTOP)

    assert weight_digest(trainer.weights()) == engine.load_weights(trainer.weights(), version=2)
    assert 1 == engine.restarts - restarts
    assert gap(engine, trainer) < 1e-4


def test_a_process_lost_between_two_tensors_is_replaced_by_one_with_the_new_weights(engine):
    trainer, restarts = trained(3), engine.restarts
    weights = weights_with(trainer, lambda: process_of(engine._backend).kill())

    assert weight_digest(trainer.weights()) == engine.load_weights(weights, version=3)
    assert 1 == engine.restarts - restarts
    assert gap(engine, trainer) < 1e-4


def test_weights_that_break_off_leave_those_of_before(engine):
    before = trained(4)
    engine.load_weights(before.weights(), version=4)

    def fail():
        raise ValueError("a rank is gone")

    with pytest.raises(ValueError, match="a rank is gone"):
        engine.load_weights(weights_with(trained(5), fail), version=5)
    assert 4 == engine.policy_version
    assert gap(engine, before) < 1e-4
    assert {4} == {r.policy_version for r in engine.generate(REQUESTS[:1], SAMPLING)}


def weights_with(trainer, event):
    """Weights of a trainer that something happens to in the middle."""
    weights = list(trainer.weights())
    for number, item in enumerate(weights):
        if number == len(weights) // 2:
            event()
        yield item


@two_gpus
def test_side_by_side_engines_answer_as_one_and_have_the_same_weights_or_those_of_before(engine):
    both, trainer = opened(2, "gloo"), trained(1)
    engine.load_weights(trainer.weights(), version=1)
    alone = by_key(engine.generate(REQUESTS, SAMPLING))
    second = both._backend._members[1]
    weights = weights_with(trainer, lambda: process_of(second).kill())

    assert weight_digest(trainer.weights()) == both.load_weights(weights, version=1)
    assert 1 == both.restarts
    assert alone == by_key(both.generate(REQUESTS, SAMPLING))

    stream = both.generate(REQUESTS, SAMPLING)
    next(stream)
    stream.close()
    second._process.call_and_wait = refuse
    with pytest.raises(EngineError, match="no"):
        both.load_weights(trained(2).weights(), version=2)
    assert alone == by_key(both.generate(REQUESTS, SAMPLING))
    both.close()


def test_without_a_group_the_one_that_takes_a_lost_ones_place_reads_the_new_weights():
    engine, trainer = opened(1, ""), trained(2)
    weights = weights_with(trainer, lambda: process_of(engine._backend).kill())

    assert weight_digest(trainer.weights()) == engine.load_weights(weights, version=2)
    assert weight_digest(trained(1).weights()) == engine.load_weights(trained(1).weights(), 3)
    assert 1 == engine.restarts
    assert gap(engine, trained(1)) < 1e-4
    engine.close()


@two_gpus
def test_losing_one_of_two_workers_in_a_weight_sync_loses_nothing_else():
    layout = LayoutSettings(
        dedicated_rollout_gpus=2, rollout_tensor=2, rollout_memory=0.4, hang_s=HANG_S
    )
    engine, trainer = VllmRolloutEngine(BASE_MODEL, layout=layout, group="gloo"), trained(2)
    engine._staging.chunk_bytes = PACKET
    core, *others = engine._backend._process._family
    first = trained(1)

    assert weight_digest(first.weights()) == engine.load_weights(first.weights(), version=1)
    assert gap(engine, first) < 1e-4
    weights = weights_with(trainer, others[-1].kill)
    assert weight_digest(trainer.weights()) == engine.load_weights(weights, version=2)
    assert 1 == engine.restarts
    assert gap(engine, trainer) < 1e-4
    assert not any(map(is_running, [core, *others]))
    engine.close()


def is_running(process):
    """Whether a process is alive: an orphan is a zombie until init reaps it."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def refuse(name, **_):
    raise EngineError(f"no {name}")


def test_an_engine_that_comes_back_with_other_weights_gets_no_traffic(engine, caplog):
    """The last test: afterwards the engine is dead."""
    engine.load_weights(trained(1).weights(), version=1)
    trained(3).export(engine._backend._folder)
    for path in engine._backend._folder.glob("model-*.safetensors"):
        path.unlink()
    (engine._backend._folder / "model.safetensors.index.json").unlink()
    lost = process_of(engine._backend)
    os.kill(lost.pid, signal.SIGKILL)
    lost.join()
    # As if the restarts before this one had come to nothing.
    engine._backend._fruitless = MAX_FRUITLESS_RESTARTS - 1

    with pytest.raises(EngineError, match=r"completed nothing.*canary off by"):
        list(engine.generate(REQUESTS, SAMPLING))
    assert "is restarted" in caplog.text
