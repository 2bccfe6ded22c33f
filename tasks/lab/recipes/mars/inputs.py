"""The inputs of verifier and corrector.

Source: MarsRL (arXiv 2511.11373): the verifier sees problem and solution, the corrector the
findings as well.
Differs: a solution is shown with its thought, because a small model works nowhere else.
"""

from collections.abc import Sequence

from data_schemas.rows import Message, Role
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN
from tasks.lab.recipes.mars.correctness import LINES

VERIFY = "Check the solution. Last line: Correctness: Correct or Correctness: Wrong"
CORRECT = "Solve it again. The findings may be wrong."


def verifier_input(problem: Sequence[Message], solution: str) -> tuple[Message, ...]:
    """Ask whether a solution is right."""
    return (*_system(VERIFY), *problem, _user_message(f"Solution: {visible_text(solution)}"))


def corrector_input(
    problem: Sequence[Message], solution: str, findings: str
) -> tuple[Message, ...]:
    """Ask for a better solution; the verdict's own line is left out of the findings."""
    result = LINES.sub("", visible_text(findings)).strip()
    text = f"Solution: {visible_text(solution)}\nFindings: {result}"
    return (*_system(CORRECT), *problem, _user_message(text))


def visible_text(response: str) -> str:
    """Return a response as another agent reads it."""
    return response.replace(THINK_OPEN, "").replace(THINK_CLOSE, "\n").strip()


def _system(text: str) -> tuple[Message]:
    return (Message(role=Role.SYSTEM, content=text),)


def _user_message(text: str) -> Message:
    return Message(role=Role.USER, content=text)
