"""Table of environments: what answers the policy between its turns.

A problem's environment is that of its verifier, which judges the episode by the same rules.
"""

from collections.abc import Sequence
from typing import Protocol

from data_schemas.rows import Message, Problem
from tasks.gym.environments import shop
from tasks.gym.environments.outside import play
from tasks.gym.protocol import find_game
from tasks.plugins import Table


class Environment(Protocol):
    """Answers the last turn of an episode; None ends it.

    Contract: the answer is a function of the problem and of the turns so far. So an episode has no
    state but its tokens: it continues after a crash, and its verifier replays it. It does not
    raise but for a wrong setting: where it cannot read the gold, or fails, it ends the episode, and
    its verifier abstains.
    """

    def __call__(self, problem: Problem, turns: Sequence[str]) -> tuple[Message, ...] | None: ...


def _own(reference: str) -> Environment:
    """Return the environment of a verifier of a user's own.

    Raises:
        KeyError: it has none.
        SettingsError: as `tasks.plugins.load`.
    """
    game = find_game(reference)
    if game is None:
        raise KeyError(reference)
    return game.observe


ENVIRONMENTS: Table[Environment] = Table({"shop": shop.observe, "environment": play.observe}, _own)
"""By verifier. Problems of other verifiers are answered in one turn."""
