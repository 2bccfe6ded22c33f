"""An environment to copy from: guess a number, be told "higher" or "lower".

    python -m tasks.gym.environments.outside.example_host NAME ARGUMENTS

The canary of the verifier `environment` plays it in our own interpreter.
"""

from collections.abc import Mapping
from typing import Any

from tasks.gym.environments.outside.hosting import Step, Turn, serve

NUMBERS = 20
MAX_GUESSES = 8


class _Game:
    def __init__(self, number: int) -> None:
        self._number = number
        self._guesses = 0

    def step(self, turn: Turn) -> Step:
        self._guesses += 1
        guess = int(turn.text) if turn.text.isdecimal() else 0
        if guess == self._number or self._guesses == MAX_GUESSES:
            return Step(done=True, reward=float(guess == self._number))
        hint = "higher" if guess < self._number else "lower"
        return Step([{"role": "user", "content": hint}])

    def close(self) -> None:
        """Nothing to give back."""


class GuessHost:
    """Offers every number from 1 to NUMBERS."""

    version = "1"

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the numbers."""
        question = f"Guess a number from 1 to {NUMBERS}."
        return [
            {"task": {"number": number}, "messages": [{"role": "user", "content": question}]}
            for number in range(1, NUMBERS + 1)[: request["limit"]]
        ]

    def begin(self, task: Mapping[str, Any]) -> _Game:
        """Open a game."""
        return _Game(task["number"])


if __name__ == "__main__":
    serve(GuessHost)
