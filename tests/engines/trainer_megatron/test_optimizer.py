"""A trainer in fp16: its loss scale, the updates that overflow, and a state that has both."""

from contextlib import ExitStack

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.trainer_megatron import without_gpu
from tasks.engines.trainer_megatron.optimizer import (
    FIRST_LOSS_SCALE,
    GROWTH_INTERVAL,
    LOWEST_LOSS_SCALE,
    MOST_OVERFLOWS,
    LossScaler,
)
from tasks.errors import EngineError
from tests.engines.trainer_megatron.batches import random_batch
from tests.engines.trainer_megatron.small_models import configs, write_model
from tests.engines.trainer_megatron.trainings_of_world import (
    LEARNING_RATE,
    overflowing,
    updates,
    weighted,
    weights,
)
from tests.engines.trainer_megatron.world_of_trainers import RemoteTrainer, trainer_world

pytestmark = pytest.mark.engines

LAYOUTS = {"one": (1, {}), "data2": (2, {}), "tensor2": (2, {"tensor": 2, "expert": 2})}


@pytest.fixture(scope="module")
def model(tiny_moe, tmp_path_factory):
    return write_model(configs()["moe"], tiny_moe, tmp_path_factory.mktemp("moe"))


@pytest.fixture(scope="module")
def trainers(model):
    """Opens a trainer on a layout; the ranks of a layout are started once."""
    worlds = {}
    with ExitStack() as stack:

        def open_one(layout="one", precision=Precision.FP16, **options):
            size, divided = LAYOUTS[layout]
            if layout not in worlds:
                worlds[layout] = stack.enter_context(trainer_world(size))
            settings = LayoutSettings(precision=precision, **divided)
            return RemoteTrainer(worlds[layout], model, settings, **options)

        yield open_one


def step(trainer, loss=weighted):
    return trainer.update(random_batch(), loss, temperature=1.0, learning_rate=LEARNING_RATE)


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def way(one, other):
    """Distance of two models."""
    return sum(float((one[name].float() - other[name].float()).norm()) ** 2 for name in one) ** 0.5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_updates_are_those_of_fp32_within_the_rounding_of_fp16(trainers, layout):
    found = {}
    for precision in (Precision.FP32, Precision.BF16, Precision.FP16):
        trainer = trainers(layout, precision)
        before = weights(trainer)
        found[precision] = updates(trainer, random_batch(), 4), weights(trainer)
    metrics, exact = found[Precision.FP32]
    errors = {name: way(found[name][1], exact) for name in (Precision.BF16, Precision.FP16)}

    assert torch.float16 is next(iter(found[Precision.FP16][1].values())).dtype
    # AdamW turns the sign of a small gradient into a whole step.
    assert errors[Precision.FP16] < 0.1 * way(before, exact)
    assert errors[Precision.FP16] < 0.5 * errors[Precision.BF16]
    for one, half in zip(metrics, found[Precision.FP16][0], strict=True):
        assert (0.0, FIRST_LOSS_SCALE) == (half["overflow_updates"], half["loss_scale"])
        assert one == pytest.approx({name: half[name] for name in one}, rel=5e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_overflow_skips_the_update_and_halves_the_one_scale_of_all_parameters(trainers, layout):
    trainer, other = trainers(layout), trainers(layout)
    before = weights(trainer)

    skipped = step(trainer, overflowing)

    assert (1.0, FIRST_LOSS_SCALE / 2) == (skipped["overflow_updates"], skipped["loss_scale"])
    assert 0.0 == skipped["grad_norm"]
    assert equal(before, weights(trainer))
    # A power of two less changes no bit of a gradient that fits; the norm is of all parameters.
    assert step(other)["grad_norm"] == pytest.approx(step(trainer)["grad_norm"], rel=1e-4)
    assert way(weights(trainer), weights(other)) < 1e-2 * way(before, weights(other))


def test_a_run_whose_updates_overflow_too_often_ends_by_name(trainers):
    trainer = trainers()
    before = weights(trainer)
    for _ in range(MOST_OVERFLOWS):
        step(trainer, overflowing)

    with pytest.raises(EngineError, match=r"9 updates overflowed.*engines\.layout\.precision"):
        step(trainer, overflowing)
    assert equal(before, weights(trainer))


def test_a_state_has_the_loss_scale_and_continues_bit_by_bit(trainers, tmp_path):
    trainer = trainers()
    step(trainer)
    step(trainer, overflowing)
    trainer.save(tmp_path)
    then = [step(trainer), step(trainer, overflowing), step(trainer)]
    again = trainers()
    again.restore(tmp_path)

    assert then == [step(again), step(again, overflowing), step(again)]
    assert equal(weights(trainer), weights(again))
    assert FIRST_LOSS_SCALE / 4 == then[-1]["loss_scale"]
    elsewhere = trainers("tensor2")
    elsewhere.restore(tmp_path)
    assert FIRST_LOSS_SCALE / 2 == step(elsewhere)["loss_scale"]


def test_routers_in_fp32_are_trained_beside_weights_in_fp16(trainers):
    trainer = trainers(fp32_router=True)
    before = weights(trainer)
    step(trainer)
    after = weights(trainer)

    routers = [name for name in after if name.endswith("mlp.gate.weight")]
    assert {torch.float32} == {after[name].dtype for name in routers}
    assert not any(torch.equal(before[name], after[name]) for name in routers)


def test_the_scale_grows_after_updates_without_overflow_and_has_a_floor():
    without_gpu.install()
    scaler = LossScaler()
    for _ in range(40):
        scaler.settle(found_inf=True)

    assert (LOWEST_LOSS_SCALE, 40) == (scaler.scale.item(), scaler.overflows)
    for _ in range(GROWTH_INTERVAL):
        scaler.settle(found_inf=False)
    assert (2 * LOWEST_LOSS_SCALE, 0) == (scaler.scale.item(), scaler.overflows)
