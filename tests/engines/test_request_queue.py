"""Who gets which request, and when an engine asks; the dealer of a team."""

import itertools
import math
import queue
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.scheduling import passes_per_round
from tasks.engines.protocols import Request, Sampling
from tasks.engines.request_queue import CallRequests, Room, deal
from tasks.engines.team.shared_queue import Dealer, SharedQueue

SAMPLING = Sampling(max_new_tokens=128, temperature=1.0, seed=0)


def request(name: str, samples: int, expected: float = 10.0, prompt: int = 5) -> Request:
    tokens = np.ones(prompt, dtype=np.int32)
    return Request(name, tokens, samples, expected_tokens=expected)


def parts(dealt: list[list[Request]]) -> list[list[tuple[str, int, int]]]:
    return [[(one.problem_id, one.first_sample, one.num_samples) for one in part] for part in dealt]


def room(slots: int, cache_use: float = 0.0, cache: float = math.inf, live: int = 0) -> Room:
    return Room(live, slots, cache_use, cache)


def test_the_first_request_goes_to_the_engine_that_holds_least():
    waiting = [request("a", 1), request("b", 1), request("c", 1)]

    assert [[("c", 0, 1)], [("a", 0, 1), ("b", 0, 1)]] == parts(
        deal(waiting, [room(9, cache_use=12.0, live=1), room(9, cache_use=1.0, live=1)])
    )
    assert [] == waiting


def test_a_request_with_more_samples_than_slots_is_dealt_in_parts():
    waiting = [request("a", 7)]

    assert [[("a", 0, 3)], [("a", 3, 2)]] == parts(deal(waiting, [room(3), room(2)]))
    assert [("a", 5, 2)] == parts([waiting])[0]


def test_no_more_is_dealt_than_the_cache_is_expected_to_hold():
    waiting = [request("a", 7)]  # 5 + 10 / 2 tokens each

    assert [[("a", 0, 1), ("a", 1, 1), ("a", 2, 1)], []] == parts(
        deal(waiting, [room(9, cache=39.0), room(9, cache_use=30.0, cache=39.0, live=1)])
    )
    assert [("a", 3, 4)] == parts([waiting])[0]


def test_samples_stay_together_if_all_of_them_fit():
    rooms = [room(9, cache=40.0), room(9, cache=40.0)]

    assert [[("a", 0, 3)], [("b", 0, 3)]] == parts(deal([request("a", 3), request("b", 3)], rooms))
    first, second = parts(deal([request("a", 3), request("b", 9)], rooms))
    assert [("a", 0, 1), ("a", 2, 1), ("b", 1, 1), ("b", 3, 1)] == first
    assert [("a", 1, 1), ("b", 0, 1), ("b", 2, 1), ("b", 4, 1)] == second


def test_an_engine_without_sequences_gets_one_even_if_its_cache_is_small():
    assert [[("a", 0, 1)]] == parts(deal([request("a", 7)], [room(9, cache=1.0)]))


def rounds(rooms: list[list[Room]], requests: list[Request], order: list[int]):
    """Let replicas ask in an order that keeps each one's own; what each was answered."""
    answers: list[list] = [[] for _ in rooms]
    dealer = Dealer(requests, len(rooms), lambda place, share: answers[place].append(share))
    left = [list(own) for own in rooms]
    for place in order:
        dealer.ask(place, left[place].pop(0))
    return [[(parts([list(share.requests)])[0], share.last) for share in own] for own in answers]


@given(st.permutations([0, 0, 0, 1, 1, 1, 2, 2, 2]))
def test_who_gets_what_does_not_depend_on_who_asks_first(order):
    rooms = [
        [room(2), room(0, cache_use=9.0, live=2), room(1, cache_use=4.0, live=1)],
        [room(1), room(1), room(0, cache_use=5.0, live=1)],
        [room(3), room(1, cache_use=3.0, live=2), room(2, cache_use=1.0, live=1)],
    ]
    requests = [
        request(name, 2, expected)
        for name, expected in zip("abcdefg", range(30, 2, -4), strict=True)
    ]

    assert rounds(rooms, requests, [0, 1, 2] * 3) == rounds(rooms, requests, order)


def test_whoever_has_no_room_waits_for_nobody_and_all_learn_that_nothing_is_left():
    answers = []
    dealer = Dealer([request("a", 2)], 2, lambda place, share: answers.append((place, share.last)))
    dealer.ask(0, room(0, live=1))
    dealer.ask(0, room(0, live=1))
    assert [] == answers
    dealer.ask(1, room(2))

    assert [(1, True)] == answers
    dealer.ask(0, room(1))
    assert [(1, True), (0, True)] == answers


