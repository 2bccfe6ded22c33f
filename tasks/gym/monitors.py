"""Verifiers that are only watched: what a response looks like, whatever it was asked.

`rewards.monitor` names them, or some of a user's own. They have no gold, and no gradient follows
from them, so that they stay a measure of what the policy does that nobody rewarded.
"""

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.gym.protocol import answer_part

HALF_LENGTH = 200
"""Characters of an answer for which `brevity` is one half [our choice]: a short paragraph."""


def brevity(_: Problem, response: str) -> Verdict:
    """Score a short answer high: 1 for none, and half of it for every HALF_LENGTH characters."""
    length = len(answer_part(response) or response)
    return scored(0.5 ** (length / HALF_LENGTH), "length", f"{length} characters")


def form(_: Problem, response: str) -> Verdict:
    """Score 1 for a response that ends its thoughts and then answers, else 0."""
    answer = answer_part(response)
    return scored(float(bool(answer and answer.strip())), "form")
