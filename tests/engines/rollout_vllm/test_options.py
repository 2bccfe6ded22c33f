"""What vLLM is opened with."""
# ruff: noqa: E402, the skip stands before what needs vLLM

import pytest
import torch

pytest.importorskip("vllm")
pytestmark = pytest.mark.engines

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from tasks.engines.rollout_vllm.options import engine_options, model_facts
from tasks.errors import SettingsError


def options(folder, precision, **layout):
    return engine_options(
        folder,
        model_facts(folder),
        precision=precision,
        layout=LayoutSettings(**layout),
        fp8_ignored_layers=("model.layers.3.mlp.experts",),
    )


def test_fp8_leaves_routers_embeddings_head_and_super_experts_alone(tiny_moe):
    chosen = options(tiny_moe, Precision.FP8)

    assert "fp8_per_block" == chosen["quantization"]
    assert "bfloat16" == chosen["dtype"]
    assert [
        "lm_head",
        "re:.*embed_tokens",
        "re:.*\\.mlp\\.gate$",
        "model.layers.3.mlp.experts",
    ] == chosen["quantization_config"]["ignore"]


def test_nothing_is_quantised_unless_asked_for(tiny_moe):
    for precision in (Precision.FP32, Precision.BF16):
        assert "quantization" not in options(tiny_moe, precision)


def test_routes_are_recorded_and_log_probs_are_those_of_the_sampling_distribution(tiny_moe):
    chosen = options(tiny_moe, Precision.FP32, rollout_tensor=2, dedicated_rollout_gpus=2)

    assert chosen["enable_return_routed_experts"]
    assert chosen["enable_prefix_caching"]
    assert "processed_logprobs" == chosen["logprobs_mode"]
    assert 2 == chosen["tensor_parallel_size"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_fp8_without_a_gpu_is_refused_by_name(tiny_moe):
    with pytest.raises(SettingsError, match=r"engines\.precision 'fp8' needs a GPU"):
        VllmRolloutEngine(tiny_moe, precision=Precision.FP8)
