r"""Is the boxed answer the right one? Strict in form, beside `final_answer` (+1 or -1).

Compass-Thinker (arXiv 2508.08909) rewards with a rule-based verifier; its rules are not printed.
Here: the boxes with balanced braces, without a box the marked lines (`#### x`, `Answer: x`), or the
one line there is. What an expression means is the same for both verifiers.

Gold: as for `final_answer`.
Differs: a verdict is 1 or 0 as everywhere here; `signed` gives the paper's +1 and -1.
"""

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict
from tasks.rewards.maths import locate, verdict


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every box of the response has the gold value, else 0."""
    return verdict.decide(problem, response, locate.strict)


def signed(verdict: Verdict) -> int | None:
    """Return Compass-Thinker's reward: +1 correct, -1 incorrect, None without a verdict."""
    if verdict.score is None:
        return None
    return 1 if verdict.solved else -1
