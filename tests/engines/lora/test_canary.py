"""An engine that ignores a part of an adapter is stopped before its first rollout."""

import logging

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import Precision
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.lora import canary
from tasks.engines.lora.canary import check_adapter
from tasks.engines.lora.merged_rollout import AdapterRollout
from tasks.errors import EngineError

VOCABULARY = 280
LAYER = [f"self_attn.{part}_proj" for part in "qkvo"]
LAYER += [f"mlp.experts.{e}.{part}_proj" for e in range(8) for part in ("gate", "up", "down")]
PROJECTIONS = [f"model.layers.{layer}.{name}" for layer in range(2) for name in LAYER]


class Ignoring(AdapterRollout):
    """Accepts an adapter and computes without some of its factors."""

    ignored = ""

    def load_weights(self, weights, version):
        factors = dict(weights)
        for name in factors:
            if name.startswith(self.ignored) and "lora_B" in name:
                factors[name] = torch.zeros_like(factors[name])
        return super().load_weights(iter(factors.items()), version)


@pytest.fixture(scope="module")
def trainer(tiny_moe):
    return TorchTrainer(tiny_moe, lora_rank=8)


@pytest.fixture(scope="module")
def engines(tiny_moe):
    return {
        precision: Ignoring(HFRolloutEngine(tiny_moe, precision=precision), tiny_moe, rank=8)
        for precision in (Precision.FP32, Precision.BF16)
    }


@pytest.fixture
def engine(engines):
    return engines[Precision.FP32]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_an_engine_that_uses_every_factor_passes(engines, trainer, precision):
    engines[precision].ignored = "nothing"

    assert 0 == check_adapter(engines[precision], trainer, VOCABULARY, version=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "name"),
    [
        *((Precision.FP32, name) for name in PROJECTIONS),
        *((Precision.BF16, name) for name in PROJECTIONS if "layers.1.mlp.experts.1" in name),
    ],
)
def test_an_engine_that_ignores_the_factors_of_one_projection_is_stopped(
    engines, trainer, precision, name
):
    engine = engines[precision]
    engine.ignored = f"{name}."

    with pytest.raises(EngineError, match="accepts the adapter and ignores a part of it") as found:
        check_adapter(engine, trainer, VOCABULARY, version=0)

    _, _, layer, _, experts, expert, *_ = f"{name}..".split(".")
    if experts == "experts":
        assert f"expert {expert} of MoE layer {layer};" in str(found.value)


def test_the_probe_leaves_the_trainer_as_it_was(engine, trainer):
    before = {name: factor.clone() for name, factor in trainer.weights()}
    engine.ignored = "nothing"
    check_adapter(engine, trainer, VOCABULARY, version=0)

    assert all(torch.equal(before[name], factor) for name, factor in trainer.weights())


def test_experts_that_the_probe_does_not_reach_are_counted(engine, trainer, monkeypatch, caplog):
    monkeypatch.setattr(canary, "LEAST_TOKENS", 10_000)
    engine.ignored = "nothing"
    with caplog.at_level(logging.WARNING):
        rest = check_adapter(engine, trainer, VOCABULARY, version=0)

    assert 16 == rest
    assert "16 of 16 experts were not compared" in caplog.text


def test_a_dense_model_is_compared_over_all_tokens(tiny_dense):
    trainer = TorchTrainer(tiny_dense, lora_rank=8)
    engine = Ignoring(HFRolloutEngine(tiny_dense), tiny_dense, rank=8)
    engine.ignored = "nothing"
    assert 0 == check_adapter(engine, trainer, VOCABULARY, version=0)

    engine.ignored = "model.layers.0.mlp.up_proj."
    with pytest.raises(EngineError, match="on the tokens of all experts"):
        check_adapter(engine, trainer, VOCABULARY, version=0)


def test_log_probabilities_that_are_not_numbers_are_no_agreement(engine, trainer):
    class Broken(Ignoring):
        ignored = "nothing"

        def score_logprobs(self, tokens):
            return [np.full(len(one) - 1, np.nan, dtype=np.float32) for one in tokens]

    broken = Broken(engine._engine, engine._folder, rank=8)

    with pytest.raises(EngineError, match="nan nats"):
        check_adapter(broken, trainer, VOCABULARY, version=0)
