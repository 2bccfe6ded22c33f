"""A saved state goes on bit by bit on its layout, and all but bit by bit on any other."""

import json
from contextlib import ExitStack

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.errors import DataError
from tasks.store.manifest import folder_manifest
from tests.engines.trainer_megatron.batches import grouped_batch
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import configs, write_model
from tests.engines.trainer_megatron.trainings_of_world import (
    DECAY,
    updates,
    warnings_of_saving,
    weights,
    without_rows,
)
from tests.engines.trainer_megatron.world_of_trainers import RemoteTrainer, trainer_world

pytestmark = pytest.mark.engines

SMALL = {"micro_batch_tokens": 64}
LAYOUTS = {
    "one": (1, LayoutSettings(**SMALL)),
    "data2": (2, LayoutSettings(**SMALL)),
    "expert2": (2, LayoutSettings(expert=2, **SMALL)),
    "pipeline2": (2, LayoutSettings(pipeline=2, **SMALL)),
    "tensor2": (2, LayoutSettings(tensor=2, **SMALL)),
    "context2": (2, LayoutSettings(context=2, **SMALL)),
    "everything": (4, LayoutSettings(tensor=2, pipeline=2, expert=2, recompute=True, **SMALL)),
    "bf16": (2, LayoutSettings(precision=Precision.BF16, **SMALL)),
}


@pytest.fixture(scope="module")
def model(tiny_moe, tmp_path_factory):
    return write_model(configs()["moe_odd_vocabulary"], tiny_moe, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def trainers(model):
    """Opens a trainer on a layout; the ranks of a layout are started once."""
    worlds = {}
    with ExitStack() as stack:

        def open_one(layout):
            size, settings = LAYOUTS[layout]
            if layout not in worlds:
                worlds[layout] = stack.enter_context(trainer_world(size))
            return RemoteTrainer(worlds[layout], model, settings, weight_decay=DECAY)

        yield open_one


@pytest.fixture(scope="module")
def states(trainers, tmp_path_factory):
    """Saves a state once per layout; returns where, and how training went on."""
    made = {}

    def make(layout):
        if layout not in made:
            saved = tmp_path_factory.mktemp(layout)
            trainer = trainers(layout)
            updates(trainer, grouped_batch(), 2)
            trainer.save(saved)
            made[layout] = saved, go_on(trainer)
        return made[layout]

    return make


def go_on(trainer):
    """Weights now, metrics of two updates, weights then; the trainer is closed."""
    now = weights(trainer)
    metrics = updates(trainer, grouped_batch(), 2)
    then = weights(trainer)
    trainer.close()
    return now, metrics, then


def resumed(trainer, saved):
    trainer.restore(saved)
    return go_on(trainer)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_training_goes_on_bit_by_bit_on_the_same_layout(trainers, states, layout):
    saved, (now, metrics, then) = states(layout)
    found_now, found_metrics, found_then = resumed(trainers(layout), saved)

    assert metrics == found_metrics
    assert all(torch.equal(now[name], found_now[name]) for name in now)
    assert all(torch.equal(then[name], found_then[name]) for name in then)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("one", "pipeline2"),
        ("pipeline2", "one"),
        ("one", "expert2"),
        ("expert2", "one"),
        ("one", "tensor2"),
        ("tensor2", "expert2"),
        ("data2", "pipeline2"),
        ("one", "everything"),
        ("one", "context2"),
        ("everything", "data2"),
    ],
)
def test_another_layout_takes_up_weights_and_optimizer(trainers, states, first, second):
    saved, (now, metrics, then) = states(first)
    found_now, found_metrics, found_then = resumed(trainers(second), saved)

    assert all(torch.equal(now[name], found_now[name]) for name in now)
    assert [pytest.approx(without_rows(one), rel=1e-5) for one in metrics] == list(
        map(without_rows, found_metrics)
    )
    assert all(torch.allclose(then[name], found_then[name], rtol=0, atol=2e-5) for name in then)


def test_an_optimizer_state_that_is_not_loaded_is_detected(states):
    """What the tests above measure: two updates move weights by more than they allow."""
    _, (now, _, then) = states("one")

    assert all((then[name] - now[name]).abs().max() > 1e-4 for name in now)


def test_a_state_is_a_tree_of_plain_files_that_storage_can_list(states):
    saved, _ = states("data2")
    names = json.loads(folder_manifest(saved))["files"]

    assert {"trainer.json", "trainer_state/.metadata"} <= names.keys()
    assert 2 <= sum(name.endswith(".distcp") for name in names)


def test_no_rank_warns_of_a_state_that_is_saved(model, tmp_path):
    assert run_world(warnings_of_saving, 2, model, LAYOUTS["expert2"][1], tmp_path) == [[], []]


def test_states_of_other_numbers_or_none_are_refused(model, states, tmp_path):
    saved, _ = states("one")
    with trainer_world(1) as ranks:
        half = LayoutSettings(precision=Precision.BF16)
        with pytest.raises(DataError, match=r"in fp32, but the trainer is in bf16 .* set it back"):
            RemoteTrainer(ranks, model, half).restore(saved)
        with pytest.raises(DataError, match="holds no state"):
            RemoteTrainer(ranks, model, LayoutSettings()).restore(tmp_path)
