"""The trainer's side of a weight sync: what is written, and what is refused before it."""

import json
import weakref
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.expert_names import named_tensors
from tasks.engines.rollout_vllm.broadcast import PacketSender
from tasks.engines.rollout_vllm.staging import Staging, expected_shapes, files_of
from tasks.errors import EngineError, SettingsError

BASE_MODEL = Path("tasks/training/foundation/base_model")


@pytest.fixture
def staging(served_moe):
    staging = Staging(served_moe, chunk_bytes=20_000)
    yield staging
    staging.close()


@pytest.fixture(scope="module")
def weights(served_moe):
    return {name: tensor + 1.0 for name, tensor in TorchTrainer(served_moe).weights()}


def test_a_folder_is_a_model_directory_of_the_synced_weights(staging, weights):
    folder = staging.write(iter(weights.items()))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    assert weight_digest(weights.items()) == weight_digest(named_tensors(model))
    assert AutoTokenizer.from_pretrained(folder).eos_token == "<|im_end|>"
    assert len(files_of(folder)) > 2
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    assert weights.keys() == index.keys()
    assert {path.name for path in files_of(folder)} == set(index.values())


def test_every_tensor_is_written_in_the_precision_it_was_sent_in(staging, weights):
    sent = {
        name: tensor if name.endswith("mlp.gate.weight") else tensor.bfloat16()
        for name, tensor in weights.items()
    }
    written = {}
    for path in files_of(staging.write(iter(sent.items()))):
        written |= load_file(path)

    assert {torch.float32, torch.bfloat16} == {tensor.dtype for tensor in sent.values()}
    assert weight_digest(sent.items()) == weight_digest(written.items())
    assert all(tensor.dtype == written[name].dtype for name, tensor in sent.items())


def test_names_as_they_stand_in_a_checkpoint_fit_as_well():
    staging = Staging(BASE_MODEL)
    folder = staging.write(iter(load_file(BASE_MODEL / "model.safetensors").items()))

    assert expected_shapes(BASE_MODEL) == expected_shapes(folder)
    staging.close()
    assert not folder.parent.exists()


def test_no_more_than_one_file_of_tensors_is_held(staging, served_moe):
    alive = []

    def stream():
        for name, tensor in TorchTrainer(served_moe).weights():
            alive.append((tensor.nbytes, weakref.ref(copy := tensor.clone())))
            assert 2 >= sum(one() is not None for _, one in alive)
            yield name, copy
            del copy

    sizes = [path.stat().st_size for path in files_of(staging.write(stream()))]

    assert max(sizes) < 20_000 + max(size for size, _ in alive) + 4096


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda one: one.pop("model.norm.weight"), r"1 tensors are missing: .*model\.norm\.weight"),
        (lambda one: one.update(strange=torch.zeros(1)), "strange is unknown"),
        (
            lambda one: one.update({"model.norm.weight": torch.zeros(3)}),
            r"model\.norm\.weight is \(3,\), expected \(32,\)",
        ),
        (
            lambda one: one.pop("model.layers.0.mlp.experts.7.down_proj.weight"),
            r"missing: .*experts\.7\.down_proj",
        ),
        (
            lambda one: one.update(
                {"model.layers.0.mlp.experts.down_proj": torch.zeros(8, 32, 32)}
            ),
            r"experts\.down_proj is unknown",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named_and_leave_nothing(staging, weights, spoil, message):
    kept = staging.write(iter(weights.items()))
    spoiled = dict(weights)
    spoil(spoiled)

    with pytest.raises(EngineError, match=message):
        staging.write(iter(spoiled.items()))
    assert [kept] == list(kept.parent.iterdir())


def test_a_tensor_that_comes_twice_is_named(staging, weights):
    name = "model.layers.0.mlp.experts.3.down_proj.weight"
    with pytest.raises(EngineError, match=f"{name} came twice"):
        staging.write(iter([*weights.items(), (name, weights[name])]))


def test_only_the_current_version_is_kept(staging, weights):
    staging.write(iter(weights.items()))
    second = staging.write(iter(weights.items()))
    staging.keep_only(second)

    assert [second] == list(second.parent.iterdir())


def test_a_folder_without_safetensors_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"holds no \*\.safetensors"):
        Staging(tmp_path)


def test_packets_that_cannot_be_sent_leave_no_folder(staging, weights):
    def refuse(entries, packet):
        raise EngineError("no worker takes it")

    first = staging.write(iter(weights.items()))
    for packet_bytes in (1_000, 10**9):  # in the middle; with the last packet
        outbox = PacketSender(refuse, torch.device("cpu"), packet_bytes)
        with pytest.raises(EngineError, match="no worker takes it"):
            staging.write(iter(weights.items()), outbox=outbox)

    assert [first] == list(first.parent.iterdir())
