"""Share of the checkable instructions that a response follows.

Gold: {"instruction_id_list": [...], "kwargs": [...]}, as in IFEval; null arguments are ignored.
"""

from typing import Any

from pydantic import Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.errors import DataError
from tasks.rewards.instruction_checks import CHECKS
from tasks.rewards.protocol import Gold, judge


class Instructions(Gold):
    """Instruction ids with their arguments, one set per id."""

    instruction_id_list: tuple[str, ...] = Field(min_length=1, strict=False)
    kwargs: tuple[dict[str, Any], ...] = Field(strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score the share of instructions followed; abstain if one is unknown or cannot be decided."""
    return judge(problem, response, Instructions, _check)


def _check(gold: Instructions, answer: str) -> Verdict:
    if len(gold.instruction_id_list) != len(gold.kwargs):
        return abstain(
            "bad_gold", f"{len(gold.instruction_id_list)} ids, {len(gold.kwargs)} kwargs"
        )
    broken: list[str] = []
    for name, arguments in zip(gold.instruction_id_list, gold.kwargs, strict=True):
        if name not in CHECKS:
            return abstain("unknown_instruction", name)
        try:
            followed = CHECKS[name](answer, arguments)
        except DataError as error:
            return abstain("bad_gold", f"{name}: {error}")
        if followed is None:
            return abstain("language_undecided", f"{name} {arguments.get('language', 'en')}")
        if not followed:
            broken.append(name)
    total = len(gold.instruction_id_list)
    score = (total - len(broken)) / total
    reason = "correct" if not broken else "partial" if score > 0 else "wrong"
    return scored(score, reason, f"broken: {', '.join(broken)}" if broken else "")
