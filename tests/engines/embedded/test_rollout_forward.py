"""The generation pass computes what transformers computes, routes included."""

import pytest
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

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


@torch.inference_mode()
def test_decoding_computes_the_angles_of_a_position_once_and_to_the_same_bit(tiny_moe):
    model = load_model(tiny_moe)
    rotary = model.model.rotary_emb
    calls = []
    rotary.register_forward_hook(lambda *_: calls.append(1))

    prefill_and_decode(model, torch.zeros(5, 12, dtype=torch.int64))

    assert 2 == len(calls)  # of the prefill, and of the table for four passes of decoding
    like = torch.zeros(1, 1)
    table_TD = torch.stack(rotary(like, torch.arange(2 * 97)[None]))[:, 0]
    for position in (0, 1, 5, 96, 193):
        alone_D = torch.stack(rotary(like, torch.tensor([[position]])))[:, 0, 0]
        assert torch.equal(alone_D, table_TD[:, position])


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


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"use_sliding_window": True, "sliding_window": 4}, "a sliding window"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            "rope_type 'dynamic'",
        ),
    ],
)
def test_a_model_that_computes_otherwise_is_refused(tiny_moe, changes, part):
    config = Qwen3MoeConfig.from_pretrained(tiny_moe, **changes)

    with pytest.raises(SettingsError, match=rf"'hf' does not have {part} of this qwen3_moe model"):
        DecoderForward(Qwen3MoeForCausalLM(config))
