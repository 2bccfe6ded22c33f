"""A plugin of pytest: engines are opened as far as on a machine with one GPU, without the GPU.

    pytest -p tests.bench.one_gpu -m engines tests/...

A test ends where it opens its first engine: the settings are resolved and refused as on a GPU, and
then the test is skipped. The last line of output has, per file, the number of tests and of those
that opened an engine, and every refusal. What a test does without an engine is not looked at: it
may need the GPU.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

with warnings.catch_warnings(action="ignore"):  # before a GPU is pretended
    from tasks.engines.embedded import hf_model
    from tasks.engines.rollout_vllm import engine, options
    from tasks.engines.trainer_megatron import model

from data_schemas.machine_settings import LayoutSettings, MachineSettings, TrainerKind
from tasks.engines.select import require_fit
from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.errors import SettingsError
from tests.engines.trainer_megatron import world_of_trainers

OPENED = "opened as on a GPU"
tests, opened = Counter(), Counter()
refused: list[str] = []


def refuse_vllm(options: dict[str, Any], layout: LayoutSettings, *_: object) -> NoReturn:
    """Refuse what one GPU cannot be shared for; the settings were resolved before."""
    if layout.rollout_tensor > 1 or options["gpu_memory_utilization"] > 1.0:
        raise SettingsError(f"one GPU has no room for {layout}")
    pytest.skip(OPENED)


def refuse_megatron(
    _: object, __: object, folder: Path, layout: LayoutSettings, **___: object
) -> NoReturn:
    """Refuse what Megatron refuses on a GPU."""
    read_geometry(folder).check(layout)
    require_fit(MachineSettings(trainer=TrainerKind.MEGATRON, layout=layout), nodes=1, processes=1)
    model.refuse(layout, torch.device("cuda"))
    pytest.skip(OPENED)


@contextmanager
def one_rank(size: int) -> Iterator[list[Any]]:
    """Refuse a second rank on a GPU, as NCCL does."""
    if size > 1:
        raise SettingsError(f"NCCL refuses {size} ranks on one GPU")
    yield []


# After vLLM has looked at the machine as it is, and before a test is marked by it.
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
vars(hf_model).update(device_here=lambda: torch.device("cpu"))  # what others are compared with
vars(options).update(HAS_TRITON=True)
vars(engine).update(_open_backend=refuse_vllm)
vars(world_of_trainers).update(trainer_world=one_rank)
world_of_trainers.RemoteTrainer.__init__ = refuse_megatron


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the tests."""
    tests.update(item.path.name for item in items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Note what was opened and what was refused."""
    report = yield
    if call.excinfo is not None:
        opened[item.path.name] += OPENED in str(call.excinfo.value)
        if call.excinfo.errisinstance(SettingsError):
            refused.append(f"{item.path.name}::{item.name}: {call.excinfo.value}")
    return report


def pytest_unconfigure() -> None:
    """Print what was found as the last line."""
    print(json.dumps({"tests": tests, "opened": opened, "refused": refused}))  # noqa: T201
