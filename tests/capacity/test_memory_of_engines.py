"""The budget's formulas against what Megatron and vLLM really hold, byte by byte."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("vllm")

from transformers import Qwen2Config, Qwen3Config, Qwen3MoeConfig

from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision, RolloutKind
from tasks.capacity import memory
from tasks.capacity.memory import SavedTensors
from tasks.capacity.model_shape import rank_tensors
from tasks.capacity.plan import read_shape
from tasks.engines.protocols import TokenBatch
from tasks.engines.select import open_rollout
from tasks.engines.trainer_megatron.micro_batches import cut
from tests.capacity.sizes_of_world import hold, saved_by_a_layer, sync_peak
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import EXPERTS, SIZES, write_model

pytestmark = pytest.mark.engines

LOCAL = SavedTensors(hidden=6, expert_hidden=1, expert_width=6, query=6, key_value=2, rotary=8)
"""Megatron-core's torch layers in fp32, attention by `scaled_dot_product_attention`."""
MOE = {**SIZES, **EXPERTS, "head_dim": 16, "norm_topk_prob": True}
LAYOUTS = {
    "alone": (LayoutSettings(), 1),
    "alone, bf16": (LayoutSettings(precision=Precision.BF16), 1),
    "two data-parallel": (LayoutSettings(), 2),
    "tensor 2": (LayoutSettings(tensor=2), 2),
    "pipeline 2": (LayoutSettings(pipeline=2), 2),
    "expert 2": (LayoutSettings(expert=2), 2),
    "expert 2, bf16": (LayoutSettings(expert=2, precision=Precision.BF16), 2),
    "tensor 2 and expert 2": (LayoutSettings(tensor=2, expert=2), 2),
}


@pytest.mark.parametrize(
    ("name", "tied"),
    [*((name, False) for name in LAYOUTS), ("alone", True), ("pipeline 2", True)],
    ids=lambda value: value if isinstance(value, str) else ("own head", "tied head")[value],
)
def test_a_rank_holds_what_the_formula_says(name, tied, tiny_moe, tmp_path):
    layout, world = LAYOUTS[name]
    config = Qwen3MoeConfig(**MOE, tie_word_embeddings=tied)
    folder = write_model(config, tiny_moe, tmp_path / "model")
    shape = read_shape(folder)

    ranks = run_world(hold, world, folder, layout)

    for stage in range(layout.pipeline):
        held = [rank for rank in ranks if rank.stage == stage]
        weights, gradients, state = memory.state_bytes(shape, layout, world, stage)
        assert {rank_tensors(shape, layout, stage).total} == {rank.parameters for rank in held}
        assert {(weights, gradients)} == {(rank.weights, rank.gradients) for rank in held}
        assert state == max(rank.moments + rank.masters for rank in held)


@pytest.mark.parametrize(
    "config",
    [Qwen3Config(**SIZES, head_dim=16), Qwen2Config(**SIZES, tie_word_embeddings=True)],
    ids=["qwen3", "qwen2"],
)
def test_dense_models_are_counted_too(config, tiny_moe, tmp_path):
    folder = write_model(config, tiny_moe, tmp_path / "model")

    (held,) = run_world(hold, 1, folder, LayoutSettings())

    assert rank_tensors(read_shape(folder), LayoutSettings(), 0).total == held.parameters


def one_and_two_layers(tokenizer, folder, **sizes):
    """Models that differ in one layer."""
    configs = [Qwen3MoeConfig(**(MOE | sizes | {"num_hidden_layers": count})) for count in (1, 2)]
    return tuple(
        write_model(config, tokenizer, folder / str(config.num_hidden_layers)) for config in configs
    )


