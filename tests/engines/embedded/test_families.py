"""Every family through the embedded engines, against transformers' own classes.

Letters: P sequences, T tokens, L MoE layers, K experts per token, E experts.
"""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu
from transformers import AutoModelForCausalLM

from data_schemas.machine_settings import LoRASettings, TrainingEngines
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.routing import gate_weights, selection
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.router_replay import (
    bias_of,
    recording,
    replaying,
    routers,
    routing_of,
)
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.expert_names import held_tensors, named_tensors
from tasks.engines.protocols import TokenBatch
from tasks.engines.select import open_rollout, open_trainer
from tasks.errors import SettingsError
from tasks.models.architectures import read_architecture
from tasks.models.weights import Weights
from tests.engines.embedded.test_rollout_forward import prefill_and_decode
from tests.engines.families import BIASED, CONFIGS, ROUTED, write_family
from tests.engines.losses_of_contract import likelihood

GENERATED = tuple(name for name in CONFIGS if name != "deepseek_v3")


@pytest.fixture(scope="module")
def family(tiny_moe, tmp_path_factory):
    """Write a family once. Read only."""
    root, written = tmp_path_factory.mktemp("families"), {}

    def write(name):
        if name not in written:
            written[name] = write_family(name, tiny_moe, root / name.replace(" ", "_"))
        return written[name]

    return write


