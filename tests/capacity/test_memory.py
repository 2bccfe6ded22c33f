"""The budget of a GPU: by hand, against what torch keeps, and for the layouts that are shipped.

Against Megatron and vLLM: tests/capacity/test_memory_of_engines.py.
"""

from dataclasses import replace

import pytest
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.algorithms.logprobs import CHUNK_LOGITS
from tasks.capacity import memory
from tasks.capacity.memory import EMBEDDED, GIB, TRANSFORMER_ENGINE, Workload, budget
from tasks.capacity.model_shape import (
    COMPASSMAX,
    QWEN3_15B_A2B,
    ModelShape,
    rank_tensors,
    shape_of,
)
from tasks.capacity.plan import PRESETS
from tasks.engines.embedded.packed_attention import use_packed_attention
from tasks.engines.embedded.trainer import TorchTrainer, divide
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron.micro_batches import ATTENTION_SHARE

TINY = ModelShape(
    layers=2,
    hidden=64,
    heads=4,
    key_value_heads=2,
    head_size=16,
    vocabulary=128,
    width=48,
    experts=8,
    experts_per_token=2,
    tied=True,
)
QWEN3_30B_A3B = replace(QWEN3_15B_A2B, layers=48)
BF16 = LayoutSettings(precision=Precision.BF16)
FULL_WORK = Workload(prompt_tokens=1024, response_tokens=32_768, sequences=512 * 8)
FULL = LayoutSettings(
    tensor=8,
    pipeline=8,
    expert=16,
    recompute=True,
    micro_batch_tokens=33_792,
    precision=Precision.BF16,
    rollout_tensor=8,
    rollout_memory=0.55,
)
NODE_WORK = Workload(prompt_tokens=1024, response_tokens=16_384, sequences=128 * 8)
NODE = LayoutSettings(
    tensor=4,
    expert=8,
    recompute=True,
    micro_batch_tokens=17_408,
    precision=Precision.BF16,
    rollout_tensor=2,
    rollout_memory=0.4,
)


def kept_by_embedded_layers(
    make_config=Qwen3MoeConfig, make_model=Qwen3MoeForCausalLM, **sizes
) -> tuple[int, int]:
    """Bytes that autograd saves for one more layer, and the number of packed tokens."""
    config = make_config(
        **{
            "vocab_size": 128,
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 48,
            "tie_word_embeddings": True,
        }
        | sizes
    )
    tokens_NT = torch.randint(0, 128, (2, 48), generator=torch.Generator().manual_seed(0))
    batch = TokenBatch(tokens_NT, torch.tensor([48, 48]), tokens_NT >= 0, None, {})
    (part,) = divide(batch, 8192, 0, 1)
    micro = part.packed()
    cells_M = micro.packing.cells_M
    totals = []
    for layers in (1, 2):
        config.num_hidden_layers = layers
        model = make_model(config)
        model.set_experts_implementation("grouped_mm")
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        saved = {}

        def keep(tensor, weights=weights, saved=saved):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                saved[storage.data_ptr()] = (storage.nbytes(), tensor)
            return tensor

        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            use_packed_attention(model),
        ):
            model.get_decoder()(
                input_ids=tokens_NT.flatten()[cells_M][None],
                position_ids=(cells_M % 48)[None],
                use_cache=False,
                packed=micro.layout,
            )
        totals.append(sum(size for size, _ in saved.values()))
    return totals[1] - totals[0], len(cells_M)


