"""LoRA in the embedded trainer against dense weights W + (alpha / r) B A."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen3Config, Qwen3ForCausalLM

from data_schemas.machine_settings import LoRASettings, MachineSettings, TrainingEngines
from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.lora import LoRAAdapter
from tasks.engines.embedded.trainer import STATE_FILE, TorchTrainer
from tasks.engines.expert_names import named_tensors, split_experts
from tasks.engines.lora.factors import ALPHA, factor_names, is_adapted, merged
from tasks.engines.protocols import TokenBatch
from tasks.engines.select import open_trainer
from tasks.errors import DataError, SettingsError
from tests.engines.lora.adapters import give_values
from tests.engines.losses_of_contract import likelihood

RANK = 8


def tokens(seed: int = 0) -> TokenBatch:
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randint(0, 280, (n,), generator=generator).int().numpy() for n in (30, 12, 22)]
    return TokenBatch.of_sequences(drawn)


def dense_twin(folder, trainer):
    """The model with every product B A written out, by transformers' loop over experts."""
    model = load_model(folder)
    model.config._experts_implementation = "eager"
    factors = dict(trainer.weights())
    with torch.no_grad():
        for name, matrix in named_tensors(model):
            if is_adapted(name):
                a, b = (factors[one] for one in factor_names(name))
                matrix += ALPHA / RANK * b @ a
    return model


def dense_logprobs(model, batch):
    """Log-probabilities of all tokens after the first, padded as any user would."""
    real_NT = torch.arange(batch.tokens_NT.shape[1]) < batch.lengths_N[:, None]
    logits = model(input_ids=batch.tokens_NT, attention_mask=real_NT.long()).logits
    found = logits[:, :-1].log_softmax(2).gather(2, batch.tokens_NT[:, 1:, None])[..., 0]
    return found * batch.response_NT[:, 1:]


def merged_tensors(trainer):
    """What a rollout engine installs."""
    return merged(named_tensors(trainer._model), dict(trainer.weights()))


@pytest.fixture(scope="module")
def untied_dense(tiny_moe, tmp_path_factory):
    folder = shutil.copytree(tiny_moe, tmp_path_factory.mktemp("dense"), dirs_exist_ok=True)
    sizes = {"vocab_size": 288, "hidden_size": 32, "intermediate_size": 64, "head_dim": 16}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    torch.manual_seed(0)
    Qwen3ForCausalLM(Qwen3Config(**sizes, **heads)).save_pretrained(folder)
    return folder


@pytest.fixture(params=["moe", "dense"])
def folder(request, tiny_moe, untied_dense):
    return {"moe": tiny_moe, "dense": untied_dense}[request.param]


@pytest.fixture
def trainer(folder):
    trainer = TorchTrainer(folder, lora_rank=RANK)
    give_values(trainer)
    return trainer


def test_log_probabilities_are_those_of_the_dense_sum(trainer, folder):
    batch = tokens()
    with torch.no_grad():
        expected = dense_logprobs(dense_twin(folder, trainer), batch)
        base = dense_logprobs(load_model(folder), batch)
    found = trainer.score(batch, temperature=1.0).logprobs_NT[:, 1:]

    assert torch.allclose(expected, found, atol=2e-5)
    assert (base - expected).abs().max() > 0.05


def test_gradients_are_those_of_the_dense_sum_by_the_chain_rule(trainer, folder):
    batch, model = tokens(), dense_twin(folder, trainer)
    (-dense_logprobs(model, batch).sum()).backward()
    dense = {
        part: gradient
        for name, parameter in model.named_parameters()
        for part, gradient in split_experts(name, parameter.grad)
    }

    def minus_sum(logprobs_NT, micro):
        return -(logprobs_NT * micro.response_NT).sum(), {}

    trainer.update(batch, minus_sum, temperature=1.0, learning_rate=0.0)
    factors, seen = dict(trainer.weights()), 0
    norm = torch.sqrt(sum(factor.grad.square().sum() for factor in trainer._trained.values()))
    for target in trainer._adapter._targets:
        for side, stacked in enumerate((target.a.grad, target.b.grad)):
            for name, found in split_experts(target.name, stacked):
                a, b = (factors[one] for one in factor_names(name))
                gradient = b.T @ dense[name] if side == 0 else dense[name] @ a.T
                expected = ALPHA / RANK * gradient
                # The update has clipped the gradients to a norm of 1.
                scale = expected.norm() / found.norm() if found.any() else 1.0
                assert torch.allclose(expected, found * scale, atol=1e-3 * float(expected.norm()))
                seen += bool(found.any())
    assert float(norm) == pytest.approx(1.0, abs=1e-4)
    assert seen > 20


def test_before_training_an_adapter_changes_nothing(folder):
    plain, adapted = TorchTrainer(folder), TorchTrainer(folder, lora_rank=RANK)
    before, after = (one.score(tokens(), temperature=1.0).logprobs_NT for one in (plain, adapted))

    assert torch.allclose(before, after, atol=2e-6)


