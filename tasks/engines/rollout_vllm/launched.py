# pyright: reportMissingImports=false
"""A worker on a CPU whose launch is told apart from others on the machine.

The ranks of a tensor-parallel group meet in shared memory. vLLM 0.30.0 names it by the end of the
address they were started with, which is `env://` under every torchrun, and removes it only where a
process ends by itself: one that was killed would keep every later launch from starting, and two
launches at once would meet each other.
"""

from pathlib import Path
from uuid import uuid4

from torch import distributed
from vllm.v1.worker.cpu_worker import CPUWorker

SHARED_MEMORY = Path("/dev/shm")


class LaunchedWorker(CPUWorker):
    """vLLM's own, under a name that all ranks of a launch agree on; they open it together."""

    def init_device(self) -> None:
        """Join the groups; their shared memory has no name any more once everybody has it."""
        names = [uuid4().hex]
        distributed.broadcast_object_list(names)
        # The process group is there already: nothing else is read from the address.
        self.distributed_init_method = f"env://?{names[0]}"
        super().init_device()
        distributed.barrier()
        for path in SHARED_MEMORY.glob(f"*{names[0]}*"):
            path.unlink(missing_ok=True)
