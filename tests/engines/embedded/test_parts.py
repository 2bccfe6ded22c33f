"""Work that is divided into parts has the same bytes, whoever computes them."""

import hashlib
import os
import signal
import threading
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tasks.algorithms.digests import weight_digest
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer, divide
from tasks.engines.part_workers import PartWorkers
from tasks.engines.protocols import Request, Sampling, TokenBatch
from tasks.engines.recording_loss import ROW, RecordingLoss
from tasks.errors import EngineError
from tasks.training.sft.train import CrossEntropy
from tests.part_cores import pids, start

ALONE = PartWorkers(1)


def requests(count, samples=8):
    generator = np.random.default_rng(0)
    lengths = generator.integers(4, 20, count)
    return [
        Request(f"p{place}", generator.integers(5, 250, length).astype(np.int32), samples)
        for place, length in enumerate(lengths)
    ]


def batch(count=48, length=24):
    generator = np.random.default_rng(1)
    lengths = generator.integers(length // 2, length, count)
    sequences = [generator.integers(5, 250, one).astype(np.int32) for one in lengths]
    made = TokenBatch.of_sequences(sequences)
    return TokenBatch(
        made.tokens_NT, made.lengths_N, made.response_NT, None, {ROW: torch.arange(count)}
    )


LARGE = batch(count=160, length=40)
"""A batch of four parts and more."""


def digest_of(rollouts):
    digest = hashlib.sha256()
    for one in sorted(rollouts, key=lambda one: (one.problem_id, one.sample)):
        for array in (one.response_tokens, one.logprobs, one.trace.experts_TLK):
            digest.update(array.tobytes())
    return digest.hexdigest()


def generate(folder, workers, **changes):
    engine = HFRolloutEngine(folder, workers=workers)
    sampling = Sampling(**({"max_new_tokens": 8, "temperature": 1.0, "seed": 3} | changes))
    first = digest_of(engine.generate(requests(24), sampling))
    engine.load_weights(TorchTrainer(folder, lora_rank=0, workers=ALONE).weights(), version=1)
    again = digest_of(engine.generate(requests(24), sampling))
    counters = engine.counters
    return first, again, counters.sequences, counters.generated_tokens, counters.prompt_tokens


def learn(folder, workers, lora_rank=0, auxiliary=None):
    """Two updates and what is scored between them."""
    trainer = TorchTrainer(folder, lora_rank=lora_rank, workers=workers)
    found = []
    for _ in range(2):
        loss = RecordingLoss(CrossEntropy(1000))
        terms = auxiliary or Auxiliary()
        found.append(
            trainer.update(LARGE, loss, temperature=1.0, learning_rate=1e-2, auxiliary=terms)
        )
        calls = [(call.key, call.logprobs_MT.tolist(), float(call.value)) for call in loss.calls]
        scores = trainer.score(LARGE, temperature=1.0, record_routes=True)
        digest = hashlib.sha256()
        for tensor in (scores.logprobs_NT, scores.entropy_NT, scores.experts_NTLK):
            assert tensor is not None
            digest.update(tensor.numpy().tobytes())
        found += [calls, digest.hexdigest(), weight_digest(trainer.weights())]
    return found


def test_the_size_of_a_batch_decides_its_parts_and_each_has_about_as_many_rows():
    whole = batch(count=96)
    parts = divide(whole, 8192, 256, 4)
    rows = [len(part.packed().packing.cells_M) for part in parts]

    assert 4 == len(parts)
    assert sorted(range(96)) == sorted(row for part in parts for row in part.rows_N.tolist())
    assert max(rows) <= sum(rows) / 4 + int(whole.lengths_N.max())
    assert 1 == len(divide(batch(count=12), 8192, 256, 4))
    assert all(len(part.packed().packing.cells_M) <= 100 for part in divide(whole, 100, 256, 4))


def test_parts_give_the_gradient_of_the_whole(tiny_moe, monkeypatch):
    whole, divided = (TorchTrainer(tiny_moe, workers=ALONE) for _ in range(2))
    one = divided.update(batch(), CrossEntropy(1000), temperature=1.0, learning_rate=0.0)
    monkeypatch.setattr("tasks.engines.embedded.trainer.GRADIENT_ROWS", 10**6)
    other = whole.update(batch(), CrossEntropy(1000), temperature=1.0, learning_rate=0.0)

    for name in ("loss", "grad_norm"):
        assert one[name] == pytest.approx(other[name], rel=1e-5)
    assert len(divide(batch(), 8192, 256, 2)) > 1


def test_parts_draw_what_one_call_would(tiny_moe, monkeypatch):
    sampling = Sampling(max_new_tokens=3, temperature=1.0, seed=3)
    engine = HFRolloutEngine(tiny_moe, workers=ALONE)
    parts = digest_of(engine.generate(requests(12, samples=16), sampling))
    counted = engine.counters
    monkeypatch.setattr("tasks.engines.embedded.rollout.MAX_PARTS", 1)
    tokens = {
        (one.problem_id, one.sample): one.response_tokens.tolist()
        for one in engine.generate(requests(12, samples=16), sampling)
    }
    monkeypatch.undo()
    again = {
        (one.problem_id, one.sample): one.response_tokens.tolist()
        for one in engine.generate(requests(12, samples=16), sampling)
    }

    assert tokens == again
    assert 192 == counted.sequences
    assert parts == digest_of(engine.generate(requests(12, samples=16), sampling))


@dataclass(frozen=True)
class Killing:
    """A loss that kills the process which computes it, unless that is the one that made it."""

    maker: int

    def __call__(self, logprobs_NT, inputs):
        if os.getpid() != self.maker:
            os.kill(os.getpid(), signal.SIGKILL)
        return CrossEntropy(1000)(logprobs_NT, inputs)


@pytest.fixture(scope="module", params=[2, 3, 4])
def workers(request):
    made = PartWorkers(request.param)
    start(made)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"temperature": 0.0}, {"top_k": 5}])