@pytest.mark.parametrize(
    ("sizes", "geometry"),
    [
        ({}, TINY),
        ({"moe_intermediate_size": 96}, replace(TINY, width=96)),
        ({"hidden_size": 128}, replace(TINY, hidden=128)),
        ({"num_attention_heads": 8}, replace(TINY, heads=8)),
        ({"head_dim": 32}, replace(TINY, head_size=32)),
        ({"num_experts_per_tok": 4}, replace(TINY, experts_per_token=4)),
        ({"num_experts": 16}, replace(TINY, experts=16)),
        ({"num_key_value_heads": 4}, replace(TINY, key_value_heads=4)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_activations_are_what_autograd_saves(sizes, geometry):
    measured, tokens = kept_by_embedded_layers(**sizes)

    computed = memory.layer_bytes(geometry, LayoutSettings(), tokens, EMBEDDED)

    assert measured == pytest.approx(computed, rel=0.05)


def test_the_optimizer_has_two_moments_of_everything(tiny_moe):
    trainer = TorchTrainer(tiny_moe)
    geometry = shape_of(trainer._model.config.to_dict() | {"num_experts": 8})
    for parameter in trainer._model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    trainer._optimizer.step()
    moments = sum(
        tensor.nbytes
        for state in trainer._optimizer.state.values()
        for name, tensor in state.items()
        if name != "step"
    )

    assert moments == memory.state_bytes(geometry, LayoutSettings(), 1, 0)[2]


def test_bf16_training_takes_eighteen_bytes_a_parameter_on_one_gpu_and_less_on_more():
    model = replace(QWEN3_15B_A2B, layers=2)
    alone = sum(memory.state_bytes(model, BF16, 1, 0))
    shared = sum(memory.state_bytes(model, BF16, 8, 0))

    assert 18 * model.parameters == pytest.approx(alone, rel=1e-4)
    assert (2 + 4 + 12 / 8) * model.parameters == pytest.approx(shared, rel=1e-4)


def test_experts_divided_over_ranks_are_divided_once_more_among_the_ranks_that_have_the_same():
    layout = BF16.model_copy(update={"expert": 4})
    tensors = rank_tensors(TINY, layout, 0)
    own = sum(tensors.shared) / 8 + sum(tensors.expert) / 2

    optimizer = memory.state_bytes(TINY, layout, 8, 0)[2]

    assert 12 * own == pytest.approx(optimizer, rel=0.02)
    assert TINY.layers * 2 * TINY.expert_parameters == sum(tensors.expert)


def test_recompute_keeps_the_inputs_of_layers_and_one_layer():
    whole = memory.layer_bytes(TINY, BF16, 1000, TRANSFORMER_ENGINE, imbalance=memory.IMBALANCE)
    recomputed = BF16.model_copy(update={"recompute": True})

    assert 2 * whole == memory.activation_bytes(TINY, BF16, 1000, 0, TRANSFORMER_ENGINE)
    assert 2 * (1000 * 64 * 2) + whole == memory.activation_bytes(
        TINY, recomputed, 1000, 0, TRANSFORMER_ENGINE
    )


def test_the_first_stage_has_most_micro_batches_in_flight():
    two = BF16.model_copy(update={"pipeline": 2})
    first, last = (
        memory.activation_bytes(TINY, two, 1000, stage, TRANSFORMER_ENGINE) for stage in (0, 1)
    )

    assert first == 2 * last


def test_sequence_parallel_ranks_keep_equal_parts():
    two = BF16.model_copy(update={"tensor": 2})
    whole = memory.layer_bytes(TINY, BF16, 1000, TRANSFORMER_ENGINE)

    assert whole / 2 == pytest.approx(
        memory.layer_bytes(TINY, two, 1000, TRANSFORMER_ENGINE), abs=1
    )


def test_logits_are_the_last_stages_and_never_more_than_a_chunk():
    layout = FULL.model_copy(update={"pipeline": 2})
    first, last = (
        memory.trainer_memory(COMPASSMAX, layout, FULL_WORK, world=256, stage=stage).logits
        for stage in (0, 1)
    )

    assert 0 == first
    assert 3 * 4 * CHUNK_LOGITS + 2 * 2 * 33_792 * 8192 == last


def test_a_reference_model_costs_its_weights_once_more():
    plain = memory.trainer_memory(COMPASSMAX, FULL, FULL_WORK, world=256, stage=0)
    beside = memory.trainer_memory(
        COMPASSMAX, FULL, replace(FULL_WORK, reference=True), world=256, stage=0
    )

    assert plain.state + plain.weights == beside.state


def test_a_gpu_has_one_key_value_head_at_least():
    assert 72 * 1 * 2 * 128 * 2 == memory.cache_token_bytes(COMPASSMAX, 8, Precision.FP8)
    assert 48 * 1 * 2 * 128 * 2 == memory.cache_token_bytes(QWEN3_30B_A3B, 8, Precision.BF16)
    assert 48 * 4 * 2 * 128 * 4 == memory.cache_token_bytes(QWEN3_30B_A3B, 1, Precision.FP32)


def test_fp8_halves_what_is_quantised_and_nothing_else():
    fp8, bf16 = (
        memory.rollout_weight_bytes(COMPASSMAX, 8, kind) for kind in (Precision.FP8, Precision.BF16)
    )
    tables = 2 * 2 * COMPASSMAX.vocabulary * COMPASSMAX.hidden // 8

    assert bf16 > 2 * COMPASSMAX.parameters // 8
    assert tables + (bf16 - tables) / 2 == pytest.approx(fp8, rel=1e-3)


def test_the_full_scale_layout_fits_with_five_percent_to_spare():
    found = budget(COMPASSMAX, FULL, Precision.FP8, FULL_WORK, gpus=256)

    assert found.fits(headroom=0.05)
    # Eleven responses of 32k tokens at once on every engine, or a hundred of 3,800.
    assert 11 <= found.rollout.cached_tokens // FULL_WORK.longest


@pytest.mark.parametrize(
    ("change", "precision"),
    [
        ({"pipeline": 1}, Precision.FP8),
        ({"expert": 2}, Precision.FP8),
        ({"tensor": 1}, Precision.FP8),
        ({"recompute": False}, Precision.FP8),
        ({}, Precision.BF16),
        ({"rollout_tensor": 4}, Precision.FP8),
        ({"rollout_memory": 0.8}, Precision.FP8),
        ({"rollout_memory": 0.37}, Precision.FP8),
    ],
    ids=[
        "one stage",
        "half of the experts on every rank",
        "no tensor parallelism",
        "no recompute",
        "bf16 rollouts",
        "half the GPUs an engine",
        "a greedy engine",
        "an engine without a cache",
    ],
)
def test_a_layout_that_is_bad_in_one_thing_does_not_fit(change, precision):
    layout = FULL.model_copy(update=change)

    assert not budget(COMPASSMAX, layout, precision, FULL_WORK, gpus=256).fits(headroom=0.05)


def test_one_node_holds_a_model_of_15b_but_not_of_30b():
    small = budget(QWEN3_15B_A2B, NODE, Precision.BF16, NODE_WORK, gpus=8)
    large = budget(QWEN3_30B_A3B, NODE, Precision.BF16, NODE_WORK, gpus=8)
    wider = NODE.model_copy(update={"rollout_tensor": 4, "rollout_memory": 0.35})

    assert small.fits(headroom=0.1)
    assert large.trainer.state + large.trainer.gradients > 64 * GIB
    assert not large.fits(headroom=0.0)
    assert budget(QWEN3_30B_A3B, wider, Precision.BF16, NODE_WORK, gpus=32).fits(headroom=0.1)


def test_gpus_that_only_roll_out_hold_no_trainer():
    layout = NODE.model_copy(
        update={"expert": 4, "dedicated_rollout_gpus": 4, "rollout_memory": 0.9}
    )
    found = budget(QWEN3_15B_A2B, layout, Precision.BF16, NODE_WORK, gpus=8)

    arriving = found.rollout.receiving
    assert memory.FIXED_BYTES + found.rollout.claim + arriving == found.phases["rollout"]
    assert found.trainer.state + found.trainer.weight_sync == (
        found.phases["weight sync"] - memory.FIXED_BYTES
    )


@pytest.mark.parametrize("shape", [shape for _, shape, _ in PRESETS.values()], ids=PRESETS.keys())
def test_a_prompt_that_attention_repeats_is_in_the_budget_of_a_micro_batch(shape):
    """Queries, keys, values and results: what a row keeps that only attention computes again."""
    tokens = 1000
    layer = memory.layer_bytes(shape, BF16, tokens, TRANSFORMER_ENGINE)
    repeated = 2 * tokens * 2 * (shape.query_size + shape.key_value_size)

    assert ATTENTION_SHARE * repeated <= layer
