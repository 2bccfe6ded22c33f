"""Both sides of a weight sync hash every tensor: threads do it while tensors are sent."""

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import torch

from tasks.algorithms.digests import joint_digest, tensor_digest
from tasks.cores import num_cores

WAITING_BYTES = 2**30
"""Tensors that wait to be hashed stay in memory, up to this size."""


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a CPU as it is, and of a GPU a copy in pinned memory.

    torch keeps pinned memory that is freed and uses it again: fresh memory, whose pages are mapped
    while they are written, takes a twentieth of the speed.
    """
    plain = tensor.detach()
    if plain.device.type == "cpu":
        return plain
    pinned = torch.cuda.is_available()
    return torch.empty(plain.shape, dtype=plain.dtype, pin_memory=pinned).copy_(plain)


class Hasher:
    """Hashes tensors in threads: one core hashes about 1 GB per second, a sync sends 10 and more.

    A tensor may not change before `digest`. Tensors on a GPU are copied; others are kept alive.

    Args:
        threads: None = a core each, of those that this process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads or num_cores(), thread_name_prefix="hash")
        self._waiting: deque[tuple[str, int, Future[str]]] = deque()
        self._bytes = 0
        self._digests: dict[str, str] = {}

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Start to hash a tensor, after earlier ones if too many wait."""
        while self._waiting and self._bytes + tensor.nbytes > WAITING_BYTES:
            self._settle()
        flat = on_host(tensor)
        self._waiting.append((name, flat.nbytes, self._pool.submit(tensor_digest, flat)))
        self._bytes += flat.nbytes

    def digests(self) -> Mapping[str, str]:
        """Wait for all tensors; return the digest of each."""
        while self._waiting:
            self._settle()
        return self._digests

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _settle(self) -> None:
        name, size, digest = self._waiting.popleft()
        self._digests[name] = digest.result()
        self._bytes -= size


class Outgoing(Iterator[tuple[str, torch.Tensor]]):
    """Iterates over named tensors and hashes each: one pass.

    Args:
        source: the trainer's weights.
    """

    def __init__(self, source: Iterator[tuple[str, torch.Tensor]]) -> None:
        self.source = source
        self._hasher = Hasher()
        self._elsewhere: dict[str, str] = {}
        self.sent_bytes = 0
        """Bytes of the tensors so far."""

    def __next__(self) -> tuple[str, torch.Tensor]:
        name, tensor = next(self.source)
        self.sent_bytes += tensor.nbytes
        self._hasher.add(name, tensor)
        return name, tensor

    def tensor_digests(self) -> Mapping[str, str]:
        """Digest of every tensor sent so far."""
        return {**self._hasher.digests(), **self._elsewhere}

    def join(self, others: "Outgoing") -> None:
        """Count tensors that each process sent directly to its own engine."""
        self._elsewhere.update(others.tensor_digests())
        self.sent_bytes += others.sent_bytes

    def digest(self) -> str:
        """Digest of all tensors; ends the hashing."""
        # By name, not by order: each side yields the tensors as they are ready.
        joint = joint_digest(self.tensor_digests())
        self._hasher.close()
        return joint