def drawn_tokens(shape=(5, 12)):
    return torch.randint(0, 250, shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", GENERATED)
@torch.inference_mode()
def test_generation_equals_the_forward_pass_of_transformers(family, name):
    model = load_model(family(name))
    tokens_PT = drawn_tokens()
    expected_PTV = model(input_ids=tokens_PT).logits

    found_PTV, found_PTLK = prefill_and_decode(model, tokens_PT)

    assert expected_PTV.std() > 0.1
    assert torch.allclose(expected_PTV, found_PTV, atol=2e-5)
    layers = len(read_architecture(family(name)).moe_layers)
    assert layers == found_PTLK.shape[2]
    if layers:
        with recording(model) as routes:
            model(input_ids=tokens_PT)
        native_PTLK = routes.take().unflatten(0, tokens_PT.shape)
        assert torch.equal(native_PTLK.sort(3).values, found_PTLK.long().sort(3).values)


@pytest.mark.parametrize("name", CONFIGS)
def test_packed_training_equals_the_padded_pass_of_transformers(family, name):
    batch = TokenBatch.of_sequences([row.numpy() for row in drawn_tokens((4, 20)).int()])
    trainer = TorchTrainer(family(name), micro_batch_tokens=64)

    found = trainer.score(batch, temperature=1.0)

    model = AutoModelForCausalLM.from_pretrained(family(name), dtype=torch.float32)
    logits = model(input_ids=batch.tokens_NT.long()).logits[:, :-1]
    expected = logits.log_softmax(2).gather(2, batch.tokens_NT[:, 1:, None].long())[..., 0]
    assert torch.allclose(expected * batch.response_NT[:, 1:], found.logprobs_NT[:, 1:], atol=2e-5)


@pytest.mark.parametrize("name", ROUTED)
@torch.inference_mode()
def test_a_routing_is_the_formula_of_the_routers(family, name):
    model = load_model(family(name))
    routing = routing_of(model)
    assert routing.experts in (8, 16)
    for router in routers(model):
        rows = torch.randn(200, model.config.hidden_size)
        logits_ME, gates_MK, native_MK = router(rows)

        chosen_MK = selection(logits_ME, routing, bias_of(router))

        assert torch.equal(native_MK.sort(1).values, chosen_MK.sort(1).values)
        assert torch.allclose(gates_MK, gate_weights(logits_ME, native_MK, routing), atol=1e-6)


@pytest.mark.parametrize("name", ROUTED)
def test_replaying_a_models_own_routes_changes_neither_logits_nor_gradients(family, name):
    model, tokens = load_model(family(name)), drawn_tokens((2, 16))
    gate = "model.layers.2.mlp.gate.weight"

    def passed(routes=None):
        model.zero_grad()
        logits = model(input_ids=tokens).logits
        logits.square().mean().backward()
        return logits.detach(), model.get_parameter(gate).grad.clone()

    with recording(model) as record:
        native_logits, native_gradient = passed()
        own_MLK = record.take()
    with replaying(model, own_MLK, routing_of(model)):
        logits, gradient = passed()

    assert native_gradient.abs().max() > 1e-6
    assert torch.allclose(native_logits, logits, atol=1e-6)
    assert torch.allclose(native_gradient, gradient, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUTED)
@pytest.mark.parametrize("wrong", ["score", "scale", "renormalised"])
def test_replay_with_another_formula_would_be_seen(family, name, wrong):
    routing = routing_of(load_model(family(name)))
    others = {
        "score": {"softmax": "sigmoid", "sigmoid": "softmax"}[routing.score],
        "scale": routing.scale + 0.5,
        "renormalised": not routing.renormalised,
    }
    changed = replace(routing, **{wrong: others[wrong]})
    rows = torch.randn(64, routing.experts)
    chosen = rows.topk(routing.top_k, dim=1).indices

    difference = (gate_weights(rows, chosen, routing) - gate_weights(rows, chosen, changed)).abs()

    assert difference.max() > 0.02


@pytest.mark.parametrize("name", CONFIGS)
def test_a_trainer_writes_the_names_and_bits_that_it_read(family, name, tmp_path):
    TorchTrainer(family(name)).export(tmp_path)

    before, after = (
        {
            tensor: value
            for file in sorted(folder.glob("*.safetensors"))
            for tensor, value in load_file(file).items()
        }
        for folder in (family(name), tmp_path)
    )
    assert before.keys() == after.keys()
    assert all(torch.equal(before[tensor], after[tensor]) for tensor in before)
    with Weights(tmp_path) as weights:
        weights.check_tensors()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_sync_has_the_names_of_files_and_every_tensor_of_them(family, name):
    folder = family(name)
    sent = dict(named_tensors(load_model(folder)))

    files = {
        key: value for one in folder.glob("*.safetensors") for key, value in load_file(one).items()
    }
    assert files.keys() == sent.keys()
    assert weight_digest(files.items()) == weight_digest(sent.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATED)
def test_a_trainers_weights_arrive_in_the_rollout_engine(family, name):
    trainer, engine = TorchTrainer(family(name)), HFRolloutEngine(family(name))
    batch = TokenBatch.of_sequences([row.numpy() for row in drawn_tokens((2, 12)).int()])
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)
    with torch.no_grad():
        for own, buffer in trainer._model.named_buffers():
            if own.endswith("e_score_correction_bias"):
                buffer.add_(torch.randn_like(buffer))

    digest = engine.load_weights(trainer.weights(), version=1)

    assert weight_digest(trainer.weights()) == digest
    theirs, ours = (dict(held_tensors(one._model)) for one in (trainer, engine))
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[tensor], ours[tensor]) for tensor in theirs)
    tokens = [row.numpy() for row in drawn_tokens((2, 12)).int()]
    scored = trainer.score(batch, temperature=1.0).logprobs_NT[:, 1:]
    for row, found in zip(scored, engine.score_logprobs(tokens), strict=True):
        assert torch.allclose(row, torch.from_numpy(found), atol=2e-5)


@pytest.mark.parametrize("name", BIASED)
def test_a_bias_that_is_lost_would_change_the_routes(family, name):
    model, tokens = load_model(family(name)), drawn_tokens((2, 16))
    with torch.no_grad(), recording(model) as record:
        before = model(input_ids=tokens).logits
        own_MLK = record.take()
        for router in routers(model):
            bias_of(router).zero_()
        after = model(input_ids=tokens).logits

        assert not torch.equal(own_MLK.sort(2).values, record.take().sort(2).values)
    assert (before - after).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUTED)
