"""What one rank of a world does with a MegatronTrainer: run by gloo_world."""

from dataclasses import dataclass
from pathlib import Path

import torch

from data_schemas.machine_settings import LayoutSettings
from data_schemas.rl_settings import AuxiliarySettings
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.engines.trainer_megatron import parallel
from tasks.engines.trainer_megatron.trainer import MegatronTrainer

TEMPERATURE = 0.7
AUXILIARY = AuxiliarySettings(entropy=0.01, balance=0.1, router_z=0.01)


@dataclass(frozen=True, slots=True)
class Trained:
    """What one rank saw."""

    before: TokenScores
    updates: list[dict[str, float]]
    weights: dict[str, torch.Tensor]
    after: TokenScores


def likelihood(
    logprobs_NT: torch.Tensor, batch: TokenBatch
) -> tuple[torch.Tensor, dict[str, float]]:
    """A loss that every sequence adds to, one more than another."""
    tokens = batch.response_NT.float() * batch.columns["weights"][:, None]
    return -(logprobs_NT * tokens).sum() / 100, {"tokens": float(batch.response_NT.sum())}


def train(
    folder: Path,
    layout: LayoutSettings,
    batch: TokenBatch,
    auxiliary: AuxiliarySettings,
    learning_rate: float,
    updates: int = 3,
) -> Trained:
    """Score, update a few times, and score again."""
    trainer = MegatronTrainer(folder, layout=layout, weight_decay=0.1)
    before = trainer.score(batch, temperature=TEMPERATURE, record_routes=True)
    metrics = [
        trainer.update(
            batch,
            likelihood,
            temperature=TEMPERATURE,
            learning_rate=learning_rate,
            auxiliary=auxiliary,
        )
        for _ in range(updates)
    ]
    weights = {name: tensor.clone() for name, tensor in trainer.weights()}
    after = trainer.score(batch, temperature=TEMPERATURE, record_routes=True)
    parallel.dissolve()
    return Trained(before, metrics, weights, after)
