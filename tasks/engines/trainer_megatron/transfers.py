"""Copies between host and device that wait for nothing. A copy from or to memory that is not pinned
makes the host wait for all that the device has still to compute.
"""

import torch


def to_device(rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy to a device behind what it computes now; a CPU has the tensor itself."""
    pinned = rows.pin_memory() if device.type == "cuda" else rows
    return pinned.to(device, non_blocking=True)


def to_host(rows: torch.Tensor) -> torch.Tensor:
    """Copy to pinned memory, whose values are there when `wait_for` has returned."""
    return rows.to("cpu", non_blocking=True)


def wait_for(device: torch.device) -> None:
    """Wait until a device has computed and copied everything."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
