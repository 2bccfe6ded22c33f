"""The final answer of a response in a form in which equal answers can be counted (majority@k).

Source: self-consistency (arXiv 2203.11171). Answers are equal if their normal forms are: 0.5 and
1/2 are two answers. Votes are counted for the verifiers of final answers and of choices only.
"""

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.gym.maths.locate import lenient
from tasks.gym.maths.normal_form import normalised
from tasks.gym.protocol import answer_part

MAX_READ = 4000
"""Characters at the end of a response that are searched for its answer."""
_RIGHT = "right option"
_ASSERTS = "asserts "
"""Begins the detail of a verdict on a choice that is not the right one."""


def voted_answer(problem: Problem, response: str, verdict: Verdict) -> str | None:
    """Return the final answer in normal form.

    Returns:
        '' if the response has none; None if the verifier's answers cannot be counted.
    """
    match problem.verifier:
        case "final_answer" | "rule_answer":
            answer = answer_part(response)
            places = lenient(answer[-MAX_READ:], problem.language) if answer else []
            return normalised(places[-1].text, problem.language) if places else ""
        case "choice":
            if verdict.solved:
                return _RIGHT
            wrong = verdict.detail.startswith(_ASSERTS)
            return verdict.detail.removeprefix(_ASSERTS) if wrong else ""
        case _:
            return None
