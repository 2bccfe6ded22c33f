"""Every rank of a team is sent what its trainer computes of a batch, and nothing else."""

from dataclasses import replace

import pytest
import torch

from tasks.algorithms.routing import Traces
from tests.engines.team.shares_of_world import recorded, shared, slowly_shared
from tests.engines.trainer_megatron.batches import as_recorded, random_batch
from tests.engines.trainer_megatron.gloo_world import run_world

RANKS = 4
"""Two pairs: the controller sends one rank what it shares with it, and one what that passes on."""
FULL = random_batch()
ROUTED = replace(FULL, experts_NTLK=FULL.experts_NTLK.to(torch.int16))
BATCHES = {
    "routes": ROUTED,
    "recorded routes": as_recorded(FULL),
    "no routes": replace(ROUTED, experts_NTLK=None),
    "one sequence": ROUTED.select(torch.tensor([4])),
}


@pytest.fixture(scope="module")
def seen():
    """By batch: what the ranks saw of it when they scored, and when they updated."""
    ranks = run_world(shared, RANKS, list(BATCHES.values()))
    return {
        name: [rank[2 * number : 2 * number + 2] for rank in ranks]
        for number, name in enumerate(BATCHES)
    }


@pytest.mark.parametrize("name", BATCHES)
def test_every_rank_finds_its_sequences_and_the_routes_of_its_layers(seen, name):
    batch = BATCHES[name]
    for rank, calls in enumerate(seen[name]):
        for one in calls:
            rows = torch.arange(len(batch.lengths_N))[rank // 2 :: 2]
            assert sum(one.share.buckets, ()) == tuple(rows.tolist())
            for bucket, part in zip((rows[:2], rows[2:]), one.parts, strict=True):
                expected = batch.select(bucket)
                assert torch.equal(expected.tokens_NT, part.tokens_NT)
                assert torch.equal(expected.columns["weights"], part.columns["weights"])
                if batch.experts_NTLK is None:
                    assert part.experts_NTLK is None
                else:
                    layers = [rank // 2]
                    routes_NTLK = expected.padded_routes_NTLK[:, :, layers]
                    assert torch.equal(routes_NTLK, part.padded_routes_NTLK)


@pytest.mark.parametrize("name", BATCHES)
def test_nothing_else_is_sent_and_each_bucket_is_as_wide_as_its_longest(seen, name):
    batch = BATCHES[name]
    outline = 8 * len(batch.lengths_N) + batch.response_NT.numel()
    for rank, calls in enumerate(seen[name]):
        lengths = batch.lengths_N[rank // 2 :: 2]
        buckets = [bucket for bucket in (lengths[:2], lengths[2:]) if len(bucket)]
        tokens = sum(len(bucket) * int(bucket.max()) for bucket in buckets)
        routes = 0 if batch.experts_NTLK is None else tokens * 2 * 2  # one layer, int16 x top-2
        if isinstance(batch.experts_NTLK, Traces):  # a byte, but where a row is missing; no padding
            fed = [len(one) * one.itemsize for one in batch.experts_NTLK.of_sequences]
            routes = 2 * sum(fed[rank // 2 :: 2])
        part = 12 * len(lengths) + 9 * tokens + routes  # a length and a weight; token, response
        for one in calls if rank else []:  # rank 0 has it all
            assert routes == one.route_bytes
            assert outline + part == one.all_bytes


def test_routes_come_from_the_rank_that_recorded_them_while_it_has_them():
    ranks = run_world(recorded, RANKS)
    routes_NTLK = torch.stack(ranks[0][1])
    for rank, (seen, _) in enumerate(ranks[1:], start=1):
        for one in seen:  # first with blank routes at rank 0, then with none at the others
            for bucket, part in zip(one.share.buckets, one.parts, strict=True):
                width = part.tokens_NT.shape[1]
                expected = routes_NTLK[list(bucket), :width][:, :, [rank // 2]]
                assert torch.equal(expected, part.padded_routes_NTLK)
        assert len(seen) == 2


def test_nobody_waits_in_an_engines_collective_for_who_still_receives_a_share():
    assert [3.0, None, None] == run_world(slowly_shared, 3, FULL)