def test_factors_are_trained_and_the_model_is_frozen(trainer, folder):
    frozen, before = weight_digest(named_tensors(trainer._model)), dict(trainer._adapter.state())
    before = {name: factor.clone() for name, factor in before.items()}
    losses = [
        trainer.update(tokens(), likelihood, temperature=1.0, learning_rate=1e-2)["loss"]
        for _ in range(4)
    ]

    assert losses == sorted(losses, reverse=True)
    assert weight_digest(named_tensors(trainer._model)) == frozen
    assert all(not torch.equal(before[n], f) for n, f in trainer._adapter.state().items())
    assert all(parameter.grad is None for parameter in trainer._model.parameters())
    moments = trainer._optimizer.state_dict()["state"]
    assert len(before) == len(moments)


def test_an_export_is_a_plain_checkpoint_of_the_merged_model(trainer, folder, tmp_path):
    trainer.export(tmp_path)
    expected = trainer.score(tokens(), temperature=1.0).logprobs_NT
    found = TorchTrainer(tmp_path).score(tokens(), temperature=1.0).logprobs_NT
    original = {n: t for file in folder.glob("*.safetensors") for n, t in load_file(file).items()}

    assert torch.allclose(expected, found, atol=2e-5)
    exported = load_file(tmp_path / "model.safetensors")
    assert {n: t.shape for n, t in original.items()} == {n: t.shape for n, t in exported.items()}
    same = {name for name in original if torch.equal(original[name], exported[name])}
    assert {name for name in original if not is_adapted(name)} == same
    # The rollout engine merges the same bits.
    assert weight_digest(merged_tensors(trainer)) == weight_digest(TorchTrainer(tmp_path).weights())


def test_a_rank_as_large_as_the_matrix_reaches_what_full_fine_tuning_does(tiny_moe, tmp_path):
    full = TorchTrainer(tiny_moe)
    full.update(tokens(), likelihood, temperature=1.0, learning_rate=3e-2)
    wanted, original = dict(full.weights()), dict(TorchTrainer(tiny_moe).weights())
    trainer = TorchTrainer(tiny_moe, lora_rank=32)  # no side of a matrix here is smaller
    with torch.no_grad():
        for name, factor in trainer.weights():
            matrix = name.replace(".lora_A", "").replace(".lora_B", "")
            u, s, v = torch.linalg.svd(wanted[matrix] - original[matrix], full_matrices=False)
            # alpha / r is 1.
            value = torch.diag(s) @ v if ".lora_A" in name else u
            factor.zero_()
            factor[: value.shape[0], : value.shape[1]] = value
    found = dict(merged_tensors(trainer))

    assert all(
        torch.allclose(wanted[name], found[name], atol=2e-6) for name in wanted if is_adapted(name)
    )


def test_a_restored_trainer_makes_the_same_next_update_from_a_small_state(
    trainer, folder, tmp_path
):
    trainer.update(tokens(), likelihood, temperature=1.0, learning_rate=1e-3)
    trainer.save(tmp_path)
    resumed = TorchTrainer(folder, lora_rank=RANK)
    resumed.restore(tmp_path)
    for one in (trainer, resumed):
        one.update(tokens(1), likelihood, temperature=1.0, learning_rate=1e-3)

    assert weight_digest(trainer.weights()) == weight_digest(resumed.weights())
    held = torch.load(tmp_path / STATE_FILE)["model"]
    assert sum(f.numel() for _, f in trainer.weights()) == sum(t.numel() for t in held.values())


@pytest.mark.parametrize("rank", [0, 16])
def test_the_state_of_another_rank_is_refused(tiny_moe, tmp_path, rank):
    TorchTrainer(tiny_moe, lora_rank=RANK).save(tmp_path)

    with pytest.raises(DataError, match="another architecture"):
        TorchTrainer(tiny_moe, lora_rank=rank).restore(tmp_path)


def test_the_state_beside_another_frozen_model_is_refused(tiny_moe, tmp_path):
    other = TorchTrainer(tiny_moe)
    other.update(tokens(), likelihood, temperature=1.0, learning_rate=1e-3)
    other.export(tmp_path / "other")
    TorchTrainer(tiny_moe, lora_rank=RANK).save(tmp_path)

    with pytest.raises(DataError, match="another architecture"):
        TorchTrainer(tmp_path / "other", lora_rank=RANK).restore(tmp_path)


def test_the_setting_opens_a_trainer_of_adapters_and_others_do_not(tiny_moe):
    adapted = open_trainer(TrainingEngines(lora=LoRASettings(rank=16)), tiny_moe)
    names = {True: [], False: []}
    for name, _ in adapted.weights():
        names["lora_A" in name].append(name)

    assert 56 == len(names[True]) == len(names[False])
    for engines in (TrainingEngines(), MachineSettings()):
        plain = weight_digest(open_trainer(engines, tiny_moe).weights())
        assert weight_digest(TorchTrainer(tiny_moe).weights()) == plain


def test_experts_of_another_form_are_refused_by_name(tiny_moe):
    trainer = TorchTrainer(tiny_moe)
    experts = trainer._model.get_submodule("model.layers.0.mlp.experts")
    other = torch.nn.Module()
    other.register_parameter("gate_up_proj", experts.get_parameter("gate_up_proj"))
    trainer._model.get_submodule("model.layers.0.mlp").experts = other

    with pytest.raises(SettingsError, match="experts of qwen3_moe have no adapters"):
        LoRAAdapter(trainer._model, RANK)
