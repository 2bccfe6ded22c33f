"""Adapters that have learned something, for tests."""

import torch

from tasks.engines.embedded.trainer import TorchTrainer


def give_values(trainer: TorchTrainer, seed: int = 0) -> None:
    """Give every factor B of a trainer values, as training does; A has some from the start."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, factor in trainer._adapter.factors.items():
            if "lora_B" in name:
                factor.copy_(0.02 * torch.randn(factor.shape, generator=generator))
