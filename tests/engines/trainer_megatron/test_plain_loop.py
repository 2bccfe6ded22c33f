"""Megatron's own loop does the trainer's update: what differs is the way there."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron.trainer import MegatronTrainer
from tests.bench.plain_loop import PlainLoop
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
