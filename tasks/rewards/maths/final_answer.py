"""Is the final answer the right value? (1 or 0; several answers are wrong)

Reads any response: boxes, marked lines, sentences, lines that are a number.

Gold: {"value": "26"}, a number, LaTeX or words; with {"tolerance": 0.1} what the problem allows.
"""

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict
from tasks.rewards.maths import locate, symbolic, verdict


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every final answer of the response has the gold value, else 0."""
    return verdict.decide(problem, response, locate.lenient)


def close() -> None:
    """End the workers; the next comparison that needs one starts it again."""
    symbolic.close()