def test_rollouts_are_the_same_with_any_number_of_workers(tiny_moe, workers, changes):
    start(workers)

    assert generate(tiny_moe, ALONE, **changes) == generate(tiny_moe, workers, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("lora_rank", [0, 4])
def test_updates_and_scores_are_the_same_with_any_number_of_workers(tiny_moe, workers, lora_rank):
    start(workers)
    terms = Auxiliary(entropy=0.01, balance=0.01, router_z=0.001)

    assert learn(tiny_moe, ALONE, lora_rank) == learn(tiny_moe, workers, lora_rank)
    assert learn(tiny_moe, ALONE, 0, terms) == learn(tiny_moe, workers, 0, terms)


@pytest.mark.slow
def test_files_of_a_trainer_do_not_tell_who_computed(tiny_moe, workers, tmp_path):
    start(workers)
    found = []
    for number, own in enumerate((ALONE, workers)):
        trainer = TorchTrainer(tiny_moe, workers=own)
        trainer.update(batch(), CrossEntropy(1000), temperature=1.0, learning_rate=1e-2)
        folder = tmp_path / str(number)
        folder.mkdir()
        trainer.save(folder)
        trainer.export(folder / "model")
        found.append({p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()})

    assert found[0].keys() == found[1].keys()
    assert [] == [name for name in found[0] if found[0][name] != found[1][name]]


@pytest.mark.slow
def test_a_worker_that_is_killed_stops_the_work_by_name_and_the_next_attempt_has_its_bytes(
    tiny_moe, workers
):
    start(workers)
    engine = HFRolloutEngine(tiny_moe, workers=workers)
    sampling = Sampling(max_new_tokens=40, temperature=1.0, seed=3)
    stream = engine.generate(requests(24), sampling)
    next(stream)
    for pid in pids(workers):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineError, match=r"worker process \d+ ended with signal 9"):
        list(stream)
    start(workers)
    alone = HFRolloutEngine(tiny_moe, workers=ALONE)

    assert digest_of(alone.generate(requests(24), sampling)) == digest_of(
        engine.generate(requests(24), sampling)
    )

    trainer, control = (TorchTrainer(tiny_moe, workers=one) for one in (workers, ALONE))
    with pytest.raises(EngineError, match=r"worker process \d+ ended with signal 9"):
        trainer.update(batch(), Killing(os.getpid()), temperature=1.0, learning_rate=1e-2)
    start(workers)
    for one in (trainer, control):
        one.update(batch(), CrossEntropy(1000), temperature=1.0, learning_rate=1e-2)

    assert weight_digest(control.weights()) == weight_digest(trainer.weights())


@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_scores_is_named(tiny_moe, workers):
    start(workers)
    trainer = TorchTrainer(tiny_moe, workers=workers)
    first = pids(workers)[0]
    os.kill(first, signal.SIGSTOP)  # it does not answer until it is killed
    killing = threading.Timer(0.2, os.kill, (first, signal.SIGKILL))
    killing.start()
    with pytest.raises(EngineError, match=rf"worker process {first} ended with signal 9"):
        trainer.score(LARGE, temperature=1.0)
    killing.join()
