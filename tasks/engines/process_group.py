"""The default process group and the GPU of a process, the same whichever engine is opened first.

vLLM would open a group of NCCL only, in which Megatron's trainer could not add up tensors of a CPU.
"""

import json
import os
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from tasks.errors import SettingsError

COLLECTIVE_LIMIT = timedelta(minutes=10)
"""Timeout of an engine's collectives: NCCL's own default, long enough for kernels that one rank
compiles and the others wait for. A rank that is gone, stopped or idle is noticed long before
(team/failure_store.py)."""
NCCL_ENVIRONMENT = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": f"{COLLECTIVE_LIMIT.total_seconds():.0f}",
}
"""A collective beyond its timeout ends its process, and so does a watchdog of NCCL that hangs; the
defaults of torch 2.13 are 3 and 480. A variable that is already set is not changed."""


def join_world() -> torch.device:
    """Choose this process's device and open the default group, unless it is open.

    Without torchrun's environment the process is a world of its own.

    Raises:
        SettingsError: this machine has fewer GPUs than processes.
    """
    device = _device()
    if distributed.is_initialized():
        return device
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    for name, value in NCCL_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if "RANK" in os.environ:
        distributed.init_process_group(backend, timeout=COLLECTIVE_LIMIT)
    else:
        # A rendezvous by TCP listens on all addresses of the machine, without authentication.
        distributed.init_process_group(
            backend,
            store=distributed.HashStore(),  # pyright: ignore[reportPrivateImportUsage]
            rank=0,
            world_size=1,
            timeout=COLLECTIVE_LIMIT,
        )
    return device


def gather_json(value: object) -> list[Any]:
    """Gather a small value of every rank on all ranks, in rank order.

    As bytes: torch's own collectives of objects unpickle what they receive.
    """
    data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
    world, rank = distributed.get_world_size(), distributed.get_rank()
    sizes = torch.zeros(world, dtype=torch.int64)
    sizes[rank] = len(data)
    distributed.all_reduce(sizes)
    texts = torch.zeros(world, int(sizes.max()), dtype=torch.uint8)
    texts[rank, : len(data)] = data
    distributed.all_reduce(texts)
    both = zip(texts, sizes, strict=True)
    return [json.loads(bytes(text[:size].tolist())) for text, size in both]


def _device() -> torch.device:
    """Return this process's GPU and make it the current one; the CPU if there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if local_rank >= (gpus := torch.cuda.device_count()):
        raise SettingsError(
            f"process {local_rank} of this machine has no GPU: it has {gpus}, and NCCL accepts one "
            f"process per GPU; set EACHPROMPT_PROCESSES to at most {gpus}"
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)
