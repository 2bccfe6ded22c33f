"""A GPU that is there and cannot be used is an error, not a reason to compute on the CPU."""

import os
import re
from pathlib import Path

import torch

from tasks.errors import SettingsError

DRIVER = Path("/proc/driver/nvidia/version")
"""Written by NVIDIA's kernel module, whose version it names; in containers, too."""


def device_here() -> torch.device:
    """Return this process's GPU; the CPU where none is visible.

    Raises:
        SettingsError: a GPU is visible and cannot be used.
    """
    refuse_unusable_gpu()
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


def refuse_unusable_gpu() -> None:
    """Refuse to go on without CUDA where a GPU is visible: torch would silently take the CPU.

    Raises:
        SettingsError: names the driver and the CUDA version that torch was built for.
    """
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in {"", "-1"}
    if torch.cuda.is_available() or hidden or not DRIVER.exists():
        return
    match = re.search(r"\d+\.\d+(\.\d+)?", DRIVER.read_text())
    version = match[0] if match else "of unknown version"
    cuda = torch.version.cuda or "none (CPU only)"
    raise SettingsError(
        f"this machine has an NVIDIA driver {version}, which torch {torch.__version__}, built for "
        f"CUDA {cuda}, cannot use; CUDA 13 needs driver 580 or newer. Install a newer driver or a "
        "torch for yours, or hide the GPU with CUDA_VISIBLE_DEVICES='' to compute on the CPU"
    )
