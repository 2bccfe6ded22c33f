"""Episodes of a host, in this process."""

import pytest

from tasks.gym.environments.outside.hosting import Player, Step


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
