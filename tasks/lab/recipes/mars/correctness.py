"""Score whether a verdict on a solution is right (1 or 0).

The verdict is the last line `Correctness: Correct` or `Correctness: Wrong`, with nothing else on
it but Markdown's asterisks. A response without such a line has no verdict and scores 0: an
abstention would let the policy avoid a wrong verdict by writing none. Differs from MarsRL's
released parser, which looks for the word 'correct' and so takes 'Incorrect' and 'not correct'
for acceptance.

Gold: {"correct": true}, whether the solution is right.
"""

import re

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.gym.protocol import Gold, answer_part, check_against_gold
from tasks.gym.scoring.canaries import Canary

LINES = re.compile(r"^[ *]*Correctness[ *]*:[ *]*(Correct|Wrong)[ *]*$", re.MULTILINE)


NAME = f"{__name__}:verify"
"""Name of this verifier, in a row."""
CANARIES = (Canary(NAME, {"correct": False}, "Correctness: Wrong", "It is not correct."),)


class Truth(Gold):
    """The state of the solution."""

    correct: bool


def says_correct(response: str) -> bool | None:
    """Read a verdict: True for 'Correct', False for 'Wrong', None for neither."""
    matches = LINES.findall(answer_part(response) or "")
    return matches[-1] == "Correct" if matches else None


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the verdict is the solution's true state, else 0."""
    return check_against_gold(problem, response, Truth, _check)


def _check(gold: Truth, response: str) -> Verdict:
    claim = says_correct(response)
    if claim is None:
        return scored(0.0, "no_verdict", "no line 'Correctness: Correct' or 'Correctness: Wrong'")
    if claim == gold.correct:
        return scored(1.0, "correct")
    return scored(0.0, "missed_error" if claim else "false_alarm")
