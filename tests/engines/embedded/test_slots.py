"""Slots hold a bounded number of tokens, and what they hold changes no result."""

import dataclasses
from collections import deque
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rollouts import Rollout
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded import rollout
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.rollout_forward import Prefill
from tasks.engines.embedded.slots import Seat, Slots
from tasks.engines.protocols import Request, Sampling
from tasks.engines.stop_strings import StopStrings
from tasks.engines.team.shared_queue import Dealer, SharedQueue
from tests.engines.embedded.peak_memory import PeakMemory

TOKEN_BYTES = 2 * 2 * 16 * 4 + 2 * 2 + 12
"""Bytes of `tiny_moe`: keys and values of two layers, one head of 16 floats; two routes in two
layers; an int64 and a float."""
SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


def requests(lengths, num_samples=1):
    generator = np.random.default_rng(0)
    return [
        Request(f"p{place}", generator.integers(0, 250, length).astype(np.int32), num_samples)
        for place, length in enumerate(lengths)
    ]


def peak_bytes(folder: Path, asked, sampling=SAMPLING) -> int:
    engine = HFRolloutEngine(folder)
    with PeakMemory() as memory:
        assert len(asked) == len(list(engine.generate(asked, sampling)))
    return memory.peak


@pytest.fixture
def cache_of(monkeypatch):
    """Give the slots of engines that are opened next room for so many tokens of `tiny_moe`."""
    return lambda tokens: monkeypatch.setattr(rollout, "CACHE_BYTES", tokens * TOKEN_BYTES)


def test_five_times_the_prompts_take_the_same_memory(tiny_moe, cache_of):
    cache_of(1000)
    sampling = dataclasses.replace(SAMPLING, max_new_tokens=3)
    few, many = (peak_bytes(tiny_moe, requests([200] * count), sampling) for count in (12, 60))

    assert many < 1.05 * few


def test_prompts_are_in_memory_once_and_one_pass_besides(tiny_moe, monkeypatch):
    monkeypatch.setattr(rollout, "PREFILL_TOKENS", 400)
    asked = requests([200] * 40)

    assert peak_bytes(tiny_moe, asked) < 1.6 * 40 * 212 * TOKEN_BYTES


def results(engine, asked, sampling=SAMPLING):
    return {(one.problem_id, one.sample): one for one in engine.generate(asked, sampling)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tokens", [1, 150, 700])
def test_the_bound_changes_neither_tokens_nor_routes(tiny_moe, cache_of, seed, tokens):
    """Log-probabilities differ as they do in another batch: by rounding."""
    asked = requests(np.random.default_rng(seed).integers(1, 240, 9), num_samples=2)
    free = results(HFRolloutEngine(tiny_moe), asked)
    cache_of(tokens)
    engine = HFRolloutEngine(tiny_moe)
    bound = results(engine, asked)

    assert free.keys() == bound.keys()
    for key, one in free.items():
        assert one.response_tokens.tolist() == bound[key].response_tokens.tolist()
        assert one.trace.experts_TLK.tobytes() == bound[key].trace.experts_TLK.tobytes()
        assert one.logprobs == pytest.approx(bound[key].logprobs, abs=1e-4)
    assert sum(len(one.prompt_tokens) for one in asked) == engine.counters.prompt_tokens


@pytest.mark.parametrize("tokens", [1, 300])
def test_engines_that_share_a_queue_do_all_of_it_within_their_bounds(tiny_moe, cache_of, tokens):
    asked = requests([200, 3, 90, 40, 150, 7, 30], num_samples=3)
    alone = results(HFRolloutEngine(tiny_moe), asked)
    cache_of(tokens)
    inboxes = [SimpleQueue(), SimpleQueue()]
    dealer = Dealer(asked, 2, lambda place, share: inboxes[place].put(share))
    engines = [HFRolloutEngine(tiny_moe) for _ in inboxes]
    found: list[Rollout] = []

    def decode(place: int) -> None:
        shared = SharedQueue(21, lambda room: dealer.ask(place, room), inboxes[place].get)
        found.extend(engines[place].generate(shared, SAMPLING))

    threads = [Thread(target=decode, args=(place,), daemon=True) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)

    assert 21 == len(found)
    for one in found:
        expected = alone[one.problem_id, one.sample].response_tokens
        assert expected.tolist() == one.response_tokens.tolist()


def test_an_engine_says_how_many_sequences_fit(tiny_moe, cache_of):
    cache_of(1000)
    engine = HFRolloutEngine(tiny_moe)

    assert [512, 10, 3, 1] == [engine.slots(tokens) for tokens in (1, 100, 300, 5000)]


def marked(number, tokens):
    """What stands in the cache at each position of one sequence."""
    return 1000.0 * number + torch.arange(tokens)


def prefilled(seats):
    lengths = [len(seat.request.prompt_tokens) for seat in seats]
    keys_PTGD = torch.zeros(len(seats), max(lengths), 1, 1)
    for row, (seat, length) in enumerate(zip(seats, lengths, strict=True)):
        keys_PTGD[row, :length, 0, 0] = marked(seat.number, length)
    routes_PTLK = torch.zeros(*keys_PTGD.shape[:2], 1, 1, dtype=torch.uint8)
    return Prefill([keys_PTGD], [-keys_PTGD], keys_PTGD[..., 0], routes_PTLK)


@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=12),
    size=st.integers(1, 12),
    room=st.integers(1, 600),
    seed=st.integers(0, 10**6),
)
def test_slots_never_hold_more_than_their_bound_and_lose_nothing(
    tiny_tokenizer, lengths, size, room, seed
):
    """One sequence that is longer than the bound has the slots to itself."""
    draws = torch.Generator().manual_seed(seed)
    slots = Slots(SAMPLING, size, room, (0,), StopStrings(tiny_tokenizer, ()))
    waiting = deque(Seat(place, one, 0) for place, one in enumerate(requests(lengths)))
    live, ended = list[Seat](), list[int]()
    while waiting or live:
        new = [waiting.popleft() for _ in range(slots.fitting(waiting))]
        assert new or live
        for number, seat in enumerate(new):
            longest = max(map(slots.most, new)) if seed % 2 else 0
            assert number < size
            slots.admit([seat], prefilled([seat]), torch.tensor([0]), longest)
        live += new
        assert len(live) == slots.live <= size
        gone_B = slots.record(
            torch.randint(0, 6, (slots.live,), generator=draws), torch.zeros(slots.live)
        )
        for slot in gone_B.nonzero()[:, 0].tolist():
            ended.append(int(slots.rollout(slot, 0).problem_id[1:]))
        slots.drop(gone_B)
        live = [seat for seat in live if seat.number not in ended]
        if live:
            keys, values = slots.cache
            seats = slots._seats
            assert sorted(seat.number for seat in live) == sorted(seat.number for seat in seats)
            for slot, (seat, position) in enumerate(
                zip(seats, slots.position_B.tolist(), strict=True)
            ):
                known = marked(seat.number, position)
                assert torch.equal(known, keys[0][slot, :position, 0, 0])
                assert torch.equal(-known, values[0][slot, :position, 0, 0])
                keys[0][slot, position] = 1000.0 * seat.number + position
                values[0][slot, position] = -keys[0][slot, position]
            slots.advance(torch.zeros(slots.live, 1, 1, dtype=torch.uint8))
        assert slots.cache_tokens <= max(room, max(lengths) + SAMPLING.max_new_tokens)
    assert sorted(ended) == list(range(len(lengths)))


@pytest.fixture(scope="module")
def tiny_tokenizer(tiny_moe):
    return load_tokenizer(tiny_moe)
