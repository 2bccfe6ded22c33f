"""What vLLM reads from the environment while it is imported; here is the only place that sets it.

A variable that is set already is left alone.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from tasks.errors import SettingsError

EVERYWHERE = {
    # The engine of this process steps in this process; AsyncLLM starts its own all the same.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # A fork would inherit the locks of torch's threads, held by threads that it lacks.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
WITHOUT_GPU = {
    # Threads bound to cores would be shared by the trainer and every other engine in the process.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # No warm-up and no compiler: both cost more than they give on models that fit a laptop.
    "VLLM_CPU_CI_ENV": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells its processes; an engine in a process of its own is none of them."""
_CHANGING = threading.Lock()
"""Replicas that are started again at once would take each other's changes for what was before."""


def prepare_environment() -> None:
    """Set what is not set yet. To be called before the first import of vLLM."""
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


def apart_environment(devices: Sequence[str]) -> dict[str, str | None]:
    """Return the changes for a child that is no part of the launch and sees these GPUs only.

    Args:
        devices: as CUDA_VISIBLE_DEVICES names them; none: there is no GPU to see.
    """
    changes: dict[str, str | None] = dict.fromkeys(LAUNCHER)
    if devices:
        changes["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    return changes


def last_devices(count: int) -> list[str]:
    """Return the names of the node's last GPUs; none on a machine without.

    Raises:
        SettingsError: this process sees fewer.
    """
    if not torch.cuda.is_available():
        return []
    seen = _seen_devices()
    if len(seen) < count:
        raise SettingsError(
            f"layout.dedicated_rollout_gpus is {count}, but this process sees {len(seen)} GPUs"
        )
    return seen[-count:]


def group_with(devices: Sequence[str]) -> str:
    """Return what weights go over to an engine on these GPUs: 'nccl', or '' for files.

    NCCL goes from one GPU to others: not to none, and not to this process's own.
    """
    if not devices:
        return ""
    return "" if _seen_devices()[torch.cuda.current_device()] in devices else "nccl"


def _seen_devices() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return named.split(",") if named else [str(one) for one in range(torch.cuda.device_count())]


def _apply(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
