"""Dense models as mixtures of experts that compute the same."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.router_replay import recording, routers
from tasks.errors import SettingsError
from tasks.models.architectures import read_architecture
from tasks.training.foundation import copied_experts
from tests.engines.families import write_family


def test_a_mixture_of_copied_experts_has_the_logits_of_the_dense_model(tiny_dense, tmp_path):
    dense = write_family("llama", tiny_dense, tmp_path / "dense")
    copied_experts.main([str(dense), str(tmp_path / "mixture"), "--experts", "3"])

    assert 3 == read_architecture(tmp_path / "mixture").num_experts
    one, other = load_model(dense), load_model(tmp_path / "mixture")
    assert "MixtralForCausalLM" == type(other).__name__
    tokens = torch.randint(0, 250, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode(), recording(other) as record:
        difference = one(tokens).logits - other(tokens).logits
        routes = record.take()

    assert float(difference.abs().max()) < 1e-5
    # Every expert has tokens from which it can learn to differ.
    assert {0, 1, 2} == set(routes.flatten().tolist())


@pytest.mark.slow
@pytest.mark.parametrize("experts", [3, 4])
def test_equal_gates_leave_the_logits_exactly_those_of_the_dense_model(
    tiny_dense, tmp_path, experts
):
    dense = write_family("llama", tiny_dense, tmp_path / "dense")
    copied_experts.copy_experts(dense, _new(tmp_path / "mixture"), experts)
    one, other = load_model(dense), load_model(tmp_path / "mixture")
    with torch.no_grad():
        for router in routers(other):
            router.weight.zero_()  # a token's two gates are 0.5, so that nothing is rounded
    tokens = torch.randint(0, 250, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        difference = one(tokens).logits - other(tokens).logits

    assert 0.0 == float(difference.abs().max())


def test_transformers_reads_the_mixture_as_the_pipeline_does(tiny_dense, tmp_path):
    dense = write_family("llama", tiny_dense, tmp_path / "dense")
    copied_experts.copy_experts(dense, _new(tmp_path / "mixture"), 4)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "mixture", dtype=torch.float32)
    tokens = torch.arange(20)[None]
    with torch.inference_mode():
        difference = theirs(tokens).logits - load_model(dense)(tokens).logits

    assert float(difference.abs().max()) < 1e-5


def test_other_families_and_a_single_expert_are_refused_by_name(tiny_moe, tiny_dense, tmp_path):
    with pytest.raises(SettingsError, match="'qwen3_moe'; experts are copied of 'llama'"):
        copied_experts.copy_experts(tiny_moe, tmp_path, 4)
    dense = write_family("llama", tiny_dense, tmp_path / "dense")
    with pytest.raises(SettingsError, match="--experts is 1; a token has 2"):
        copied_experts.copy_experts(dense, tmp_path, 1)


def _new(folder):
    folder.mkdir()
    return folder
