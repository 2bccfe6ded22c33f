"""What vLLM is opened with."""
# ruff: noqa: E402, the skip stands before what needs vLLM

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("vllm")
pytestmark = pytest.mark.engines

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.capacity.memory import BATCHED_TOKENS
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from tasks.engines.rollout_vllm.options import (
    PREFILL_TOKENS,
    engine_options,
    model_facts,
    refuse,
)
from tasks.errors import SettingsError


def options(folder, precision, *, fp32_router=False, sleeps=True, record_kept=False, **layout):
    return engine_options(
        folder,
        model_facts(folder),
        precision=precision,
        layout=LayoutSettings(**layout),
        fp32_router=fp32_router,
        fp8_ignored_layers=("model.layers.3.mlp.experts",),
        sleeps=sleeps,
        record_kept=record_kept,
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
    limits = ("distributed_timeout_seconds", "cpu_distributed_timeout_seconds")
    assert [600, 600] == [chosen[name] for name in limits]


def test_routers_in_fp32_are_another_architecture_of_the_same_weights(tiny_moe):
    chosen = options(tiny_moe, Precision.BF16, fp32_router=True)

    assert {"architectures": ["Fp32RouterQwen3Moe"]} == chosen["hf_overrides"]
    assert "hf_overrides" not in options(tiny_moe, Precision.BF16)


def test_a_dense_model_has_no_router_to_keep_in_fp32(tiny_dense):
    with pytest.raises(SettingsError, match=r"engines\.fp32_router is set, but a dense model"):
        options(tiny_dense, Precision.BF16, fp32_router=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_fp8_without_a_gpu_is_refused_by_name(tiny_moe):
    with pytest.raises(SettingsError, match=r"engines\.precision 'fp8' needs a GPU"):
        VllmRolloutEngine(tiny_moe, precision=Precision.FP8)


def test_masks_are_returned_by_an_engine_that_records_them_alone(tiny_moe):
    with_masks = options(tiny_moe, Precision.BF16, record_kept=True)
    without = options(tiny_moe, Precision.BF16)

    assert {"return_sampling_mask": True} == {
        name: value for name, value in with_masks.items() if name not in without
    }


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_recorded_sets_without_a_gpu_are_refused_with_what_to_do(tiny_moe):
    refusal = r"top_p or top_k is set.*GPU with Triton.*Set engines\.rollout to 'hf', or"
    with pytest.raises(SettingsError, match=refusal):
        VllmRolloutEngine(tiny_moe, record_kept=True)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


@pytest.mark.usefixtures("gpu")
def test_a_gpu_prefills_as_many_tokens_at_once_as_the_memory_budget_counts(tiny_moe):
    facts = replace(model_facts(tiny_moe), max_tokens=40_960)
    layout = LayoutSettings(rollout_memory=0.3)

    chosen = engine_options(
        tiny_moe,
        facts,
        precision=Precision.BF16,
        layout=layout,
        fp32_router=False,
        fp8_ignored_layers=(),
        sleeps=True,
        record_kept=False,
    )

    assert BATCHED_TOKENS == PREFILL_TOKENS == chosen["max_num_batched_tokens"]
    assert "enable_chunked_prefill" not in chosen


@pytest.mark.usefixtures("gpu")
def test_only_an_engine_that_shares_its_gpus_with_a_trainer_can_sleep(tiny_moe):
    def sleep_mode(**chosen):
        return options(tiny_moe, Precision.BF16, **chosen)["enable_sleep_mode"]

    assert sleep_mode()
    assert not sleep_mode(sleeps=False)
    assert not sleep_mode(dedicated_rollout_gpus=1)


def test_the_longest_sequence_is_what_the_cache_holds_of_the_models_positions(
    served_moe, tmp_path, monkeypatch
):
    folder = Path(shutil.copytree(served_moe, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    positions = 2**18
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": positions}))
    monkeypatch.setattr("tasks.engines.rollout_vllm.options.CPU_CACHE_BYTES", 2**20)

    engine = VllmRolloutEngine(folder)
    try:
        held = engine._backend.max_tokens
        assert 1000 < held < positions
        prompt = np.arange(2, 12, dtype=np.int32)
        request = Request("p", prompt, 1)
        with pytest.raises(SettingsError, match=rf"cache holds {held} of one sequence; raise"):
            next(engine.generate([request], Sampling(held, temperature=1.0, seed=0)))
        (rollout,) = engine.generate([request], Sampling(8, temperature=1.0, seed=0))
        assert 8 == len(rollout.response_tokens)
    finally:
        engine.close()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("width", "tensor"), [(768, 4), (96, 1), (1536, 8)])
def test_experts_that_do_not_split_into_whole_fp8_blocks_are_refused_by_name(
    tiny_moe, width, tensor
):
    facts = replace(model_facts(tiny_moe), expert_width=width)
    layout = LayoutSettings(rollout_tensor=tensor)

    with pytest.raises(SettingsError, match=rf"rollout_tensor {tensor}: with engines\.precision"):
        refuse(facts, Precision.FP8, layout)
    refuse(facts, Precision.BF16, layout)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("width", "tensor"), [(768, 2), (128, 1), (1536, 4)])
def test_experts_of_whole_fp8_blocks_are_accepted(tiny_moe, width, tensor):
    facts = replace(model_facts(tiny_moe), expert_width=width)

    refuse(facts, Precision.FP8, LayoutSettings(rollout_tensor=tensor))
