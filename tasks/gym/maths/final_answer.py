"""Score whether the final answer has the right value (1 or 0; several answers are wrong).

Reads boxes, marked lines, sentences and lines that consist of a number.

Gold: {"value": "26"}, a number, LaTeX or words; {"tolerance": 0.1} if the problem allows one;
{"unit": "m/s^2"} if the value has one: an answer may leave it out, but may not have another;
{"chain": ["12", "26"]}, intermediate results: what a response does not write is in the detail.
"""

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.gym.maths import locate, symbolic, verdict


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every final answer of the response has the gold value, else 0."""
    return verdict.decide(problem, response, locate.lenient)


def close() -> None:
    """End the workers; the next comparison that needs one starts it again."""
    symbolic.close()