@given(st.permutations([0, 0, 0, 1, 1, 1]))
def test_a_call_with_enough_prompts_ends_with_a_round_whoever_asks_first(order):
    rooms = [
        [room(1), replace(room(0, live=1), ended=("a",)), replace(room(1), ended=("a",))],
        [room(1), room(0, live=1), replace(room(1), ended=("b",))],
    ]
    answers: list[list] = [[], []]
    requests = [replace(request("a", 2), due=True), request("b", 1), request("c", 9)]
    dealer = Dealer(requests, 2, lambda place, share: answers[place].append(share), enough=1)
    for place in order:
        dealer.ask(place, rooms[place].pop(0))

    # Every round is answered, also without room; "a" is due, and complete after the third.
    for own in answers:
        assert [False, False, True] == [share.over for share in own]
        assert [False, False, True] == [share.last for share in own]
        assert [] == own[-1].requests


def test_an_intake_of_a_list_is_over_with_enough_prompts():
    requests = [request("a", 2), request("b", 1), replace(request("c", 1), due=True)]
    intake = CallRequests(requests, replace(SAMPLING, enough=2), slots=9)
    over = []
    for name, sample in (("a", 0), ("b", 0), ("c", 0)):
        intake.end(name, sample)
        over.append(intake.over)

    assert [False, False, True] == over


def test_an_intake_says_what_ended_if_the_call_ends_with_enough_prompts():
    asking = Asked()
    intake = CallRequests(asking, replace(SAMPLING, enough=2, max_new_tokens=5), slots=2)
    intake.take()
    intake.end("p1", 0)
    intake.take()
    intake.take()

    assert [(), ("p1",), ()] == [one.ended for one in asking.rooms]


def test_an_intake_of_a_list_gives_all_at_once():
    intake = CallRequests([request("a", 2), request("b", 3)], SAMPLING, slots=1)

    assert 5 == intake.samples
    assert intake.open
    assert ["a", "b"] == [one.problem_id for one in intake.take(full=True)]
    assert not intake.open
    assert () == intake.take()


class Asked:
    """A queue that notes who asks, and gives one response each time."""

    samples, empty, over = 9, False, False

    def __init__(self) -> None:
        self.rooms: list[Room] = []

    def take(self, room: Room) -> list[Request]:
        self.rooms.append(room)
        return [request(f"p{len(self.rooms)}", 1)] if room.slots else []


def test_an_intake_asks_after_every_round_of_passes_or_when_nothing_is_left():
    asking = Asked()
    intake = CallRequests(asking, SAMPLING, slots=2, cache=100.0)
    asked = []
    for _ in range(7):  # a round is 128 / 64 passes
        intake.take()
        asked.append(len(asking.rooms))
    assert [1, 1, 2, 2, 3, 3, 4] == asked
    assert [room(2, 0.0, 100.0), room(1, 10.0, 100.0, 1), room(0, 20.0, 100.0, 2)] == asking.rooms[
        :3
    ]

    intake.end("p1", 0)
    intake.end("p2", 0)
    intake.take()
    assert room(2, 0.0, 100.0) == asking.rooms[-1]
    intake.take(full=True)
    intake.take(full=True)
    assert room(0, 10.0, 100.0, 1) == asking.rooms[-1]


def test_threads_that_share_a_queue_take_everything_once():
    requests = [request(f"p{number}", 3, expected=1.0 + number) for number in range(20)]
    inboxes = [queue.SimpleQueue() for _ in range(3)]
    dealer = Dealer(requests, 3, lambda place, share: inboxes[place].put(share))
    taken: list[list[tuple[str, int]]] = [[] for _ in range(3)]

    def decode(place: int) -> None:
        shared = SharedQueue(60, lambda one: dealer.ask(place, one), inboxes[place].get)
        intake, live = CallRequests(shared, SAMPLING, slots=4), {}
        for passes in itertools.count():
            for one in intake.take():
                for sample in range(one.first_sample, one.first_sample + one.num_samples):
                    live[one.problem_id, sample] = passes + int(one.expected_tokens)
                    taken[place].append((one.problem_id, sample))
            for key in [key for key, end in live.items() if end <= passes]:
                del live[key]
                intake.end(*key)
            if not live and not intake.open:
                return

    threads = [threading.Thread(target=decode, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)

    assert not any(thread.is_alive() for thread in threads)
    assert sorted((f"p{n}", s) for n in range(20) for s in range(3)) == sorted(
        itertools.chain(*taken)
    )
    assert min(map(len, taken)) >= 15


def test_a_response_that_is_short_asks_after_every_pass():
    asking = Asked()
    intake = CallRequests(asking, Sampling(max_new_tokens=5, temperature=1.0, seed=0), slots=9)
    for _ in range(3):
        intake.take()

    assert 3 == len(asking.rooms)


@pytest.mark.parametrize(
    ("most", "segment", "passes"), [(32768, 0, 512), (32768, 8192, 128), (7, 0, 1)]
)
def test_a_round_is_a_share_of_the_longest_response(most, segment, passes):
    assert passes == passes_per_round(most, segment)
