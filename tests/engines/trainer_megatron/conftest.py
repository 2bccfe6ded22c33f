"""Worlds that several files look at, each run once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data_schemas.machine_settings import LayoutSettings
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.layouts import processes
from tests.engines.trainer_megatron.small_models import configs, write_model

if TYPE_CHECKING:
    from tests.engines.trainer_megatron.model_ranks import Findings


@dataclass(frozen=True, slots=True)
class World:
    """What the ranks of a layout found."""

    sources: dict[str, Path]
    saved: Path
    """Folder with what each model was saved as."""
    ranks: "list[dict[str, Findings]]"


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory, tiny_moe: Path) -> dict[str, Path]:
    """A directory per architecture. Read only."""
    root = tmp_path_factory.mktemp("small_models")
    return {name: write_model(one, tiny_moe, root / name) for name, one in configs().items()}


@pytest.fixture(scope="session")
def world(
    tmp_path_factory: pytest.TempPathFactory, small_models: dict[str, Path]
) -> Callable[[LayoutSettings], World]:
    """Run every model that a layout divides, once per layout."""
    # Imported here: the folder's other tests need no Megatron.
    from tests.engines.trainer_megatron.model_ranks import find

    done: dict[str, World] = {}

    def run(layout: LayoutSettings) -> World:
        if layout.model_dump_json() not in done:
            sources = {
                name: folder
                for name, folder in small_models.items()
                if layout.expert == 1 or name.startswith("moe")
            }
            saved = tmp_path_factory.mktemp("saved")
            ranks = run_world(find, processes(layout), sources, layout, saved)
            done[layout.model_dump_json()] = World(sources, saved, ranks)
        return done[layout.model_dump_json()]

    return run