@pytest.mark.parametrize(
    "sizes",
    [{}, {"moe_intermediate_size": 48}, {"hidden_size": 64}, {"num_experts_per_tok": 4}],
    ids=["small", "wide experts", "wide", "four experts a token"],
)
@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
def test_a_layer_keeps_for_backward_what_the_formula_says(sizes, recompute, tiny_moe, tmp_path):
    layout = LayoutSettings(recompute=recompute)
    folders = one_and_two_layers(tiny_moe, tmp_path, **sizes)
    shape = read_shape(folders[0])
    micro = cut(TokenBatch.of_sequences([np.arange(48), 60 + np.arange(48)]), [0, 1])

    (saved,) = run_world(saved_by_a_layer, 1, folders, layout, micro)

    if recompute:
        assert memory.checkpoint_bytes(shape, layout, 96) == saved
    else:
        computed = memory.layer_bytes(shape, layout, 96, LOCAL)
        assert saved == pytest.approx(computed, rel=0.05)


@pytest.mark.parametrize("name", ["alone", "tensor 2", "pipeline 2", "expert 2, bf16"])
@pytest.mark.parametrize(
    "sizes",
    [{}, {"moe_intermediate_size": 512}, {"num_attention_heads": 32}],
    ids=["vocabulary", "wide experts", "many heads"],
)
def test_a_weight_sync_takes_no_more_than_the_formula_says(name, sizes, tiny_moe, tmp_path):
    layout, world = LAYOUTS[name]
    folder = write_model(Qwen3MoeConfig(**(MOE | sizes)), tiny_moe, tmp_path / "model")

    peak = max(run_world(sync_peak, world, folder, layout))

    assert 0.25 <= peak / memory.sync_bytes(read_shape(folder), layout) <= 1.0


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_a_token_in_the_cache_takes_what_vllm_says(precision, served_moe):
    shape = read_shape(served_moe)
    machine = MachineSettings(rollout=RolloutKind.VLLM, precision=precision)

    with closing(open_rollout(machine, served_moe)) as engine:
        (spec,) = engine._backend._engine.collective_rpc("get_kv_cache_spec")
    (block,) = {layer.block_size for layer in spec.values()}
    pages = sum(layer.page_size_bytes for layer in spec.values())

    assert shape.layers == len(spec)
    assert block * memory.cache_token_bytes(shape, 1, precision) == pages


def test_vllm_holds_the_weights_the_formula_says(served_moe):
    shape = read_shape(served_moe)
    machine = MachineSettings(rollout=RolloutKind.VLLM, precision=Precision.FP32)

    with closing(open_rollout(machine, served_moe)) as engine:
        executor = engine._backend._engine.engine_core.engine_core.model_executor
        network = executor.driver_worker.get_model()
        held = sum(weight.nbytes for weight in network.parameters())
    # On a CPU vLLM packs these away from what is called a parameter.
    projected = shape.hidden * 2 * (shape.query_size + shape.key_value_size)
    packed = 4 * shape.layers * (projected + shape.experts * shape.hidden)

    assert memory.rollout_weight_bytes(shape, 1, Precision.FP32) == held + packed


def test_a_shared_prompt_is_kept_once_but_by_attention(tiny_moe, tmp_path):
    folders = one_and_two_layers(tiny_moe, tmp_path)
    shape, prompt = read_shape(folders[0]), np.arange(40)
    answers = [np.concatenate([prompt, 50 * row + np.arange(9)]) for row in range(1, 5)]
    batch = TokenBatch.of_sequences(answers)
    micro = cut(batch, range(4), prefixes=batch.prefixes)
    repeated = SavedTensors(0, 0, 0, query=2, key_value=2, rotary=LOCAL.rotary)
    once = replace(LOCAL, query=LOCAL.query - 2, key_value=LOCAL.key_value - 2, rotary=0)

    (saved,) = run_world(saved_by_a_layer, 1, folders, LayoutSettings(), micro)

    assert (76, 196) == (len(micro.tokens_M), sum(micro.parts))
    computed = [
        memory.layer_bytes(shape, LayoutSettings(), rows, kernels)
        for rows, kernels in ((76, once), (196, repeated))
    ]
    assert saved == pytest.approx(sum(computed), rel=0.05)
