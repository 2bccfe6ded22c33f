"""Weights on a grid of 255 levels."""

import pytest
import torch

from data_schemas.machine_settings import MachineSettings, Precision, TrainingEngines
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.int8 import round_weights, rounded_to_int8
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import Request, Sampling
from tasks.errors import EngineError, SettingsError


def test_weights_are_rounded_to_the_grid_that_was_worked_by_hand():
    # Largest weight 1.27: a level is 0.01. Without a weight, an output stays 0.
    weights = torch.tensor([[1.27, -0.004, 0.006, -0.993], [0.0, 0.0, 0.0, 0.0]])

    expected = torch.tensor([[1.27, 0.0, 0.01, -0.99], [0.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(expected, rounded_to_int8(weights))


def test_every_output_of_every_expert_has_a_scale_of_its_own():
    experts = torch.randn(3, 4, 5) * torch.tensor([1.0, 10.0, 100.0])[:, None, None]

    found = rounded_to_int8(experts)

    levels = found / (experts.abs().amax(dim=2, keepdim=True) / 127)
    torch.testing.assert_close(levels.round(), levels, atol=1e-3, rtol=0)
    assert (levels.abs().amax(dim=2) > 126.9).all()
    half = experts.abs().amax(dim=2, keepdim=True) / 254
    assert ((found - experts).abs() <= half * 1.001).all()


def test_routers_embeddings_norms_and_output_layer_stay_as_they_are(tiny_moe):
    before, after = load_model(tiny_moe), load_model(tiny_moe)

    count = round_weights(after)

    kept, changed = [], []
    for (name, one), other in zip(before.named_parameters(), after.parameters(), strict=True):
        (kept if torch.equal(one, other) else changed).append(name)
    assert count == len(changed)
    assert all(
        "norm" in name or "gate.weight" in name or "embed" in name or "head" in name
        for name in kept
    )
    assert {"experts", "self_attn"} <= {part for name in changed for part in name.split(".")}


def test_experts_whose_last_axis_are_outputs_are_refused_and_nothing_is_rounded(tiny_moe):
    before, model = load_model(tiny_moe), load_model(tiny_moe)
    name, module = next(
        (name, one) for name, one in model.named_modules() if name.endswith("mlp.experts")
    )
    turned = module.get_parameter("gate_up_proj").mT.contiguous()
    module.gate_up_proj = torch.nn.Parameter(turned)

    with pytest.raises(SettingsError, match=rf"{name}\.gate_up_proj \(.* last axis are inputs"):
        round_weights(model)

    own = dict(model.named_parameters())
    assert all(
        place == f"{name}.gate_up_proj" or torch.equal(one, own[place])
        for place, one in before.named_parameters()
    )


def test_rollouts_of_int8_are_those_of_a_model_whose_weights_were_rounded(tiny_moe, tmp_path):
    model = load_model(tiny_moe)
    round_weights(model)
    model.save_pretrained(tmp_path)
    load_tokenizer(tiny_moe).save_pretrained(tmp_path)
    sampling = Sampling(max_new_tokens=6, temperature=1.0, seed=0)
    request = Request("one", torch.arange(5, 15).int().numpy(), num_samples=2)

    expected = list(HFRolloutEngine(tmp_path).generate([request], sampling))
    found = list(HFRolloutEngine(tiny_moe, precision=Precision.INT8).generate([request], sampling))

    for one, other in zip(expected, found, strict=True):
        assert one.response_tokens.tolist() == other.response_tokens.tolist()
        assert one.logprobs.tolist() == pytest.approx(other.logprobs.tolist(), abs=1e-6)


def test_an_engine_of_int8_takes_no_new_weights(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, precision=Precision.INT8)

    with pytest.raises(EngineError, match="'int8' takes no new weights"):
        engine.load_weights(iter([]), 1)


def test_what_an_engine_cannot_do_is_refused_by_name():
    with pytest.raises(ValueError, match="int8, which rollout 'vllm' does not have"):
        MachineSettings(rollout="vllm", precision="int8")
    with pytest.raises(ValueError, match="int8, in which rollout 'hf' takes no new weights"):
        TrainingEngines(precision="int8")
    with pytest.raises(ValueError, match=r"layout\.precision is int8; the trainer computes in"):
        MachineSettings(trainer="megatron", layout={"precision": "int8"})
