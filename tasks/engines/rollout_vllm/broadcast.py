# pyright: reportMissingImports=false
"""Weight sync to the workers of a separate engine: packets over a dedicated process group.

The engine's owner is rank 0 of the group and its workers are the other ranks: NCCL between GPUs,
else gloo. The default process groups of the owner (the trainer's) and of the workers (vLLM's) are
not involved. The content list of a packet is sent by vLLM's own call; the packet itself, one row of
bytes, is broadcast.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import torch
from torch import distributed as dist

# Documented there, but not declared.
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

ALIGNMENT = 16
"""Bytes: alignment of the tensors in a packet, sufficient for any dtype."""
HOST = "127.0.0.1"
"""An engine and its owner are on the same node."""

Entry = tuple[str, str, Sequence[int]]
"""(name, torch dtype as text, shape) of a tensor in a packet."""
Send = Callable[[list[Entry], torch.Tensor], None]


class BroadcastGroup(Protocol):
    """One rank's end of the process group."""

    def broadcast(self, packet: torch.Tensor) -> Any:
        """Start a broadcast from rank 0; the returned handle has a `wait`."""
        ...

    def abort(self) -> None:
        """Abort the running broadcast: another rank may be gone."""
        ...


class _Gloo:
    def __init__(self, store: TCPStore, rank: int, size: int, limit: timedelta) -> None:
        self._group: Any = dist.ProcessGroupGloo(store, rank, size, timeout=limit)

    def broadcast(self, packet: torch.Tensor) -> Any:
        return self._group.broadcast([packet], dist.BroadcastOptions())

    def abort(self) -> None:
        self._group.abort()


class _Nccl:
    """vLLM's communicator: the watchdog of torch's would end a trainer whose engine is lost.

    It has its own stream, so that a broadcast without receivers blocks nothing else.
    """

    def __init__(self, store: TCPStore, rank: int, size: int) -> None:
        from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
        from vllm.distributed.utils import StatelessProcessGroup

        device = torch.device("cuda", torch.cuda.current_device())
        self._stream = torch.cuda.Stream(device)
        self._communicator = PyNcclCommunicator(StatelessProcessGroup(rank, size, store), device)
        if self._communicator.disabled:
            raise RuntimeError("vLLM finds no NCCL library, or VLLM_DISABLE_PYNCCL is set")

    def broadcast(self, packet: torch.Tensor) -> Any:
        self._stream.wait_stream(torch.cuda.current_stream())
        packet.record_stream(self._stream)
        self._communicator.broadcast(packet, src=0, stream=self._stream)
        return self._stream.record_event()

    def abort(self) -> None:
        self._communicator.destroy()


@dataclass
class Rendezvous:
    """The parameters both sides need to form the group."""

    backend: str
    """'nccl' or 'gloo'"""
    port: int
    size: int
    """The owner and all workers."""
    limit_s: float
    """Timeout for all ranks to join, seconds."""

    def join(self, rank: int, store: TCPStore) -> BroadcastGroup:
        """Join the group and return this rank's end.

        Raises:
            RuntimeError: not all ranks joined within the timeout, or there is no NCCL.
        """
        limit = timedelta(seconds=self.limit_s)
        # NCCL itself would wait for a missing rank forever.
        store.set(f"here/{rank}", "")
        store.wait([f"here/{one}" for one in range(self.size)], limit)
        if self.backend == "gloo":
            return _Gloo(store, rank, self.size, limit)
        return _Nccl(store, rank, self.size)

    def join_as_worker(self, rank: int) -> BroadcastGroup:
        """Join as a worker: ranks from 1."""
        limit = timedelta(seconds=self.limit_s)
        return self.join(rank, TCPStore(HOST, self.port, is_master=False, timeout=limit))


class BroadcastLink:
    """The owner's end.

    Args:
        backend: 'nccl' or 'gloo'.
        workers: of the engine.
        limit_s: timeout for all ranks to join.
    """

    def __init__(self, backend: str, *, workers: int, limit_s: float) -> None:
        self._store = TCPStore(
            HOST, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=limit_s)
        )
        self.meeting = Rendezvous(backend, self._store.port, workers + 1, limit_s)
        self._group: BroadcastGroup | None = None

    @property
    def device(self) -> torch.device:
        return torch.device("cuda" if self.meeting.backend == "nccl" else "cpu")

    def open(self) -> None:
        """Wait for the workers.

        Raises:
            RuntimeError: they did not join in time.
        """
        self._group = self.meeting.join(0, self._store)

    def send(self, packet: torch.Tensor) -> Any:
        """Start a broadcast; the returned handle has a `wait`.

        Raises:
            RuntimeError: the workers are gone.
        """
        if self._group is None:
            raise RuntimeError("the group is closed")
        return self._group.broadcast(packet)

    def close(self) -> None:
        """Abort the running broadcast: a worker may be gone."""
        group, self._group = self._group, None
        if group is not None:
            group.abort()


class PacketSender:
    """Fills packets with tensors; every tensor is copied once, so its memory may be used again."""

    def __init__(self, send: Send, device: torch.device, packet_bytes: int) -> None:
        self._send, self._device, self._packet_bytes = send, device, packet_bytes
        self._entries: list[Entry] = []
        self._filled = 0
        self._packet = torch.empty(0, dtype=torch.uint8, device=device)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Add a tensor to the packet; a full packet is sent first."""
        size = _room(tensor.nbytes)
        if self._filled + size > len(self._packet):
            self.flush()
            room = max(size, self._packet_bytes)
            self._packet = torch.empty(room, dtype=torch.uint8, device=self._device)
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        self._packet[self._filled : self._filled + tensor.nbytes].copy_(flat)
        self._entries.append((name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)))
        self._filled += size

    def flush(self) -> None:
        """Send the current packet."""
        if self._entries:
            self._send(self._entries, self._packet[: self._filled])
        # The memory of a sent packet belongs to the broadcast.
        self._entries, self._filled = [], 0
        self._packet = self._packet[:0]


def receive_packet(
    group: BroadcastGroup, entries: Sequence[Entry], device: torch.device
) -> Iterator[tuple[str, torch.Tensor]]:
    """Receive a packet and yield its tensors, which share its memory."""
    sizes = [
        getattr(torch, dtype).itemsize * torch.Size(shape).numel() for _, dtype, shape in entries
    ]
    packet = torch.empty(sum(map(_room, sizes)), dtype=torch.uint8, device=device)
    group.broadcast(packet).wait()
    place = 0
    for (name, dtype, shape), size in zip(entries, sizes, strict=True):
        yield name, packet[place : place + size].view(getattr(torch, dtype)).reshape(list(shape))
        place += _room(size)


def _room(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