def test_router_losses_are_of_the_models_own_choice_and_scores(family, name):
    trainer = TorchTrainer(family(name), micro_batch_tokens=16)
    batch = TokenBatch.of_sequences([row.numpy() for row in drawn_tokens((2, 12)).int()])
    auxiliary = Auxiliary(balance=1.0, router_z=0.1)

    metrics = trainer.update(
        batch, likelihood, temperature=1.0, learning_rate=0.0, auxiliary=auxiliary
    )

    model, expected = load_model(family(name)), []
    routing = routing_of(model)
    logits_LME: list[torch.Tensor] = []
    with recording(model) as record:
        handles = [
            router.register_forward_hook(lambda _m, _a, output: logits_LME.append(output[0]))
            for router in routers(model)
        ]
        with torch.no_grad():
            model(input_ids=batch.tokens_NT.long())
        chosen_MLK = record.take()
    for handle in handles:
        handle.remove()
    for layer, logits_ME in enumerate(logits_LME):
        if routing.score == "sigmoid":
            scores = logits_ME.sigmoid() / logits_ME.sigmoid().sum(1, keepdim=True)
        else:
            scores = logits_ME.softmax(1)
        loads = torch.bincount(chosen_MLK[:, layer].flatten(), minlength=routing.experts).float()
        expected.append((scores.mean(0) * loads / loads.mean()).sum())
    assert float(torch.stack(expected).mean()) == pytest.approx(
        metrics["auxiliary/balance"], abs=1e-5
    )


@pytest.mark.parametrize("name", ["llama", "qwen2_moe", "glm4_moe"])
def test_adapters_train_every_projection_of_a_family(family, name):
    trainer = TorchTrainer(family(name), lora_rank=8)
    batch = TokenBatch.of_sequences([row.numpy() for row in drawn_tokens((2, 12)).int()])
    before = {key: value.clone() for key, value in trainer.weights()}

    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)

    after = dict(trainer.weights())
    still = {key for key in before if torch.equal(before[key], after[key])}
    # An expert that no token chose has no gradient.
    assert all("mlp.experts." in key for key in still if "lora_B" in key)


@pytest.mark.parametrize("name", ["mixtral", "ling lite"])
def test_adapters_are_refused_where_files_have_other_names(family, name):
    engines = TrainingEngines(lora=LoRASettings(rank=8))

    for opened in (open_trainer, open_rollout):
        with pytest.raises(SettingsError, match=r"lora\.rank is 8, but files of"):
            opened(engines, family(name))


def test_latent_attention_is_refused_by_the_rollout_engine_before_it_loads(family):
    with pytest.raises(SettingsError, match="does not have multi-head latent attention"):
        open_rollout(TrainingEngines(), family("deepseek_v3"))


def test_layers_of_multi_token_prediction_are_kept_bit_for_bit(family, tmp_path):
    source, out = tmp_path / "model", tmp_path / "out"
    shutil.copytree(family("ling mini 2"), source)
    extra = {
        f"model.layers.3.{name}": torch.randn(8, 4).bfloat16()
        for name in ("eh_proj.weight", "enorm.weight", "mlp.experts.0.gate_proj.weight")
    }
    held = load_file(source / "model.safetensors")
    save_file(held | extra, source / "model.safetensors", metadata={"format": "pt"})
    trainer = TorchTrainer(source)
    assert not extra.keys() & dict(trainer.weights()).keys()

    trainer.export(out)

    with Weights(out) as weights:
        weights.check_tensors()
        assert all(torch.equal(extra[name], weights.read(name)) for name in extra)
        assert weights.mtp == extra.keys()
    assert json.loads((out / "config.json").read_text())["num_nextn_predict_layers"] == 1
    HFRolloutEngine(out)


def test_an_export_has_the_config_of_its_base(family, tmp_path):
    for name in ("ling lite", "mixtral", "glm4_moe"):
        TorchTrainer(family(name)).export(tmp_path / name)

        before, after = (
            json.loads((folder / "config.json").read_text())
            for folder in (family(name), tmp_path / name)
        )
        for config in (before, after):
            config.pop("torch_dtype", None)
        assert before | {"dtype": "float32"} == after


