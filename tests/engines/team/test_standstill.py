"""When a team that computes nothing has failed, on numbers; with processes: test_team.py."""

import hashlib
import threading
import time

import pytest

from tasks.engines.team.standstill import Standstill, calls, place


@pytest.fixture
def team() -> Standstill:
    return Standstill()


def reached(team: Standstill, *looks: tuple[tuple[int, ...], bool]) -> list[bool]:
    return [team.reached(counts, expected=expected, looks=2) for counts, expected in looks]


def test_a_team_stands_still_when_no_rank_worked_for_all_looks(team):
    assert [False, False, True] == reached(team, ((3, 5), True), ((3, 5), True), ((3, 5), True))


def test_one_rank_that_works_is_enough(team):
    looks = [((3, 5 + look), True) for look in range(5)]

    assert [False] * 5 == reached(team, *looks)


def test_a_team_without_a_command_may_wait(team):
    still = ((3, 5), True)

    assert [False] * 5 == reached(team, still, still, ((3, 5), False), still, ((3, 6), True))


def test_a_place_is_the_innermost_call_and_that_of_this_project():
    assert place().startswith("_innermost (standstill.py:")


def test_calls_stay_the_same_in_a_kernel_and_change_with_a_step():
    found, looked, go_on = [], threading.Event(), threading.Event()

    def look():
        time.sleep(0.3)
        found.extend([calls(), calls()])
        go_on.set()
        looked.wait()
        time.sleep(0.3)
        found.append(calls())

    watcher = threading.Thread(target=look)
    watcher.start()
    while not go_on.is_set():  # a kernel that is longer than the looks, without the lock
        hashlib.pbkdf2_hmac("sha256", b"", b"", 3_000_000)
    looked.set()
    watcher.join()

    assert found[0] == found[1]
    assert found[1] != found[2]
