r"""Score whether the boxed answer is right; stricter about form than `final_answer`.

Compass-Thinker (arXiv 2508.08909) uses a rule-based verifier and does not publish its rules. This
one reads boxes with balanced braces; without a box, marked lines (`#### x`, `Answer: x`) or a
response of a single line. Both verifiers interpret an expression in the same way.

Gold: as for `final_answer`.
Differs: a verdict is 1 or 0 as everywhere here; `rewards.maths = rule` makes the paper's +1 and -1
(`algorithms/advantages/grouped.py`) the training reward.
"""

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.gym.maths import locate, verdict


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every box of the response has the gold value, else 0."""
    return verdict.decide(problem, response, locate.strict)