@pytest.mark.parametrize("name", ["ling lite", "ling mini 2"])
@torch.inference_mode()
def test_ling_computes_what_its_files_say(family, name):
    """Against a plain pass over the tensors of the files, with inclusionAI's formulas."""
    folder, tokens_T = family(name), drawn_tokens((14,))
    config = json.loads((folder / "config.json").read_text())

    expected_TV = plain_ling(config, load_file(folder / "model.safetensors"), tokens_T)

    found_TV = load_model(folder)(input_ids=tokens_T[None]).logits[0]
    assert torch.allclose(expected_TV, found_TV, atol=2e-5)


def plain_ling(config, tensors, tokens_T):
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    size = config.get("head_dim", config["hidden_size"] // heads)
    width = int(size * config.get("partial_rotary_factor", 1.0))
    epsilon = config["rms_norm_eps"]
    place = torch.arange(len(tokens_T)).float()
    angles = place[:, None] / config["rope_theta"] ** (torch.arange(0, width, 2).float() / width)
    cos, sin = (part.repeat(1, 2)[None] for part in (angles.cos(), angles.sin()))

    def normed(rows, name):
        weight = tensors[name]
        return rms_norm(rows, weight.shape, weight, epsilon)

    def turned(rows):
        part, rest = rows[..., :width], rows[..., width:]
        swapped = torch.cat([-part[..., width // 2 :], part[..., : width // 2]], -1)
        return torch.cat([part * cos + swapped * sin, rest], -1)

    def passed(rows, prefix):
        gate, up, down = (tensors[f"{prefix}.{one}_proj.weight"] for one in ("gate", "up", "down"))
        return linear(silu(linear(rows, gate)) * linear(rows, up), down)

    hidden = tensors["model.word_embeddings.weight"][tokens_T]
    for layer in range(config["num_hidden_layers"]):
        own = f"model.layers.{layer}"
        rows = normed(hidden, f"{own}.input_layernorm.weight")
        joined = linear(rows, tensors[f"{own}.attention.query_key_value.weight"])
        joined = joined.view(len(rows), heads + 2 * groups, size).transpose(0, 1)
        query, key, value = joined.split([heads, groups, groups])
        if config.get("use_qk_norm"):
            query = normed(query, f"{own}.attention.query_layernorm.weight")
            key = normed(key, f"{own}.attention.key_layernorm.weight")
        mixed = scaled_dot_product_attention(
            turned(query)[None], turned(key)[None], value[None], is_causal=True, enable_gqa=True
        )[0]
        mixed = mixed.transpose(0, 1).flatten(1)
        hidden = hidden + linear(mixed, tensors[f"{own}.attention.dense.weight"])
        rows = normed(hidden, f"{own}.post_attention_layernorm.weight")
        if layer < config["first_k_dense_replace"]:
            hidden = hidden + passed(rows, f"{own}.mlp")
            continue
        said = passed(rows, f"{own}.mlp.shared_experts")
        logits = linear(rows, tensors[f"{own}.mlp.gate.weight"])
        bias = tensors.get(f"{own}.mlp.gate.expert_bias", torch.zeros(config["num_experts"]))
        for row in range(len(rows)):
            scores = logits[row].sigmoid() if "score_function" in config else logits[row].softmax(0)
            ranks = scores + bias
            if (parts := config.get("n_group", 1)) > 1:
                best = (
                    ranks.view(parts, -1).topk(2).values.sum(1).topk(config["topk_group"]).indices
                )
                kept = torch.zeros(parts, dtype=torch.bool)
                kept[best] = True
                ranks = ranks.masked_fill(~kept.repeat_interleave(len(ranks) // parts), -torch.inf)
            chosen = ranks.topk(config["num_experts_per_tok"]).indices
            gates = scores[chosen] / scores[chosen].sum() * config.get("routed_scaling_factor", 1.0)
            for gate, expert in zip(gates, chosen.tolist(), strict=True):
                said[row] += gate * passed(rows[row], f"{own}.mlp.experts.{expert}")
        hidden = hidden + said
    return linear(normed(hidden, "model.norm.weight"), tensors["lm_head.weight"])
