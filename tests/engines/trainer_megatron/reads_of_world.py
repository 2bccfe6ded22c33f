"""Bytes that loading a state reads on every rank: run by gloo_world.py."""

from pathlib import Path

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.trainer_megatron.trainer import MegatronTrainer
from tests.durability.shards_of_world import bytes_read


def saved_and_loaded(model: Path, folder: Path, layout: LayoutSettings) -> int:
    """Save a state and load it; return the bytes that this rank read to load it."""
    trainer = MegatronTrainer(model, layout=layout)
    trainer.save(folder)
    before = bytes_read()
    trainer.restore(folder)
    return bytes_read() - before
