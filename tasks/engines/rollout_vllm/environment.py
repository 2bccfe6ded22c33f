# pyright: reportMissingImports=false
"""Environment variables that vLLM reads as it is imported and as it opens an engine.

They are set in this module only. A variable that is already set is not changed, but for the model
runner of an engine that needs the second one.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch

from tasks.errors import SettingsError

RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
"""Which of its two model runners vLLM opens an engine with."""
EVERYWHERE = {
    # vLLM chooses its second model runner wherever there is Triton: on every GPU, and on no machine
    # of the tests. Both record routes; their streams of random numbers differ.
    RUNNER: "0",
    # The in-process engine steps in this process; AsyncLLM still starts its own.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # A forked process would inherit locks held by torch threads that do not exist in it.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
WITHOUT_GPU = {
    # Bound cores would be shared by the trainer and all other engines in the process.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # No warm-up and no compilation: both cost more than they save on laptop-sized models.
    "VLLM_CPU_CI_ENV": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables set by torchrun; a separate engine process is not part of the launch."""
_CHANGING = threading.Lock()
"""Serialises changes: concurrent restarts would restore each other's changes."""


def prepare_environment() -> None:
    """Set the variables that are not set; call before the first import of vLLM."""
    for name, value in EVERYWHERE.items():
        os.environ.setdefault(name, value)
    if not torch.cuda.is_available():
        for name, value in WITHOUT_GPU.items():
            os.environ.setdefault(name, value)


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change variables for the children started inside; None removes one. One block at a time."""
    with _CHANGING:
        before = {name: os.environ.get(name) for name in changes}
        _apply(changes)
        try:
            yield
        finally:
            _apply(before)


@contextmanager
def opening(
    options: Mapping[str, Any], changes: Mapping[str, str | None] = MappingProxyType({})
) -> Iterator[None]:
    """Set what vLLM reads while an engine is opened inside; its processes inherit it.

    An engine that records what it draws from has the second model runner, the only one that can.

    Args:
        options: of vLLM's EngineArgs.
        changes: as in `changed_environment`.
    """
    from vllm import envs  # not above: it is imported once the environment is prepared

    runner = {RUNNER: "1"} if options.get("return_sampling_mask") else {}
    with changed_environment({**changes, **runner}):
        # An engine that was opened in this process made vLLM keep the variables that it found.
        envs.disable_envs_cache()
        yield


def separate_environment(devices: Sequence[str]) -> dict[str, str | None]:
    """Return the changes for a child outside the launch that sees only these GPUs.

    Args:
        devices: as in CUDA_VISIBLE_DEVICES; empty without GPUs.
    """
    changes: dict[str, str | None] = dict.fromkeys(LAUNCHER)
    if devices:
        changes["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    return changes


def last_devices(count: int) -> list[str]:
    """Return the names of the node's last GPUs; empty without GPUs.

    Raises:
        SettingsError: this process sees fewer.
    """
    if not torch.cuda.is_available():
        return []
    devices = _seen_devices()
    if len(devices) < count:
        raise SettingsError(
            f"layout.dedicated_rollout_gpus is {count}, but this process sees {len(devices)} GPUs"
        )
    return devices[-count:]


def group_with(devices: Sequence[str]) -> str:
    """Return the transport of weights to an engine on these GPUs: 'nccl', or '' for files.

    NCCL needs distinct GPUs on both sides, so it is not used without GPUs or on this process's own.
    """
    if not devices:
        return ""
    return "" if _seen_devices()[torch.cuda.current_device()] in devices else "nccl"


def _seen_devices() -> list[str]:
    variable = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return (
        variable.split(",") if variable else [str(one) for one in range(torch.cuda.device_count())]
    )


def _apply(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
