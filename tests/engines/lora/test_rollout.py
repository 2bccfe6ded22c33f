"""A rollout engine that receives factors and computes with the merged weights."""

import importlib.util
import shutil
import warnings
from contextlib import closing

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from data_schemas.machine_settings import LoRASettings, RolloutKind, TrainingEngines
from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.lora.canary import check_adapter
from tasks.engines.lora.merged_rollout import AdapterRollout
from tasks.engines.protocols import TokenBatch
from tasks.engines.select import open_rollout
from tasks.engines.weight_sync import Outgoing
from tasks.errors import EngineError
from tests.engines.lora.adapters import give_values

SEQUENCES = [np.arange(start, start + 20, dtype=np.int32) for start in (3, 40)]
VOCABULARY = 280
Q = "model.layers.0.self_attn.q_proj"
EXPERT = "model.layers.1.mlp.experts.5.down_proj"


@pytest.fixture(scope="module")
def trainer(tiny_moe):
    trainer = TorchTrainer(tiny_moe, lora_rank=8)
    give_values(trainer)
    return trainer


@pytest.fixture
def engine(tiny_moe):
    return AdapterRollout(HFRolloutEngine(tiny_moe), tiny_moe, rank=8)


def test_the_engine_computes_what_the_trainer_does_and_confirms_the_factors(engine, trainer):
    weights = Outgoing(trainer.weights())
    installed = engine.load_weights(weights, version=3)
    scores = trainer.score(TokenBatch.of_sequences(SEQUENCES), temperature=1.0)
    found = engine.score_logprobs(SEQUENCES)

    assert weights.digest() == installed
    assert 3 == engine.policy_version
    assert np.abs(np.stack(found) - scores.logprobs_NT[:, 1:].numpy()).max() < 1e-5


def test_the_second_adapter_takes_the_place_of_the_first(engine, trainer, tiny_moe):
    engine.load_weights(trainer.weights(), version=1)
    other = TorchTrainer(tiny_moe, lora_rank=8)
    give_values(other, seed=5)
    engine.load_weights(other.weights(), version=2)
    scores = other.score(TokenBatch.of_sequences(SEQUENCES), temperature=1.0)

    found = np.stack(engine.score_logprobs(SEQUENCES))
    assert np.abs(found - scores.logprobs_NT[:, 1:].numpy()).max() < 1e-5


def test_a_weight_sync_sends_the_factors_only(trainer, tiny_moe):
    sent = Outgoing(trainer.weights())
    everything = Outgoing(TorchTrainer(tiny_moe).weights())
    names = [name for name, _ in sent]

    assert all(".lora_A." in name or ".lora_B." in name for name in names)
    assert sum(tensor.numel() for _, tensor in everything) * 4 == everything.sent_bytes
    # Rank 8 is a quarter of the smallest side here: no small model, no small adapter.
    assert 112_640 == sent.sent_bytes


@pytest.mark.parametrize(
    "change",
    [
        lambda factors: factors.pop(f"{EXPERT}.lora_B.weight"),
        lambda factors: factors.update({f"{Q}.lora_C.weight": torch.zeros(1)}),
        lambda factors: factors.update({f"{EXPERT}.lora_A.weight": torch.zeros(16, 32)}),
    ],
)
def test_an_adapter_that_is_not_whole_is_refused_by_name(engine, trainer, change):
    factors = dict(trainer.weights())
    change(factors)
    before = engine.score_logprobs(SEQUENCES)

    with pytest.raises(EngineError, match=r"1 factors are missing, unknown.*(experts\.5|lora_C)"):
        engine.load_weights(iter(factors.items()), version=1)

    assert 0 == engine.policy_version
    assert all(map(np.array_equal, before, engine.score_logprobs(SEQUENCES)))


def test_an_engine_that_installed_something_else_is_refused(trainer, tiny_moe):
    class Deaf(HFRolloutEngine):
        def load_weights(self, weights, version):
            return weight_digest(weights) and "another digest"

    engine = AdapterRollout(Deaf(tiny_moe), tiny_moe, rank=8)

    with pytest.raises(EngineError, match="the engine has another dige, the merged weights are"):
        engine.load_weights(trainer.weights(), version=1)


def test_a_head_that_is_stored_beside_the_embedding_it_is_tied_to_is_left_out(
    trainer, tiny_moe, tmp_path
):
    folder = shutil.copytree(tiny_moe, tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    engine = AdapterRollout(HFRolloutEngine(folder), folder, rank=8)

    assert weight_digest(trainer.weights()) == engine.load_weights(trainer.weights(), version=1)


@pytest.mark.engines
def test_vllm_computes_with_every_factor_without_kernels_for_adapters(served_moe):
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    trainer = TorchTrainer(served_moe, lora_rank=8)
    give_values(trainer)
    settings = TrainingEngines(rollout=RolloutKind.VLLM, lora=LoRASettings(rank=8))
    with warnings.catch_warnings(), closing(open_rollout(settings, served_moe)) as engine:
        # What vLLM's own modules do while they are imported is not ours to mend.
        warnings.simplefilter("ignore")
        assert 0 == check_adapter(engine, trainer, VOCABULARY, version=0)
        digest = engine.load_weights(trainer.weights(), version=1)
        found = np.stack(engine.score_logprobs(SEQUENCES))
    scores = trainer.score(TokenBatch.of_sequences(SEQUENCES), temperature=1.0)

    assert weight_digest(trainer.weights()) == digest
    assert np.abs(found - scores.logprobs_NT[:, 1:].numpy()).max() < 1e-5
