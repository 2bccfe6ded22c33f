"""When a team that computes nothing has failed, on numbers; with processes: test_team.py."""

import pytest

from tasks.engines.team import standstill
from tasks.engines.team.standstill import Standstill, place


@pytest.fixture
def team(monkeypatch) -> Standstill:
    monkeypatch.setattr(standstill, "STILL_LOOKS", 2)
    return Standstill()


def reached(team: Standstill, *looks: tuple[tuple[int, ...], bool]) -> list[bool]:
    return [team.reached(counts, expected=expected) for counts, expected in looks]


def test_a_team_stands_still_when_no_rank_worked_for_all_looks(team):
    assert [False, False, True] == reached(team, ((3, 5), True), ((3, 5), True), ((3, 5), True))


def test_one_rank_that_works_is_enough(team):
    looks = [((3, 5 + look), True) for look in range(5)]

    assert [False] * 5 == reached(team, *looks)


def test_a_team_without_a_command_may_wait(team):
    still = ((3, 5), True)

    assert [False] * 5 == reached(team, still, still, ((3, 5), False), still, ((3, 6), True))


def test_a_place_is_the_innermost_call_and_that_of_this_project():
    assert place().startswith("place (standstill.py:")
