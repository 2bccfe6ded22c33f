"""Criteria of a rubric as a part of the prompt: what a scaffold shows.

Source: RuscaRL (arXiv 2508.16949): a system message with points to include and points to avoid,
each with its points, and a ban on mentioning them.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from data_schemas.rows import Message, Problem, Role
from tasks.gym.judging.rubric import Criterion, Rubric
from tasks.lab.recipes.rusca.settings import Form

RUBRICS = ("rubric", "rule_rubric")
"""Verifiers whose gold is a rubric."""
_INCLUDE, _AVOID = "Points to include:", "Points to avoid:"
_BAN = "Follow these points without mentioning them."


def criteria_of(problem: Problem) -> list[Criterion]:
    """Return the criteria of a problem's rubric; none if it has no rubric that can be read."""
    if problem.verifier not in RUBRICS:
        return []
    try:
        return Rubric.model_validate_json(problem.answer).criteria
    except ValidationError:  # its verifier abstains with the reason
        return []


def with_criteria(
    messages: Sequence[Message], criteria: Sequence[Criterion], form: Form
) -> tuple[Message, ...]:
    """Show criteria in a prompt; without any it stays as it is."""
    if not criteria:
        return tuple(messages)
    if form is Form.SYSTEM:
        text = _system_text(criteria)
        if messages[0].role is Role.SYSTEM:
            first, *rest = messages
            return (first.model_copy(update={"content": f"{first.content}\n\n{text}"}), *rest)
        return (Message(role=Role.SYSTEM, content=text), *messages)
    *before, last = messages
    parts = [item.criterion if item.points >= 0 else f"Not: {item.criterion}" for item in criteria]
    return (*before, last.model_copy(update={"content": " ".join([last.content, *parts])}))


def mentions(text: str, criteria: Sequence[Criterion]) -> bool:
    """True if a text repeats the words of a criterion, letter case aside."""
    folded = text.casefold()
    return any(item.criterion.casefold() in folded for item in criteria)


def _system_text(criteria: Sequence[Criterion]) -> str:
    lines: list[str] = []
    for title, is_wanted in ((_INCLUDE, True), (_AVOID, False)):
        results = [item for item in criteria if (item.points >= 0) == is_wanted]
        if results:
            lines += [title, *(f"- ({item.points:g}) {item.criterion}" for item in results)]
    return "\n".join([*lines, _BAN])
