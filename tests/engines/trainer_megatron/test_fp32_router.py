"""Routers in fp32 in a trainer in bf16: every hop that could cast them down, and none does."""

from contextlib import ExitStack

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.embedded.hf_model import load_model, widen_routers
from tasks.errors import DataError, SettingsError
from tests.engines.trainer_megatron.batches import random_batch
from tests.engines.trainer_megatron.small_models import configs, write_model
from tests.engines.trainer_megatron.trainings_of_world import updates, weighted, weights
from tests.engines.trainer_megatron.world_of_trainers import RemoteTrainer, trainer_world

pytestmark = pytest.mark.engines

LAYOUTS = {
    "one": (1, LayoutSettings(precision=Precision.BF16)),
    "data2": (2, LayoutSettings(precision=Precision.BF16)),
    "stages2": (2, LayoutSettings(precision=Precision.BF16, pipeline=2)),
    "tensor2": (2, LayoutSettings(precision=Precision.BF16, tensor=2, expert=2)),
}


@pytest.fixture(scope="module")
def models(tiny_moe, tmp_path_factory):
    """A model; the same with routers that were cast to bf16; a dense one."""
    found = {
        name: write_model(configs()[name], tiny_moe, tmp_path_factory.mktemp(name))
        for name in ("moe", "dense")
    }
    found["rounded"] = write_model(configs()["moe"], tiny_moe, tmp_path_factory.mktemp("rounded"))
    tensors = load_file(found["rounded"] / "model.safetensors")
    tensors |= {name: rounded(tensor) for name, tensor in routers(tensors).items()}
    save_file(tensors, found["rounded"] / "model.safetensors", metadata={"format": "pt"})
    return found


@pytest.fixture(scope="module")
def trainers(models):
    """Opens a trainer on a layout; the ranks of a layout are started once."""
    worlds = {}
    with ExitStack() as stack:

        def open_one(layout="one", model="moe", *, fp32_router=True):
            size, settings = LAYOUTS[layout]
            if layout not in worlds:
                worlds[layout] = stack.enter_context(trainer_world(size))
            return RemoteTrainer(worlds[layout], models[model], settings, fp32_router=fp32_router)

        yield open_one


def routers(tensors):
    return {name: tensor for name, tensor in tensors.items() if name.endswith("mlp.gate.weight")}


def rounded(tensor):
    return tensor.bfloat16().float()


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_routers_are_read_sent_and_saved_in_fp32_and_the_rest_in_bf16(
    trainers, models, layout, tmp_path
):
    trainer = trainers(layout)
    read, sent = load_file(models["moe"] / "model.safetensors"), weights(trainer)
    trainer.export(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")

    expected = {name: tensor.bfloat16() for name, tensor in read.items()} | routers(read)
    assert not equal(routers(read), {name: rounded(one) for name, one in routers(read).items()})
    assert {name: tensor.dtype for name, tensor in expected.items()} == {
        name: tensor.dtype for name, tensor in sent.items()
    }
    assert equal(expected, sent)
    assert equal(expected, saved)
    model = load_model(tmp_path, dtype=torch.bfloat16)
    widen_routers(model, tmp_path)
    assert equal(routers(read), routers(dict(model.named_parameters())))


def test_scores_are_computed_from_the_fp32_weights(trainers):
    found = {
        (model, wide): trainers(model=model, fp32_router=wide).score(
            random_batch(), temperature=1.0
        )
        for model in ("moe", "rounded")
        for wide in (True, False)
    }
    same, other = found["rounded", True].logprobs_NT, found["moe", True].logprobs_NT

    # Weights that fit into bf16 give the same numbers in either precision; others do not.
    assert torch.equal(found["rounded", False].logprobs_NT, same)
    assert torch.equal(found["moe", False].logprobs_NT, same)
    assert not torch.equal(other, same)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_update_below_the_resolution_of_bf16_arrives_in_the_routers(trainers, layout):
    moved = {}
    for wide in (True, False):
        trainer = trainers(layout, fp32_router=wide)
        before = routers(weights(trainer))
        trainer.update(random_batch(), weighted, temperature=1.0, learning_rate=1e-6)
        after = routers(weights(trainer))
        moved[wide] = torch.cat([(after[name] != before[name]).flatten() for name in before])

    # AdamW's first step is the learning rate itself, where there is a gradient.
    assert moved[True].double().mean() > 0.9
    assert moved[False].double().mean() < 0.1


def go_on(trainer):
    now = weights(trainer)
    metrics = updates(trainer, random_batch(), 2)
    return now, metrics, weights(trainer)


@pytest.mark.parametrize("layout", ["one", "data2"])
def test_a_state_continues_bit_by_bit_and_on_another_layout(trainers, layout, tmp_path):
    trainer = trainers(layout)
    updates(trainer, random_batch(), 2)
    trainer.save(tmp_path)
    now, metrics, then = go_on(trainer)
    again = trainers(layout)
    again.restore(tmp_path)
    found_now, found_metrics, found_then = go_on(again)

    assert equal(now, found_now)
    assert metrics == found_metrics
    assert equal(then, found_then)
    for other in ("stages2", "tensor2"):
        elsewhere = trainers(other)
        elsewhere.restore(tmp_path)
        there, _, later = go_on(elsewhere)
        assert equal(now, there)
        # With the optimizer state of another parameter a router would go elsewhere.
        for name, end in routers(then).items():
            way, error = (end - now[name]).norm(), (later[name] - end).norm()
            assert error < 0.2 * way


def test_a_state_with_routers_of_another_precision_is_refused(trainers, tmp_path):
    trainers().save(tmp_path)

    with pytest.raises(DataError, match="in bf16, routers in fp32, but the trainer is in bf16 "):
        trainers(fp32_router=False).restore(tmp_path)


def test_a_dense_model_has_no_router_to_keep_in_fp32(trainers):
    with pytest.raises(SettingsError, match=r"engines\.fp32_router is set, but a dense model"):
        trainers(model="dense")
