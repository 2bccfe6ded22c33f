"""When a team that computes nothing has failed, on numbers; with processes: test_team.py."""

import pytest

from tasks.engines.team import standstill
from tasks.engines.team.standstill import Activity, Standstill, place


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


def test_a_process_that_computes_moves_and_one_that_waits_does_not():
    activity = Activity()
    activity._cpu_s -= 1.0  # as if it had computed for a second
    assert activity.moved()

    activity._cpu_s += 1e9  # whatever this process computes meanwhile is less
    assert not activity.moved()


def test_a_transfer_to_a_disk_is_work(monkeypatch, tmp_path):
    counts = tmp_path / "io"
    counts.write_text("rchar: 9\nread_bytes: 1\nwrite_bytes: 1\n")
    monkeypatch.setattr(standstill, "_IO", counts)
    monkeypatch.setattr(standstill, "_WORK_S", 1e9)
    activity = Activity()
    assert not activity.moved()

    counts.write_text("rchar: 99\nread_bytes: 1\nwrite_bytes: 4097\n")
    assert activity.moved()


def test_a_place_is_the_innermost_call_and_that_of_this_project():
    assert place().startswith("place (standstill.py:")
