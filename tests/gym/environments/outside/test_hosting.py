"""Episodes of a host, in this process."""

import pytest

from tasks.gym.environments.outside.hosting import FullError, Player, Step


class Fragile:
    """An episode that raises when told to."""

    def __init__(self):
        self.closed = False

    def step(self, turn):
        if turn.text == "raise":
            raise ValueError("on purpose")
        return Step([{"role": "tool", "content": turn.text}])

    def close(self):
        self.closed = True


class FragileHost:
    version = "1"

    def __init__(self):
        self.begun = []

    def begin(self, task):
        self.begun.append(Fragile())
        return self.begun[-1]


def test_an_episode_that_raises_is_closed_and_begun_again():
    host = FragileHost()
    player = Player(host)

    def ask(*turns):
        request = {"version": "1", "task": {}, "turns": [{"text": t, "calls": None} for t in turns]}
        return [step["messages"][0]["content"] for step in player.answer(request)["steps"]]

    assert ["a"] == ask("a")
    with pytest.raises(ValueError, match="on purpose"):
        ask("a", "raise")
    assert ["a", "b"] == ask("a", "b")
    assert [True, False] == [one.closed for one in host.begun]


class Room:
    """A host with room for some episodes; one ends with its third turn."""

    version = "1"

    def __init__(self, size):
        self.size, self.begun, self.open = size, 0, 0

    def begin(self, task):
        if self.open == self.size:
            raise FullError("no room")
        self.begun, self.open = self.begun + 1, self.open + 1
        return Guest(self)


class Guest:
    def __init__(self, room):
        self.room, self.count = room, 0

    def step(self, turn):
        self.count += 1
        done = self.count == 3
        return Step([{"role": "tool", "content": turn.text}], done, 1.0 if done else None)

    def close(self):
        self.room.open -= 1


def steps_of(player, number, *turns):
    turns = [{"text": t, "calls": None} for t in turns]
    request = {"version": "1", "task": {"number": number}, "turns": turns}
    return [step["messages"][0]["content"] for step in player.answer(request)["steps"]]


def test_an_episode_that_has_ended_is_closed_and_its_steps_stay_known():
    room = Room(8)
    player = Player(room)

    assert ["a", "b", "c"] == steps_of(player, 0, "a", "b", "c")
    assert 0 == room.open
    assert ["a", "b", "c"] == steps_of(player, 0, "a", "b", "c")
    assert 1 == room.begun
    with pytest.raises(ValueError, match="ended before its last turn"):
        steps_of(player, 0, "a", "b", "c", "d")


@pytest.mark.parametrize(("size", "begun"), [(1, 9), (2, 8), (3, 3)])
def test_episodes_that_do_not_fit_beside_each_other_are_played_again(size, begun):
    room = Room(size)
    player = Player(room)
    for turns in (("a",), ("a", "b"), ("a", "b", "c")):
        for number in range(3):
            assert list(turns) == steps_of(player, number, *turns)

    assert 0 == room.open
    assert begun == room.begun


def test_a_host_without_any_room_is_an_error():
    with pytest.raises(FullError, match="no room"):
        steps_of(Player(Room(0)), 0, "a")
