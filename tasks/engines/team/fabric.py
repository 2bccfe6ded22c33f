"""A fabric between nodes that NCCL does not use is an error, not a reason to train over TCP.

InfiniBand and EFA need a device of the pod and a library of the image. Where one is missing, NCCL
takes TCP without a word, and every collective of a stage takes ten times as long.
"""

import os
import time
from pathlib import Path

import torch
from torch import distributed as dist

from tasks.errors import SettingsError

DEVICES = Path("/sys/class/infiniband")
"""A folder per device of InfiniBand, RoCE or EFA that the machine has; in containers that were not
given them, too."""
LEAST_SHARE = 0.25
"""Least share of the rate of one port per GPU: nccl-tests report more than half of it over RDMA,
and much less over TCP. No cluster was at hand to measure it."""
MEASURED_BYTES = 2**29
"""Size of an all-reduce that is limited by bandwidth, not by latency, on tens of nodes."""
ROUNDS = 3


def refuse_slow_fabric(device: torch.device, least_gb_s: float) -> None:
    """Measure an all-reduce between all ranks once; a collective call, the same result on all.

    Args:
        device: of this rank.
        least_gb_s: see `least_bandwidth`; the largest of all ranks counts. 0 = no fabric.

    Raises:
        SettingsError: NCCL is slower than that.
    """
    least = torch.tensor(least_gb_s)
    dist.all_reduce(least, dist.ReduceOp.MAX)
    if not least:
        return
    found_gb_s = measure_bandwidth(device)
    if found_gb_s < least:
        raise SettingsError(
            f"NCCL's all-reduce between the nodes reaches {found_gb_s:.2g} GB/s; their InfiniBand "
            f"or EFA devices give {least:.3g} GB/s or more, so it seems to run over TCP "
            "(NCCL_DEBUG=INFO prints NET/Socket). In the pod template request the devices, and set "
            "FI_PROVIDER=efa for EFA, NCCL_IB_HCA for InfiniBand; or NCCL_NET=Socket to want TCP"
        )


def least_bandwidth(device: torch.device, *, ranks: int, local_ranks: int) -> float:
    """Return the GB/s that NCCL reaches at least if it uses this node's fabric.

    Args:
        device: of this rank.
        ranks: of the stage.
        local_ranks: on this node; each counts the rate of one port.

    Returns:
        0 without GPUs, on a single node, if the node has no such device, or if NCCL is told to use
        TCP.
    """
    if device.type != "cuda" or ranks == local_ranks:
        return 0.0
    if os.environ.get("NCCL_NET") == "Socket" or os.environ.get("NCCL_IB_DISABLE") == "1":
        return 0.0
    ports = [path.parent for path in DEVICES.glob("*/ports/*/rate")]
    gigabits = [
        float((port / "rate").read_text().split()[0])
        for port in ports
        if "ACTIVE" in (port / "state").read_text()
    ]
    return LEAST_SHARE * sum(sorted(gigabits)[-local_ranks:]) / 8


def measure_bandwidth(device: torch.device) -> float:
    """Return the GB/s of bus of an all-reduce of all ranks, as nccl-tests counts them."""
    # A group of its own: NCCL's buffers of the default group would stay.
    group = dist.new_group(backend="nccl" if device.type == "cuda" else "gloo")
    assert isinstance(group, dist.ProcessGroup)
    data = torch.zeros(MEASURED_BYTES // 2, dtype=torch.bfloat16, device=device)
    seconds = []
    for _ in range(1 + ROUNDS):  # the first one connects
        started = time.perf_counter()
        dist.all_reduce(data, group=group)
        float(data[0])  # waits for the device
        seconds.append(time.perf_counter() - started)
    slowest = torch.tensor(min(seconds[1:]))
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    dist.destroy_process_group(group)
    del data
    if device.type == "cuda":
        torch.cuda.empty_cache()
    ranks = dist.get_world_size()
    return 2 * (ranks - 1) / ranks * MEASURED_BYTES / float(slowest) / 1e9
