# pyright: reportMissingImports=false
"""A CPU worker whose shared memory is distinguished from that of other launches.

The ranks of a tensor-parallel group communicate over shared memory. vLLM 0.30.0 names it by the end
of their init address, which is `env://` under every torchrun, and removes it only when a process
exits normally: after a kill no later launch could start, and two concurrent launches would share
the same memory.
"""

from pathlib import Path
from uuid import uuid4

import torch
from torch import distributed
from vllm.v1.worker.cpu_worker import CPUWorker

SHARED_MEMORY = Path("/dev/shm")


class LaunchedWorker(CPUWorker):
    """vLLM's CPU worker, with a shared-memory name that is unique to the launch."""

    def init_device(self) -> None:
        """Join the groups, and unlink their shared memory once all ranks have opened it."""
        identity = torch.frombuffer(bytearray(uuid4().bytes), dtype=torch.uint8)
        distributed.broadcast(identity, src=0)
        name = bytes(identity.tolist()).hex()
        # The process group exists already: nothing else is read from the address.
        self.distributed_init_method = f"env://?{name}"
        super().init_device()
        distributed.barrier()
        for path in SHARED_MEMORY.glob(f"*{name}*"):
            path.unlink(missing_ok=True)
