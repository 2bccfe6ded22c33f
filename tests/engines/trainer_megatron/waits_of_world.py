"""Where the trainer lets the host wait, on an imitated device."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from megatron.core import utils

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.engines.trainer_megatron import optimizer
from tasks.engines.trainer_megatron.trainer import MegatronTrainer
from tests.engines.trainer_megatron.imitated_device import DEVICE, ImitatedDevice, OnDevice, move
from tests.engines.trainer_megatron.trainings_of_world import AUXILIARY, TEMPERATURE, weighted

OF_A_CPU = "local_layers.PackedAttention.forward"
"""A GPU has Transformer Engine's attention, which takes the bounds on the device."""


@dataclass(frozen=True, slots=True)
class Watched:
    """An update and a pass of scoring."""

    num_micros: int
    metrics: dict[str, float]
    gradients: dict[str, torch.Tensor]
    scores: TokenScores
    update_waits: dict[str, int]
    score_waits: dict[str, int]
    """Seconds of this project's functions."""


def watch(folder: Path, layout: LayoutSettings, batch: TokenBatch, on_device: bool) -> Watched:
    """Update without an optimizer's step, and score with routes; on the CPU nothing is noted."""
    trainer = MegatronTrainer(folder, layout=layout)
    if on_device:
        move(trainer._gpt)
        trainer._ranks = replace(trainer._ranks, device=DEVICE)
        # It changes the storage of a tensor, of which an imitated one knows nothing.
        vars(utils).update(_kernel_make_viewless_tensor=lambda one, _: OnDevice(one.host))
    trainer._passes = trainer._passes_of(trainer._gpt)
    # The passes alone: gradient buffers and optimizer are not the micro-batches'.
    vars(optimizer).update(allocated_gradients=lambda _: nullcontext(), apply=lambda *_: {})
    trainer._training = SimpleNamespace(  # pyright: ignore
        replica=None,
        optimizer=SimpleNamespace(zero_grad=lambda: None),
        forward_backward=trainer._passes,
    )
    with ImitatedDevice() as device:
        metrics = trainer.update(
            batch, weighted, temperature=TEMPERATURE, learning_rate=0.0, auxiliary=AUXILIARY
        )
        update_waits, device.waits = device.waits, []
        scores = trainer.score(batch, temperature=TEMPERATURE, record_routes=True)
    return Watched(
        len(trainer._micro_batches(batch)),
        metrics,
        {name: _gradient(one) for name, one in trainer._gpt.named_parameters()},
        scores,
        _of_ours(update_waits),
        _of_ours(device.waits),
    )


def _gradient(parameter: Any) -> torch.Tensor:
    return parameter.grad.host if isinstance(parameter.grad, OnDevice) else parameter.grad


def _of_ours(waits: list[str]) -> dict[str, int]:
    ours = Counter(waits)
    return {
        name: count
        for name, count in ours.items()
        if not name.startswith("megatron.") and name != OF_A_CPU
    }
