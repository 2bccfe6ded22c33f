"""Hashing beside a weight sync finds what hashing tensor by tensor finds."""

import torch

from tasks.algorithms.digests import tensor_digest, weight_digest
from tasks.engines import weight_sync
from tasks.engines.weight_sync import Hasher, Outgoing
from tests.engines.embedded.second_device import second_device

WEIGHTS = {f"layer.{number}": torch.full((3, 5), float(number)) for number in range(40)}


def test_what_is_sent_is_hashed_on_the_way():
    outgoing = Outgoing(iter(WEIGHTS.items()))

    assert list(WEIGHTS.items()) == list(outgoing)
    assert weight_digest(WEIGHTS.items()) == outgoing.digest()


def test_what_each_process_sent_itself_counts_as_sent():
    outgoing, mine = Outgoing(iter(())), Outgoing(iter(WEIGHTS.items()))
    list(mine)

    outgoing.join(mine)

    assert weight_digest(WEIGHTS.items()) == outgoing.digest()
    assert 40 * 15 * 4 == outgoing.sent_bytes


def test_tensors_of_a_gpu_are_hashed_as_they_were_when_they_were_added():
    hasher = Hasher(threads=1)
    with second_device():
        for name, tensor in WEIGHTS.items():
            there = tensor.to("cuda").t()  # as a view of a fused parameter is, not contiguous
            hasher.add(name, there)
            there.zero_()
        found = dict(hasher.digests())
    hasher.close()

    assert {name: tensor_digest(tensor.t()) for name, tensor in WEIGHTS.items()} == found


def test_few_tensors_wait_in_memory(monkeypatch):
    size = WEIGHTS["layer.0"].nbytes
    monkeypatch.setattr(weight_sync, "WAITING_BYTES", 3 * size)
    hasher = Hasher(threads=1)
    for name, tensor in WEIGHTS.items():
        hasher.add(name, tensor)
        assert hasher._bytes <= 3 * size

    assert {name: tensor_digest(tensor) for name, tensor in WEIGHTS.items()} == hasher.digests()
    hasher.close()
