"""Packets of weights over a group, with gloo between threads."""

import threading

import pytest
import torch

from tasks.algorithms.digests import weight_digest
from tasks.engines.rollout_vllm.broadcast import BroadcastLink, PacketSender, receive_packet

WORKERS = 2
CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.bfloat16, torch.uint8, torch.int64, torch.float64]


def weights():
    """Shapes of every kind: no axes, none of an axis, not contiguous, longer than a packet."""
    shapes = [(), (3,), (0, 4), (7, 5), (2, 3, 5), (900,)]
    for number, dtype in enumerate(DTYPES):
        for shape in shapes:
            yield (
                f"{dtype}{shape}",
                (torch.arange(900)[: torch.Size(shape).numel()] + number).to(dtype).reshape(shape),
            )
    yield "turned", torch.arange(35.0).reshape(7, 5).T


class Workers:
    """Threads that receive as vLLM's workers do: first the metadata, then the tensors."""

    def __init__(self, link):
        self.seen = [{} for _ in range(WORKERS)]
        groups = [None] * WORKERS

        def join(worker):
            groups[worker] = link.meeting.join_as_worker(worker + 1)

        threads = [threading.Thread(target=join, args=(worker,)) for worker in range(WORKERS)]
        for thread in threads:
            thread.start()
        link.open()
        for thread in threads:
            thread.join()
        self.groups = groups

    def take(self, entries):
        def one(worker):
            self.seen[worker] |= dict(receive_packet(self.groups[worker], entries, CPU))

        threads = [threading.Thread(target=one, args=(worker,)) for worker in range(WORKERS)]
        for thread in threads:
            thread.start()
        return threads


@pytest.fixture
def link():
    link = BroadcastLink("gloo", workers=WORKERS, limit_s=20.0)
    yield link
    link.close()


def test_every_worker_receives_what_was_sent_byte_for_byte(link):
    workers, sizes = Workers(link), []

    def send(entries, packet):
        threads = workers.take(entries)
        link.send(packet).wait()
        for thread in threads:
            thread.join()
        sizes.append(len(packet))

    outbox, scratch = (
        PacketSender(send, CPU, packet_bytes=1000),
        torch.empty(900, dtype=torch.float64),
    )
    for name, tensor in weights():
        # A trainer that gathers every tensor into the same memory.
        reused = scratch.view(tensor.dtype)[: tensor.numel()].view(tensor.shape)
        outbox.add(name, reused.copy_(tensor))
    outbox.flush()

    for seen in workers.seen:
        assert weight_digest(weights()) == weight_digest(seen.items())
    assert len(sizes) > 5
    assert sorted(sizes)[-len(DTYPES) - 1] <= 1000, "only a longer tensor makes a longer packet"


def test_an_outbox_that_got_nothing_sends_nothing():
    PacketSender(lambda *_: pytest.fail("sent"), CPU, packet_bytes=1000).flush()


def test_a_worker_that_does_not_come_is_not_waited_for_longer_than_the_limit():
    link = BroadcastLink("gloo", workers=1, limit_s=0.2)

    with pytest.raises(RuntimeError):
        link.open()
    link.close()
