"""What vLLM reads from the environment while it is imported; here is the only place that sets it.

A variable that is set already is left alone.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

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


def prepare_environment() -> None:
    """Set what is not set yet. To be called before the first import of vLLM."""
    for name, value in EVERYWHERE.items():
        os.environ.setdefault(name, value)
    if not torch.cuda.is_available():
        for name, value in WITHOUT_GPU.items():
            os.environ.setdefault(name, value)


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change variables for the children started inside; None removes one."""
    before = {name: os.environ.get(name) for name in changes}
    _apply(changes)
    try:
        yield
    finally:
        _apply(before)


def apart_environment(gpus: int) -> dict[str, str | None]:
    """Return the changes for a child on the node's last GPUs, which is no part of the launch.

    Args:
        gpus: how many; without a GPU it only says that the child is not launched by torchrun.
    """
    changes: dict[str, str | None] = dict.fromkeys(LAUNCHER)
    if torch.cuda.is_available():
        named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        devices = named.split(",") if named else [str(one) for one in range(_gpus_of_the_node())]
        changes["CUDA_VISIBLE_DEVICES"] = ",".join(devices[-gpus:])
    return changes


def _gpus_of_the_node() -> int:
    return torch.cuda.device_count()


def _apply(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
