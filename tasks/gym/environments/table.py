"""Table of environments: what answers the policy between its turns.

A problem's environment is that of its verifier, which judges the episode by the same rules.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from data_schemas.prompts import Message, Problem
from tasks.gym.environments import shop
from tasks.gym.environments.outside import play


class Environment(Protocol):
    """Answers the last turn of an episode; None ends it.

    Contract: the answer is a function of the problem and of the turns so far. So an episode has no
    state but its tokens: it continues after a crash, and its verifier replays it. It does not
    raise but for a wrong setting: where it cannot read the gold, or fails, it ends the episode, and
    its verifier abstains.
    """

    def __call__(self, problem: Problem, turns: Sequence[str]) -> tuple[Message, ...] | None: ...


ENVIRONMENTS: Mapping[str, Environment] = {"shop": shop.observe, "environment": play.observe}
"""By verifier. Problems of other verifiers are answered in one turn."""
