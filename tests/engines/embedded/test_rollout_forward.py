"""The generation pass computes what transformers computes, routes included."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.rollout_forward import DecoderForward
from tasks.engines.embedded.router_replay import recording
from tasks.errors import SettingsError


@torch.inference_mode()
def test_prefill_and_decoding_equal_the_transformers_forward(tiny_moe):
    model = load_model(tiny_moe)
    tokens_PT = torch.randint(0, 250, (5, 12), generator=torch.Generator().manual_seed(0))
    with recording(model) as routes:
        expected_PTV = model(input_ids=tokens_PT).logits
        expected_PTLK = routes.take().unflatten(0, tokens_PT.shape)

    found_PTV, found_PTLK = prefill_and_decode(model, tokens_PT)

    assert torch.allclose(expected_PTV, found_PTV, atol=1e-5)
    assert torch.equal(expected_PTLK, found_PTLK.long())


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_a_prefill_keeps_keys_values_and_routes_only(tiny_moe, precision):
    forward = DecoderForward(load_model(tiny_moe, dtype=precision))

    made = forward.prefill(torch.zeros(3, 7, dtype=torch.int64))

    kept = {one.untyped_storage() for one in (*made.keys, *made.values, made.experts_PTLK)}
    assert 3 * 7 * forward.cache_bytes == sum(one.nbytes() for one in kept)


@torch.inference_mode()
def test_a_dense_model_computes_the_same_and_has_no_routes(tiny_dense):
    model = load_model(tiny_dense)
    tokens_PT = torch.randint(0, 250, (5, 12), generator=torch.Generator().manual_seed(0))

    found_PTV, found_PTLK = prefill_and_decode(model, tokens_PT)

    assert torch.allclose(model(input_ids=tokens_PT).logits, found_PTV, atol=1e-5)
    assert (5, 12, 0, 0) == tuple(found_PTLK.shape)
    assert 2 * 2 * 16 * 4 * model.config.num_key_value_heads == DecoderForward(model).cache_bytes


def prefill_and_decode(model, tokens_PT):
    """Logits and routes of 12 tokens: eight prefilled, four decoded."""
    forward = DecoderForward(model)
    prefilled = forward.prefill(tokens_PT[:, :8])
    found = [forward.logits(prefilled.hidden_PTH)]
    experts = [prefilled.experts_PTLK]
    room = [torch.zeros(5, 12, *layer.shape[2:]) for layer in prefilled.keys]
    keys, values = room, [layer.clone() for layer in room]
    for cache, whole in ((keys, prefilled.keys), (values, prefilled.values)):
        for kept, layer in zip(cache, whole, strict=True):
            kept[:, :8] = layer
    for place in range(8, 12):
        logits_BV, experts_BLK = forward.decode(
            tokens_PT[:, place], torch.full((5,), place), keys, values
        )
        found.append(logits_BV[:, None])
        experts.append(experts_BLK[:, None])
    return torch.cat(found, dim=1), torch.cat(experts, dim=1)


def test_a_model_of_another_family_is_refused():
    config = LlamaConfig(
        vocab_size=8,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )

    with pytest.raises(SettingsError, match=r"runs Qwen3-MoE, Qwen3 and Qwen2 models .* not llama"):
        DecoderForward(LlamaForCausalLM(config))
