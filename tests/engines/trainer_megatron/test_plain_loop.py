"""Megatron's own loop does the trainer's update: what differs is the way there."""

import sys
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron import model, optimizer, parallel
from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.engines.trainer_megatron.trainer import MegatronTrainer
from tests.bench.plain_loop import FUSED, REPLICA, PlainLoop, own_config
from tests.engines.trainer_megatron.batches import random_batch
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import configs, write_model
from tests.engines.trainer_megatron.trainings_of_world import without_rows

pytestmark = pytest.mark.engines

RATE = 1e-3


def two_updates_of_both(folder: Path) -> list[list[dict[str, float]]]:
    """Metrics of two updates by the trainer, with the routers' own choice, and by the loop."""
    batch = replace(random_batch(), experts_NTLK=None)
    layout = LayoutSettings(micro_batch_tokens=64)  # several micro-batches
    tokens = int(batch.response_NT.sum())

    def likelihood(logprobs_NT: torch.Tensor, micro: TokenBatch):
        return -(logprobs_NT * micro.response_NT).sum() / tokens, {}

    with closing(MegatronTrainer(folder, layout=layout)) as trainer:
        ours = [
            trainer.update(batch, likelihood, temperature=1.0, learning_rate=RATE) for _ in range(2)
        ]
    with closing(PlainLoop(folder, layout)) as loop:
        own = [loop.update(batch, learning_rate=RATE) for _ in range(2)]
    return [ours, own]


@pytest.mark.parametrize("name", ["moe", "moe_tied", "dense"])
def test_loss_and_gradient_are_those_of_an_update_without_replay(name, tiny_moe, tmp_path):
    folder = write_model(configs()[name], tiny_moe, tmp_path / "model")

    ((ours, own),) = run_world(two_updates_of_both, 1, folder)

    assert ours[1]["loss"] < ours[0]["loss"]
    for expected, found in zip(ours, own, strict=True):
        assert pytest.approx(without_rows(expected), rel=1e-5) == found


@pytest.mark.skipif("transformer_engine" not in sys.modules, reason="needs the stand-in")
def test_on_a_gpu_the_loop_differs_from_the_trainer_in_the_named_settings_alone(tiny_moe):
    layout, geometry = LayoutSettings(precision=Precision.BF16), read_geometry(tiny_moe)
    ranks = parallel.initialise(layout)
    (gpt,) = model.build(geometry, layout, ranks)
    ours, own = (
        model.transformer_config(geometry, layout, ranks),
        own_config(geometry, layout, ranks),
    )

    assert ours.moe_permute_fusion
    assert {"bias_dropout_fusion", "gradient_accumulation_fusion"} == FUSED.keys()
    assert {name: value for name, value in FUSED.items() if value} == differences(ours, own)
    assert {
        "overlap_grad_reduce": True,
        "overlap_param_gather": True,
        "check_for_nan_in_grad": True,
    } == differences(optimizer.replicate(gpt).ddp_config, REPLICA)


def differences(one: object, other: object) -> dict[str, object]:
    """The fields of the second that differ from the first; functions made anew are none."""
    pairs = {
        each.name: (getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
    }
    return {
        name: value
        for name, (before, value) in pairs.items()
        if before != value and not (callable(before) and callable(value))
    }
